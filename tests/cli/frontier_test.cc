// SPDX-License-Identifier: Apache-2.0
// examples/frontier as its README says: the findings that take well under a second. Throughput and
// scaling are in tests/validation/frontier_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "command.h"

namespace orrery::testing {
namespace {

using Table = std::map<int, std::vector<double>>;  ///< by the first column

/// Returns what `run.sh FINDING` prints, without the two heading lines.
Table table(const std::string& finding) {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string command = "ORRERY=" + std::string(ORRERY_BINARY) + " " + ORRERY_SOURCE_DIR +
                              "/examples/frontier/run.sh " + finding + " >" + out;
  EXPECT_EQ(std::system(command.c_str()), 0) << finding;
  std::istringstream lines(content(out));
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  Table rows;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    int key = 0;
    words >> key;
    for (double value = 0; words >> value;) {
      rows[key].push_back(value);
    }
  }
  return rows;
}

TEST(Frontier, TensorParallelismOfTwoIsFastestAndBeyondItEachDoublingIsSlower) {
  Table rows = table("tp");  // tp: dp, step, % of peak, memory
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_LT(rows[2][1], rows[1][1]);
  EXPECT_LT(rows[2][1], rows[4][1]);
  EXPECT_LT(rows[4][1], rows[8][1]);
  EXPECT_LT(rows[8][1], rows[16][1]);
}

TEST(Frontier, StagesCostLessWhenMicrobatchesGrowWithThem) {
  const Table rows =
      table("pp");  // pp: GCDs, % of peak with 256, microbatches, % of peak with 8 pp
  ASSERT_EQ(rows.size(), 4U);
  std::vector<double> before;
  for (const auto& [stages, row] : rows) {
    if (!before.empty()) {
      EXPECT_LT(row[1], before[1]) << stages;
      EXPECT_LT(before[3] / row[3], before[1] / row[1]) << stages;
    }
    before = row;
  }
  EXPECT_GT(before[3], 0.85 * rows.at(8)[3]);
}

TEST(Frontier, WhatFewMicrobatchesLoseIsTheBubble) {
  for (const auto& [microbatches, row] : table("microbatches")) {
    EXPECT_NEAR(row[2], row[3], 0.02 * row[3] + 0.1) << microbatches;
  }
}

TEST(Frontier, LargerMicrobatchesGainUntilTheBubbleEatsIt) {
  Table rows = table("microbatch");  // size: % of peak at one batch, at one count, memory
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_GT(rows[2][1], rows[1][1]);
  EXPECT_GT(rows[4][1], rows[2][1]);
  EXPECT_GT(rows[8][1], rows[4][1]);
  EXPECT_LT(rows[8][0], rows[4][0]);
  EXPECT_GT(rows[8][2], rows[1][2]);
}

TEST(Frontier, TheExampleNamesItsFindings) {
  EXPECT_NE(std::system(("ORRERY=" + std::string(ORRERY_BINARY) + " " + ORRERY_SOURCE_DIR +
                         "/examples/frontier/run.sh speed 2>/dev/null")
                            .c_str()),
            0);
}

}  // namespace
}  // namespace orrery::testing
