// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kDirect = "switch8_all_reduce_1MiB_direct_unaware";

std::string folder_of(const std::string& name) {
  return std::string(ORRERY_SOURCE_DIR) + "/tests/compat/astra/cases/" + name + "/";
}

/// A reference case of ASTRA-sim, natively. `system`: another system file.
Outcome native(const std::string& name, const std::string& more = {}, std::string system = {}) {
  const std::string folder = folder_of(name);
  system = system.empty() ? folder + "system.json" : system;
  return orrery("astra --workload-configuration=" + folder +
                "trace --system-configuration=" + system + " --network-configuration=" + folder +
                "network.yml --remote-memory-configuration=" + folder + "memory.json --native " +
                more);
}

nlohmann::json native_json(const std::string& name, const std::string& more = {}) {
  const Outcome run = native(name, "--json " + more);
  EXPECT_EQ(run.status, 0) << run.err;
  return nlohmann::json::parse(run.out);
}

TEST(AstraNative, MessagesPassATopologyOfLinks) {
  // The 8 NPUs on two leaves with one trunk: an all-reduce by direct exchange sends 4 x 4 parts
  // each way over it, more than the 7 that leave a port. Ports and flow say so alike.
  const auto time = [](const std::string& more) {
    return native_json(kDirect, more)["native"]["cycles"].get<double>();
  };
  const std::string trunk = " --topology leaf_spine:leaves=2,spines=1,hosts=4,bandwidth=50GiB/s";
  const double free = time("--network flow");
  EXPECT_GT(time("--network flow" + trunk), 1.2 * free);
  EXPECT_NEAR(time("--network ports" + trunk) / time("--network flow" + trunk), 1, 5e-3);
  EXPECT_THAT(native(kDirect, "--topology leaf_spine:leaves=1,spines=1,hosts=4").err,
              HasSubstr("at least 8 hosts"));
}

TEST(AstraNative, ReadsTheFilesOfTheNs3BackEnd) {
  // 8 NPUs of 400 Gbit/s on one switch, 500 ns a cable: each of the 14 parts of an all-reduce by
  // direct exchange is 128 KiB / 50e9 B/s = 2621.44 ns, 7 after one another in each half; 1000 ns
  // and a delay of 10 ns for each, and of 10 for each of 12 further messages: 2 * (7 * 2621.44 +
  // 1000 + 10) + 120 = 38840.16.
  const Folder files;
  std::string links = "9 1 8\n8\n";
  for (int npu = 0; npu < 8; ++npu) {
    links += std::to_string(npu) + " 8 400Gbps 0.0005ms 0\n";
  }
  files.write("ns3_links.txt", links);
  const std::string network =
      files.write("ns3_config.txt", "ENABLE_QCN 1\nTOPOLOGY_FILE ns3_links.txt\nCC_MODE 12\n");
  const std::string dims = files.write("dims.json", R"({"logical-dims": ["8"]})");
  const std::string folder = folder_of(kDirect);
  const auto run = [&](const std::string& dimensions, const std::string& how) {
    return orrery("astra --workload-configuration=" + folder + "trace --system-configuration=" +
                  folder + "system.json --network-configuration=" + network +
                  " --logical-topology-configuration=" + dimensions +
                  " --remote-memory-configuration=" + folder + "memory.json --json " + how);
  };
  const Outcome flow = run(dims, "--native --network flow");
  ASSERT_EQ(flow.status, 0) << flow.err;
  EXPECT_THAT(flow.err, HasSubstr("only TOPOLOGY_FILE is read"));
  const auto json = nlohmann::json::parse(flow.out);
  EXPECT_NEAR(json["native"]["cycles"].get<double>(), 38'840, 1);
  // ASTRA-sim's engine on these links: its 7,155 cycles unaware of them are 2 * 3441 of messages
  // and 273 of reductions and delays.
  const Outcome own = run(dims, "");
  ASSERT_EQ(own.status, 0) << own.err;
  EXPECT_EQ(nlohmann::json::parse(own.out)["ranks"][7]["cycles"], 2 * (18'350 + 1000) + 273);
  const Outcome wrong =
      run(files.write("no_dims.json", R"({"logical-dims": ["8", "0"], "x": 1})"), "");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("sizes such as \"8\""), HasSubstr("not '0'"),
                               HasSubstr("x: unknown field")));
}

TEST(AstraNative, ShowsBothSideBySide) {
  const Outcome run = native(kDirect);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("8 ranks on "), HasSubstr("network ports"),
                             HasSubstr("astra unaware"), HasSubstr("native"), HasSubstr("7155"),
                             HasSubstr("dimension 0"), HasSubstr("world exposed")));
}

TEST(AstraNative, SevenMessagesShareOnePort) {
  // 8 NPUs behind a switch, 128 KiB each at 50 * 2^30 B/s (2441.4 ns), 1000 ns, delay 10: an
  // all-reduce is 2 * (7 * 2441.4 + 1000 + 10) = 36199, and the delay of each further message:
  // 12 * 10 more.
  const auto ports = native_json(kDirect);
  EXPECT_EQ(ports["compat"]["cycles"], 7155);
  EXPECT_EQ(ports["native"]["cycles"], 36199 + 120);
  EXPECT_NEAR(ports["ratio"].get<double>(), 36319.0 / 7155, 0.001);
  EXPECT_EQ(ports["native"]["simulated"], 1);
  EXPECT_EQ(ports["breakdown"]["world exposed"], 36319);
  const auto fifo = native_json(kDirect, "--network fifo");
  EXPECT_EQ(fifo["network"], "fifo");
  EXPECT_EQ(fifo["native"]["cycles"], 36319);
  ASSERT_EQ(fifo["ranks"].size(), 8U);
  EXPECT_EQ(fifo["ranks"][7]["compat_cycles"], 7155);
  EXPECT_EQ(fifo["ranks"][7]["native_cycles"], 36319);
}

TEST(AstraNative, RunsWhatAstraCannot) {
  const auto json = native_json("quirk_halving_doubling_6_npus");
  EXPECT_THAT(json["compat"]["error"].get<std::string>(), HasSubstr("power of two"));
  EXPECT_TRUE(json["ratio"].is_null());
  EXPECT_TRUE(json["ranks"][0]["compat_cycles"].is_null());
  EXPECT_GT(json["native"]["cycles"].get<std::int64_t>(), 0);
}

TEST(AstraNative, AgreesWhereTheModelsAre) {
  // One step after the other and nothing shared: equal but for the delay of 10 ns that the loop
  // charges messages and not the start of a phase, and for reductions.
  const auto ratio = [](const char* name, const char* more = "") {
    return native_json(name, more)["ratio"].get<double>();
  };
  EXPECT_EQ(ratio("compute_cpu_and_gpu_parallel"), 1);
  EXPECT_EQ(ratio("quirk_roofline_zero_bytes"), 1);
  EXPECT_NEAR(ratio("remote_memory_per_npu"), 1, 1e-6);
  EXPECT_NEAR(ratio("pipeline_4stages_p2p_unaware"), 1, 0.001);
  EXPECT_NEAR(ratio("switch8_all_gather_1MiB_halving_doubling_unaware"), 1, 0.001);
  EXPECT_NEAR(ratio("quirk_p2p_peer_differs_in_two_dims", "--quirk first-dimension=off"), 1, 0.001);
}

TEST(AstraNative, GroupsAcrossDimensionsPayForEach) {
  // The slow dimension is charged: far slower than ASTRA-sim's first differing dimension.
  const std::string name = "quirk_group_across_two_dims";
  const auto json =
      native_json(name, "--comm-group-configuration=" + folder_of(name) + "groups.json");
  EXPECT_GT(json["native"]["cycles"].get<std::int64_t>(), 100'000);
}

TEST(AstraNative, OnAMachineItIsWhatSimulateSays) {
  const auto json = native_json(kDirect, "--machine dgx-h100");
  EXPECT_EQ(json["machine"], "dgx-h100");
  EXPECT_EQ(json["dimensions"][0]["name"], "nvlink");
  const Outcome simulated = orrery("simulate --json --machine dgx-h100 --devices 8 --chakra " +
                                   folder_of(kDirect) + "trace");
  ASSERT_EQ(simulated.status, 0) << simulated.err;
  EXPECT_EQ(json["native"]["cycles"],
            static_cast<std::int64_t>(
                nlohmann::json::parse(simulated.out)["step_time_s"].get<double>() * 1e9));
}

TEST(AstraNative, AnAllReduceOfEightH100TakesWhatWasMeasured) {
  // 256 MiB over NVLS: 1,092.1 us (tests/calibrate/measured/dgx-h100.csv).
  const auto json = native_json("hgx_h100_8_all_reduce_256MiB_ring_unaware", "--machine dgx-h100");
  EXPECT_NEAR(json["native"]["cycles"].get<double>(), 1'092'100, 0.02 * 1'092'100);
}

TEST(AstraNative, ARootIsBusyUntilItsMessagesHaveLeft) {
  // 64 MiB broadcast along four NPUs at 50 * 2^30 B/s: 1.25 ms on each link.
  const Folder files;
  const std::string trace = files.write("trace.json", R"([{"version": "1.0.0"},
    {"id": 1, "name": "b", "type": 7, "attr": [{"name": "is_cpu_op", "bool_val": false},
     {"name": "comm_type", "int64_val": 5}, {"name": "comm_size", "int64_val": 67108864}]}])");
  const std::string network = files.write("network.yml",
                                          "topology: [ Switch ]\nnpus_count: [ 4 ]\n"
                                          "bandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n");
  const std::string other = folder_of(kDirect);
  const Outcome run = orrery("astra --native --json --workload-configuration=" + (files / "trace") +
                             " --system-configuration=" + other + "system.json" +
                             " --network-configuration=" + network +
                             " --remote-memory-configuration=" + other + "memory.json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto ranks = nlohmann::json::parse(run.out)["ranks"];
  ASSERT_EQ(ranks.size(), 4U);
  EXPECT_GE(ranks[0]["native_cycles"], 1'249'999);
  EXPECT_GE(ranks[3]["native_cycles"], ranks[0]["native_cycles"]);
}

TEST(AstraNative, MistakesNameFlagAndChoices) {
  const Outcome unknown = native(kDirect, "--network max-min --machine dgx-h10");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, AllOf(HasSubstr("--network: found 'max-min'"),
                                 HasSubstr("did you mean 'flow'"), HasSubstr("dgx-h100")));
  const Outcome alone = orrery("astra --network ports --machine dgx-h100");
  EXPECT_THAT(alone.err, AllOf(HasSubstr("found 'ports', expected fifo, flow, flit or packet"),
                               HasSubstr("--machine: goes with --native")));
}

TEST(AstraNative, WhatTheLoopHasNothingForNamesFileAndField) {
  const Folder folder;
  std::string system = content(folder_of(kDirect) + "system.json");
  system.insert(system.find('{') + 1, "\"replay-only\": 1, ");
  const Outcome run = native(kDirect, {}, folder.write("system.json", system));
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("system.json: replay-only: found '1', expected 0"),
                             HasSubstr("--native")));
}

}  // namespace
}  // namespace orrery::testing
