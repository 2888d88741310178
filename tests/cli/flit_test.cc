// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Flit, FlagsYamlAndBookSimGiveOneResult) {
  const Folder folder;
  const std::string yaml = folder.write(
      "net.yaml", "topology: torus:4x4\nvcs: 2\npattern: tornado\nrate: 0.1\npacket: 2\n");
  const std::string booksim =
      folder.write("net",
                   "topology = torus; k = 4; n = 2; routing_function = dim_order; num_vcs = 2;\n"
                   "traffic = tornado; injection_rate = 0.05; packet_size = 2; seed = 1;\n"
                   "routing_delay = 0; credit_delay = 2; use_noc_latency = 0;\n"
                   "vc_allocator = separable_input_first; sw_allocator = "
                   "separable_input_first;\n");
  const auto latency = [](const std::string& arguments) {
    const Outcome run = orrery("flit --json " + arguments);
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out)["packet_latency_mean"].get<double>();
  };
  const double flags =
      latency("--topology torus:4x4 --vcs 2 --pattern tornado --rate 0.1 --packet 2");
  EXPECT_GT(flags, 10);
  EXPECT_EQ(latency(yaml), flags);
  EXPECT_EQ(latency("--booksim " + booksim), flags);
  EXPECT_EQ(latency(yaml + " --no-shortcuts"), flags);
}

TEST(Flit, ASweepHasItsCurveSaturationAndLinks) {
  const Folder folder;
  const Outcome run = orrery("flit --topology mesh:3x3 --sweep --json --plot " +
                             (folder / "c.svg") + " --links " + (folder / "links.csv"));
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_GT(json["saturation_load"], 0.6);
  EXPECT_EQ(json["curve"].size(), 8U);
  EXPECT_THAT(content(folder / "c.svg"), HasSubstr("</svg>"));
  EXPECT_THAT(content(folder / "links.csv"), HasSubstr("source,target,load"));
}

TEST(Flit, AllMistakesAreNamedAtOnce) {
  const Outcome run = orrery("flit --topology mesch:8x8 --vcs 0 --rate x");
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("did you mean 'mesh'"), HasSubstr("--vcs"), HasSubstr("--rate")));
}

TEST(Flit, ADeadlockEndsWithTheBuffersThatWait) {
  const Outcome run = orrery(
      "flit --topology graph:torus:shape=8 --vcs 1 --packet 8 --rate 0.9 --pattern tornado "
      "--buffer 2");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("deadlock"), HasSubstr("waits for")));
}

TEST(Flit, ASettingOutOfRangeSaysItsRange) {
  const Folder folder;
  const Outcome run =
      orrery("flit --booksim " + folder.write("net", "topology = torus;\nk = 9999999;\n"));
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err,
              HasSubstr("net:2: k: found '9999999', expected a whole number, 1 to 1048576"));
}

TEST(Flit, BatchesFromFlagsAndBookSim) {
  const Folder folder;
  const std::string booksim = folder.write(
      "net",
      "topology = mesh; k = 4; n = 2; routing_function = dor; sim_type = batch; batch_size = 20;\n"
      "batch_count = 1; max_outstanding_requests = 2; packet_size = 3; seed = 1;\n"
      "routing_delay = 0; credit_delay = 2; num_vcs = 4; vc_allocator = separable_input_first;\n"
      "sw_allocator = separable_input_first;\n");
  const auto cycles = [](const std::string& arguments) {
    const Outcome run = orrery("flit --json " + arguments);
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out)["cycles"].get<std::int64_t>();
  };
  const std::int64_t two = cycles("--topology mesh:4x4 --batch 20 --outstanding 2 --packet 3");
  EXPECT_EQ(cycles("--booksim " + booksim), two);
  EXPECT_EQ(cycles("--booksim " + booksim + " --no-shortcuts"), two);
  EXPECT_LT(cycles("--topology mesh:4x4 --batch 20 --packet 3"), two);
  const Outcome bad = orrery("flit --outstanding 2 --sweep --batch 5 --messages x.csv");
  EXPECT_EQ(bad.status, 2);
  EXPECT_THAT(bad.err, AllOf(HasSubstr("--sweep"), HasSubstr("--messages")));
  const Folder files;
  const std::string machine = files.write(
      "m.yaml",
      "name: m\ndevice: {name: d, units: 1, peak: {bf16: 1 TFLOP/s}, memory: [{name: h, capacity: "
      "1 GB, bandwidth: 1 GB/s}]}\nnetwork: [{name: n, kind: switch, size: 8, bandwidth: 1 GB/s, "
      "latency: 1 us}]\ntopology: 'leaf_spine:leaves=2,spines=2,hosts=4'\n");
  const Outcome laid =
      orrery("flit --topology machine:" + machine + " --routing up_down --rate 0.1 --json");
  EXPECT_EQ(laid.status, 0) << laid.err;
  EXPECT_THAT(laid.out, HasSubstr("leaf_spine"));
  EXPECT_THAT(orrery("flit --topology machine:dgx-h100").err,
              HasSubstr("expected a machine with a topology"));
  EXPECT_THAT(orrery("flit --topology mesh:4x4 --batch 0").err,
              HasSubstr("--batch: found '0', expected packets of a node, 1 or more"));
  EXPECT_THAT(orrery("flit --topology mesh:4x4 --batch 5 --rate 0.2").err,
              HasSubstr("--rate: goes with a constant load"));
  // No packet in the periods that count: no latency.
  EXPECT_THAT(orrery("flit --topology mesh:4x4 --rate 1e-300").err,
              HasSubstr("--rate: found '1e-300', expected one at which packets are created"));
  EXPECT_EQ(orrery("flit --topology machine:none.yaml").err, "none.yaml: no such file\n");
}

TEST(Flit, MessagesOfAFileWaitForOneAnother) {
  // On a line of 4, routers of 3 cycles, links of 1: 100 bytes are 2 flits and a head, over one
  // link 3 - 1 + 2 + 6 + 3 = 13; 7 cycles of work and 1 until its successor starts.
  const Folder folder;
  const std::string file = folder.write("chain.csv",
                                        "name,source,target,bytes,work,after\n"
                                        "a,0,1,100,,\nadd,1,,,7,a\nb,1,2,100,,add a\n");
  const Outcome run = orrery("flit --topology mesh:4 --buffer 64 --json --messages " + file);
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["ends"]["a"], 13);
  EXPECT_EQ(json["ends"]["add"], 20);
  EXPECT_EQ(json["cycles"], 34);
  const std::string wrong =
      folder.write("wrong.csv", "name,source,target,bytes,aftr\na,0,9,100,\na,1,2,-1,\n");
  EXPECT_THAT(orrery("flit --topology mesh:4 --messages " + wrong).err, HasSubstr("after"));
  const std::string rows =
      folder.write("rows.csv", "name,source,target,bytes,after\na,0,9,100,b\na,1,2,-1,\n");
  EXPECT_THAT(orrery("flit --topology mesh:4 --messages " + rows).err,
              AllOf(HasSubstr("rows.csv:2"), HasSubstr("target"), HasSubstr("names of rows above"),
                    HasSubstr("rows.csv:3"), HasSubstr("bytes")));
}

}  // namespace
}  // namespace orrery::testing
