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
                   "traffic = tornado; injection_rate = 0.05; packet_size = 2; seed = 1;\n");
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

}  // namespace
}  // namespace orrery::testing
