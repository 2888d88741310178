// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Collective, TableHasOneLinePerSize) {
  const Outcome run =
      orrery("collective all_reduce --machine dgx-h100 --devices 64 --min 8B --max 8GiB");
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string table = run.out.substr(0, run.out.find("note: "));  // what auto leaves out
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3 + 31);
  EXPECT_THAT(run.out, AllOf(HasSubstr("algbw"), HasSubstr("busbw"), HasSubstr("8589934592")));
}

TEST(Collective, JsonRowsAreInBytesAndSeconds) {
  const Outcome run = orrery(
      "collective all_gather --machine dgx-a100-80g --devices 8 --min 1MiB --max 4MiB --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto rows = nlohmann::json::parse(run.out)["rows"];
  ASSERT_EQ(rows.size(), 3U);
  for (const auto& row : rows) {
    const double algbw = row["bytes"].get<double>() / row["time_s"].get<double>();
    EXPECT_NEAR(row["algbw"].get<double>() / algbw, 1, 1e-9);
    EXPECT_NEAR(row["busbw"].get<double>() / algbw, 7.0 / 8, 1e-9);
    EXPECT_EQ(row["algorithm"], "ring");
  }
  EXPECT_EQ(rows[2]["bytes"], 4 << 20);
}

TEST(Collective, NamesOfNcclAreUnderstood) {
  EXPECT_EQ(orrery("collective sendrecv --machine dgx-h100 --devices 2").status, 0);
  const Outcome run =
      orrery("collective all_reduce --machine dgx-h100 --devices 16 --algorithm tree --max 8B");
  EXPECT_THAT(run.out, HasSubstr("double_binary_tree"));
}

TEST(Collective, ThemisKeepsAllDimensionsBusy) {
  // 8 nodes of 8: never slower than the natural order in one piece or in as many chunks.
  const auto seconds = [](const std::string& how) {
    const Outcome run = orrery(
        "collective all_reduce --machine dgx-a100-80g --devices 64 --min 1GiB --max 1GiB --json " +
        how);
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out)["rows"][0]["time_s"].get<double>();
  };
  const double themis = seconds("--algorithm themis --chunks 64");
  EXPECT_LE(themis, seconds("--algorithm hierarchical --chunks 64"));
  EXPECT_LT(themis, 0.8 * seconds("--algorithm hierarchical"));
  EXPECT_LE(seconds("--algorithm themis"), themis);
}

TEST(Collective, APlanMayAskForThemis) {
  const Outcome run = orrery(
      "simulate --model gpt2 --dp 64 --global-batch 64 --machine dgx-a100-80g --dp-algorithm "
      "themis");
  EXPECT_EQ(run.status, 0) << run.err;
}

TEST(Collective, ChunksNeedAnAlgorithmThatHasThem) {
  const std::string command = "collective all_reduce --machine dgx-h100 --devices 16 ";
  const Outcome ring = orrery(command + "--algorithm ring --chunks 4");
  EXPECT_EQ(ring.status, 2);
  EXPECT_THAT(ring.err, AllOf(HasSubstr("--chunks"), HasSubstr("themis or hierarchical")));
  EXPECT_EQ(orrery(command + "--algorithm themis --chunks 0x").status, 2);
  EXPECT_EQ(orrery(command + "--algorithm themis --chunks 100000").status, 2);
}

TEST(Collective, WhatAMachineCannotDoIsSaid) {
  const Outcome run =
      orrery("collective all_reduce --machine dgx-a100-80g --devices 8 --algorithm in_switch");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("--algorithm: found 'in_switch'"), HasSubstr("ring")));
}

TEST(Collective, APlanCannotAskForASwitchThatDoesNotAddUp) {
  const std::string plan =
      "simulate --model gpt2-medium --tp 8 --global-batch 8 --tp-algorithm in_switch --machine ";
  EXPECT_EQ(orrery(plan + "dgx-h100").status, 0);
  const Outcome run = orrery(plan + "dgx-a100-80g");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("--tp-algorithm: found 'in_switch'"),
                             HasSubstr("over the 8 ranks of tp on dgx-a100-80g: auto, ring")));
}

TEST(Collective, KernelsOfServingEnginesAreAskedForByName) {
  const std::string command = "collective all_reduce --machine dgx-h100 --min 4KiB --max 4KiB ";
  const auto seconds = [&](const std::string& flags) {
    return nlohmann::json::parse(
               orrery(command + "--json --devices 8 " + flags).out)["rows"][0]["time_s"]
        .get<double>();
  };
  EXPECT_EQ(seconds("--algorithm custom"), seconds("--algorithm one_shot"));
  EXPECT_LT(seconds("--algorithm custom_trtllm"), seconds("--algorithm custom"));
  EXPECT_LT(2 * seconds("--algorithm custom"), seconds("--algorithm custom_eager"));
  EXPECT_LT(2 * seconds("--algorithm custom"), seconds(""));
  const Outcome nodes = orrery(command + "--devices 16 --algorithm custom");
  EXPECT_EQ(nodes.status, 2);
  EXPECT_THAT(nodes.err, HasSubstr("--algorithm: found 'custom'"));
}

TEST(Collective, APlanMayAskForServingKernels) {
  const std::string plan =
      "simulate --model gpt2-medium --tp 8 --global-batch 8 --json --machine dgx-h100 ";
  const auto step = [&](const std::string& flags) {
    const Outcome run = orrery(plan + flags);
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out)["step_time_s"].get<double>();
  };
  EXPECT_LT(step("--tp-algorithm custom"), step(""));
}

TEST(Collective, WhatAutomaticLeavesOutIsSaid) {
  const std::string command =
      "collective all_reduce --machine dgx-h100 --devices 8 --min 64KiB --max 1MiB ";
  EXPECT_THAT(orrery(command).out, HasSubstr("note: custom would be faster from 64 KiB to 1 MiB"));
  const auto json = nlohmann::json::parse(orrery(command + "--json").out);
  EXPECT_FALSE(json["notes"].empty());
  EXPECT_TRUE(
      nlohmann::json::parse(orrery(command + "--json --algorithm ring").out)["notes"].empty());
}

TEST(Collective, EveryMessageOnItsLinksTakesTheClosedFormBehindASwitch) {
  const std::string arguments =
      "collective all_gather --machine dgx-a100-80g --devices 8 --min 64MiB --max 64MiB --json";
  const auto closed = nlohmann::json::parse(orrery(arguments).out)["rows"][0]["time_s"];
  const auto run =
      nlohmann::json::parse(orrery(arguments + " --network fifo").out)["rows"][0]["time_s"];
  EXPECT_NEAR(run.get<double>() / closed.get<double>(), 1, 0.01);
  EXPECT_THAT(orrery(arguments + " --network packets").err, HasSubstr("ports, fifo, flow"));
}

TEST(Collective, ASizeWithoutAUnitCountsBytes) {
  const Outcome run =
      orrery("collective all_reduce --machine dgx-h100 --devices 8 --min 512 --max 1024 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  ASSERT_EQ(json.at("rows").size(), 2U);
  EXPECT_EQ(json["rows"][0].at("bytes"), 512);
  EXPECT_EQ(json["rows"][1].at("bytes"), 1024);
}

TEST(Collective, AFactorBeyondAllSizesIsOneRow) {
  const Outcome run = orrery(
      "collective all_reduce --machine dgx-h100 --devices 8 --min 1MiB --factor 1e308 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out).at("rows").size(), 1U);
}

TEST(Collective, MistakesEchoWhatWasGiven) {
  const Outcome run =
      orrery("collective all_reduce --machine dgx-h100 --devices 8 --min 1MiB --max 1KiB");
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err, "--max: found '1KiB', expected at least --min\n");
}

TEST(Collective, MistakesAreNamedTogether) {
  const Outcome run = orrery("collective allreduce --devices two --factor 0");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("did you mean 'all_reduce'"), HasSubstr("--machine"),
                             HasSubstr("--devices: found 'two'")));
}

TEST(Calibrate, CollectivesOfAMachineFitThatMachine) {
  // What `orrery collective` prints is measured, so to speak, and given to another machine.
  const Folder folder;
  const auto rows = nlohmann::json::parse(
      orrery("collective all_gather --machine dgx-h100 --devices 8 --min 1KiB --json").out)["rows"];
  std::string csv = "collective,n_gpus,bytes,time_us\n";
  for (const auto& row : rows) {
    csv += "all_gather,8," + row["bytes"].dump() + "," +
           std::to_string(1e6 * row["time_s"].get<double>()) + "\n";
  }
  const std::string table = folder.write("table.csv", csv);
  const std::string fitted = folder / "fitted.yaml";
  const Outcome run =
      orrery("calibrate collectives " + table + " --machine dgx-a100-80g -o " + fitted + " --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_LT(json["after"]["median"].get<double>(), 0.03);
  EXPECT_LT(json["after"]["median"].get<double>(), json["before"]["median"].get<double>());
  EXPECT_THAT(orrery("show machine " + fitted).out, HasSubstr("measured: table.csv"));
  // The machine that they come from stays as it is.
  EXPECT_THAT(orrery("calibrate collectives " + table + " --machine dgx-h100").out,
              AllOf(HasSubstr("after"), ::testing::Not(HasSubstr("network."))));
}

TEST(Calibrate, AKindThatIsNotMeasuredIsNamed) {
  EXPECT_THAT(orrery("calibrate collective x --machine dgx-h100").err,
              HasSubstr("did you mean 'collectives'"));
}

TEST(CollectiveCommand, ATopologyFileOfTheMachineChangesLittle) {
  const std::string inputs = std::string(ORRERY_SOURCE_DIR) + "/tests/machine/topology/inputs/";
  const auto busbw = [](const std::string& machine, const std::string& more) {
    const Outcome run = orrery(
        "collective all_reduce --devices 8 --min 1GiB --max 1GiB --json "
        "--algorithm ring --machine " +
        machine + more);
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out).at("rows").at(0).at("busbw").get<double>();
  };
  const double a100 = busbw("dgx-a100-80g", "");
  const std::string nccl = " --topology " + inputs + "nccl_nvswitch_and_pcie.xml";
  EXPECT_NEAR(busbw("dgx-a100-80g", nccl) / a100, 1, 0.05);
  // Four NVSwitches of together the bandwidth of one are spread over; a hash takes one of them.
  const std::string four = " --topology " + inputs + "simai_4_nvswitches.txt";
  const double one = busbw("dgx-h100", " --topology " + inputs + "simai_1_nvswitch.txt");
  EXPECT_NEAR(busbw("dgx-h100", four) / one, 1, 0.001);
  EXPECT_NEAR(busbw("dgx-h100", four + " --routing spray") / one, 1, 0.001);
  EXPECT_LT(busbw("dgx-h100", four + " --routing ecmp") / one, 0.5);
  const Outcome alone =
      orrery("collective all_reduce --machine dgx-h100 --devices 8 --routing spray");
  EXPECT_EQ(alone.err, "--routing: goes with --topology\n");
}

}  // namespace
}  // namespace orrery::testing
