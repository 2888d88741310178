// SPDX-License-Identifier: Apache-2.0
// examples/moe, reinforcement, sessions, long_context, fsdp, low_precision, adapters, offload,
// faults, c4 and packet_spraying as their READMEs say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "command.h"

namespace orrery::testing {
namespace {

/// Rows of the tables that an example prints: its first `width` characters, without blanks at
/// either end, and the numbers behind them. A name that comes again adds its numbers.
std::map<std::string, std::vector<double>> example_rows_of(const std::string& example,
                                                           std::size_t width) {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string command = "ORRERY=" + std::string(ORRERY_BINARY) + " " + ORRERY_SOURCE_DIR +
                              "/examples/" + example + "/run.sh >" + out;
  EXPECT_EQ(std::system(command.c_str()), 0) << example;
  std::map<std::string, std::vector<double>> rows;
  std::istringstream lines(content(out));
  for (std::string line; std::getline(lines, line);) {
    if (line.size() <= width) {
      continue;
    }
    std::istringstream words(line.substr(width));
    std::vector<double> values;
    for (double value = 0; words >> value;) {
      values.push_back(value);
    }
    const std::size_t first = line.find_first_not_of(' ');
    const std::size_t last = line.find_last_not_of(' ', width - 1);
    if (values.size() > 2 && last != std::string::npos) {
      std::vector<double>& row = rows[line.substr(first, last - first + 1)];
      row.insert(row.end(), values.begin(), values.end());
    }
  }
  return rows;
}

TEST(Examples, WholeExpertsInsideANodeAndFewerCopiesBetweenNodesAreFaster) {
  auto rows = example_rows_of("moe", 24);  // step, exposed, hidden, memory
  ASSERT_EQ(rows.size(), 10U);
  EXPECT_LT(rows["ep 8, etp 1"][0], rows["ep 8, etp 2"][0]);
  EXPECT_GT(rows["ep 8, etp 2"][1], 4 * rows["ep 8, etp 1"][1]);
  EXPECT_LT(rows["ep 8, etp 2"][3], rows["ep 8, etp 1"][3]);
  EXPECT_LT(rows["hierarchical"][1], rows["alltoall"][1]);
  EXPECT_LT(rows["alltoall, overlap_ep"][0], rows["alltoall"][0]);
  EXPECT_GT(rows["alltoall, overlap_ep"][2], 0);
  EXPECT_LT(rows["hierarchical, overlap_ep"][0], rows["alltoall, overlap_ep"][0]);
}

TEST(Examples, GeneratingBesideTrainingHidesTheLongestAnswers) {
  auto rows = example_rows_of("reinforcement", 24);  // generate, score, train, reshard, step
  ASSERT_EQ(rows.size(), 4U);
  const std::vector<double>& turns = rows["32 in turn"];
  const std::vector<double>& halves = rows["16 beside 16"];
  ASSERT_EQ(turns.size(), 5U);
  EXPECT_NEAR(turns[4], turns[0] + turns[1] + turns[2] + turns[3], 0.02);
  EXPECT_GT(turns[0], 0.7 * rows["8 beside 24"][0]);  // four times the engines
  EXPECT_LT(turns[1], 0.3 * rows["8 beside 24"][1]);  // prompts alone
  EXPECT_NEAR(turns[2] / rows["24 beside 8"][2], 0.25, 0.01);
  EXPECT_LT(halves[4], turns[4]);
  EXPECT_LT(halves[4], rows["24 beside 8"][4]);
}

TEST(Examples, SlowSessionsAdaptersAndLoadsFindTheirPlace) {
  auto rows = example_rows_of("sessions", 24);
  ASSERT_EQ(rows.size(), 15U);
  // TTFT, found, fetched: all of a conversation is found, from a disk no sooner than computed.
  EXPECT_LT(rows["host"][0], 0.6 * rows["small"][0]);
  EXPECT_GT(rows["disk"][0], 2 * rows["host"][0]);
  // A request that is preempted finds what it had once more.
  EXPECT_GE(rows["disk"][1], rows["host"][1]);
  EXPECT_LT(rows["disk"][1], 1.01 * rows["host"][1]);
  EXPECT_GT(rows["host"][1], 50 * rows["small"][1]);
  // A store of four engines has what any of them computed.
  EXPECT_EQ(rows["4 engines, store"][1], rows["host"][1]);
  EXPECT_LT(rows["4 engines, host"][1], 0.5 * rows["host"][1]);
  EXPECT_LT(rows["4 engines, store"][0], 0.8 * rows["4 engines, host"][0]);
  // TTFT, TPOT, copied.
  EXPECT_GE(rows["1"][1], rows["0"][1]);
  EXPECT_EQ(rows["8"][2], 8);
  EXPECT_GT(rows["64"][0], 10 * rows["8"][0]);
  // TTFT median and P99, engine seconds.
  EXPECT_LT(rows["1 to 4"][1], rows["1 fixed"][1] / 4);
  EXPECT_LT(rows["1 to 4"][2], 0.7 * rows["4 fixed"][2]);
  // TTFT and latency median, latency P99.
  EXPECT_LT(rows["fastserve"][1], rows["vllm@0.10"][1]);
  EXPECT_GT(rows["fastserve"][2], rows["orca"][2]);
}

TEST(Examples, AllExchangesAreAlikeInsideANodeAndTheRingIsSlowestAcross) {
  auto rows = example_rows_of("long_context", 16);  // step, MFU, exchange, memory
  ASSERT_EQ(rows.size(), 9U);
  // Each of eight steps of the ring starts a kernel and reads queries and their gradients again.
  EXPECT_NEAR(rows["8 p2p"][0] / rows["8 all_gather"][0], 1, 0.03);
  EXPECT_NEAR(rows["8 p2p"][0] / rows["8 a2a"][0], 1, 0.04);
  EXPECT_LT(rows["16 a2a+p2p"][0], rows["16 all_gather"][0]);
  EXPECT_LT(rows["16 all_gather"][0], rows["16 p2p"][0]);
  EXPECT_LT(rows["16 p2p"][3], rows["4 p2p"][3]);
}

TEST(Examples, ShardsFollowTheNetwork) {
  auto rows = example_rows_of("fsdp", 22);  // step, MFU, memory on Frontier, then on V100s
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_LT(1.05 * rows["2          8"][0], rows["384        384"][0]);
  EXPECT_GT(rows["2          8"][2], rows["384        384"][2]);
  EXPECT_LT(rows["2          8"][2], 64);
  ASSERT_EQ(rows["64         64"].size(), 6U);
  EXPECT_GT(rows["64         64"][3], 8 * rows["8          8"][3]);
}

TEST(Examples, FewerBitsTakeLessTimeAndEveryScaleIsPaidFor) {
  auto rows = example_rows_of("low_precision", 26);  // step, tokens/s, memory
  ASSERT_EQ(rows.size(), 8U);
  EXPECT_LT(rows["dgx-h100     fp8-delayed"][0], rows["dgx-h100     fp8-current"][0]);
  EXPECT_LT(rows["dgx-h100     fp8-current"][0], rows["dgx-h100     none"][0]);
  // No recipe halves the step: only the GEMMs of the layers get faster.
  EXPECT_GT(rows["dgx-h100     fp8-delayed"][0], 0.5 * rows["dgx-h100     none"][0]);
  EXPECT_LT(rows["dgx-b200     nvfp4"][0], rows["dgx-b200     mxfp8"][0]);
  EXPECT_LT(rows["dgx-b200     nvfp4"][2], rows["dgx-b200     none"][2]);
}

TEST(Examples, AdaptersAreCountedAsPeftCountsThemAndFewerBitsTakeLessMemory) {
  auto rows = example_rows_of("adapters", 26);  // adapters, step, weights, states, all
  EXPECT_EQ(rows["llama-2-7b, nf4"][0], 39'976'960);
  EXPECT_EQ(rows["llama-3-8b, nf4"][0], 41'943'040);
  EXPECT_EQ(rows["llama-3-8b, q k v as one"][0], 35'651'584);
  EXPECT_LT(rows["llama-2-7b, nf4"][2], rows["llama-2-7b, int4"][2]);
  EXPECT_LT(rows["llama-2-7b, int4"][2], rows["llama-2-7b, int8"][2]);
  EXPECT_LT(rows["llama-2-7b, int8"][4], rows["llama-2-7b, compute_type"][4]);
  EXPECT_LT(rows["llama-2-7b, compute_type"][1], rows["llama-2-7b, nf4"][1]);
  // Bytes a parameter: Adam 4 + 8, Lion 4 + 4.
  EXPECT_NEAR(rows["lion"][3] / rows["adam"][3], 8.0 / 12, 1e-3);
  EXPECT_LT(rows["adamw_8bit"][3], rows["lion"][3]);
  EXPECT_LT(rows["adafactor"][3], rows["adamw_8bit"][3]);
}

TEST(Examples, OffloadBuysMemoryWithTime) {
  auto rows = example_rows_of("offload", 22);  // step, tokens/s, memory
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_GT(rows["none                0"][2], 80);
  EXPECT_LT(rows["none              0.5"][2], 80);
  EXPECT_LT(rows["none              0.5"][0], 1.2 * rows["none                0"][0]);
  EXPECT_LT(rows["cpu                 1"][2], 0.5 * rows["none                0"][2]);
  EXPECT_GT(rows["nvme                0"][0], rows["cpu                 0"][0]);
}

/// Returns what an example prints, line by line.
std::vector<std::string> lines_of(const std::string& example, const std::string& words = "") {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string command = "ORRERY=" + std::string(ORRERY_BINARY) + " " + ORRERY_SOURCE_DIR +
                              "/examples/" + example + "/run.sh " + words + " >" + out;
  EXPECT_EQ(std::system(command.c_str()), 0) << example;
  std::vector<std::string> lines;
  std::istringstream text(content(out));
  for (std::string line; std::getline(text, line);) {
    lines.push_back(line);
  }
  return lines;
}

TEST(Examples, TheStragglerIsFoundAndFlowsGoAroundALostLink) {
  const auto lines = lines_of("faults");
  EXPECT_THAT(lines, ::testing::Contains("straggler: rank 5"));
  EXPECT_THAT(lines, ::testing::Contains("rerouted      2"));
}

// Published figures (recalled): 360, 353.86 to 360.57, 185.76 and 301.46 Gbit/s.
TEST(Examples, PlannedPathsGiveWhatC4PReports) {
  std::map<std::string, double> median;
  for (const std::string& line : lines_of("c4", "1")) {
    const std::size_t name = line.find(',');
    median[line.substr(0, name)] = std::atof(line.c_str() + line.find(',', name + 1) + 1);
  }
  EXPECT_NEAR(median["one job; matched ports; uplinks by job (C4P)"], 360, 0.01 * 360);
  EXPECT_NEAR(median["8 jobs; matched ports; uplinks by job (C4P)"], 360.57, 0.01 * 360.57);
  EXPECT_NEAR(median["1 of 8 uplinks down; static; slowest job"], 185.76, 0.05 * 185.76);
  EXPECT_NEAR(median["1 of 8 uplinks down; dynamic; slowest job"], 301.46, 0.06 * 301.46);
  EXPECT_LT(median["8 jobs; hashed; 2 connections"],
            0.5 * median["8 jobs; matched ports; uplinks by job (C4P)"]);
  // C4P's law: with 1 of n uplinks down no more than (n - 1) / n of healthy.
  EXPECT_LE(median["1 of 8 uplinks down; dynamic; slowest job"],
            7.0 / 8 * median["8 jobs; matched ports; uplinks by job (C4P)"] + 0.1);
}

// Ethereal's claim (arXiv 2407.00550): single paths load links no more than spraying; planned again
// they lose no more with an uplink either.
/// Rows of both tables of packet_spraying. With coloured paths no pattern needs packets sprayed.
int coloured_rows(const std::string& arguments) {
  int rows = 0;
  bool after_loss = false;  // the second table
  for (const std::string& line : lines_of("packet_spraying", arguments)) {
    std::vector<double> cells;
    std::istringstream text(line);
    for (std::string cell; std::getline(text, cell, ',');) {
      cells.push_back(std::atof(cell.c_str()));
    }
    after_loss = after_loss || line.empty();
    if (cells.size() != 11 || cells[0] == 0) {  // a title
      continue;
    }
    ++rows;
    if (after_loss) {  // beside sprayed, and coloured once
      EXPECT_LE(cells[10], cells[4] + 0.05) << line;
      EXPECT_LE(cells[10], cells[9]) << line;
    } else {
      EXPECT_EQ(cells[10], 1) << line;
    }
  }
  return rows;
}

TEST(Examples, ColouredPathsNeedNoSpraying) {
  EXPECT_EQ(coloured_rows("1 '' 8,8,6"), 5 + 2);
}

TEST(Examples, SlowColouredPathsOfAllShapesNeedNoSpraying) {
  EXPECT_EQ(coloured_rows("1"),
            24 + 6);  // 5 shapes, 5 patterns, but no full exchange of 1,024 hosts
}

}  // namespace
}  // namespace orrery::testing
