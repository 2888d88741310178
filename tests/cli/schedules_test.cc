// SPDX-License-Identifier: Apache-2.0
// Pipeline schedules through the command line, and examples/schedules as its README says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>

#include "command.h"

namespace orrery::cli {
namespace {

using testing::content;
using testing::Folder;
using ::testing::HasSubstr;
using testing::orrery;
using testing::Outcome;

TEST(Schedules, TheExampleShowsWhatEachSavesAndCosts) {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string command = "ORRERY=" + std::string(ORRERY_BINARY) + " " + ORRERY_SOURCE_DIR +
                              "/examples/schedules/run.sh >" + out;
  ASSERT_EQ(std::system(command.c_str()), 0);
  struct Row {
    double step = 0;
    double bubble = 0;
    double memory = 0;
  };
  std::map<std::string, Row> rows;
  std::istringstream lines(content(out));
  std::string line;
  std::getline(lines, line);  // the header
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    words >> rows[name].step >> rows[name].bubble >> rows[name].memory;
  }
  ASSERT_EQ(rows.size(), 8U);
  EXPECT_GT(rows["gpipe"].memory, rows["1f1b"].memory);
  EXPECT_LT(rows["interleaved"].bubble, rows["1f1b"].bubble);
  EXPECT_LT(rows["zb-h1"].step, rows["1f1b"].step);
  EXPECT_LT(rows["zb-v"].step, rows["zb-h1"].step);
  EXPECT_LT(rows["dualpipe"].bubble, rows["1f1b"].bubble);
  EXPECT_GT(rows["dualpipe"].memory, rows["zb-h1"].memory);
  EXPECT_LT(rows["v-half"].memory, rows["zb-v"].memory);
  EXPECT_LT(rows["v-min"].memory, rows["v-half"].memory);
  EXPECT_LT(rows["v-half"].bubble, rows["v-min"].bubble);
}

TEST(Schedules, HelpAndMistakesNameThem) {
  EXPECT_THAT(orrery("simulate --help").out,
              HasSubstr("{gpipe,1f1b,interleaved,zb-h1,zb-v,dualpipe,v-half,v-min}"));
  const Outcome odd = orrery(
      "simulate --model llama-3-8b --machine dgx-h100 --tp 2 --pp 1 --schedule dualpipe "
      "--global-batch 4");
  EXPECT_EQ(odd.status, 2);
  EXPECT_THAT(odd.err, HasSubstr("2 or more with schedule dualpipe"));
}

}  // namespace
}  // namespace orrery::cli
