// SPDX-License-Identifier: Apache-2.0
#include "report/astra.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace orrery::report {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Ranks 0 and 2 finish at 9 ns of which 4 are exposed, rank 1 at 7.5 ns, all exposed.
astra::RunResult three_ranks() {
  astra::RunResult result;
  result.classes = {{0, Time(9'000), Time(4'000)}, {1, Time(7'500), Time(7'500)}};
  result.class_of = {0, 1, 0};
  result.events = 12;
  result.messages = 5;
  return result;
}

TEST(AstraReport, LinesAreInOrderOfFinishThenRankInWholeCycles) {
  EXPECT_EQ(astra_lines(three_ranks()),
            "[workload] [info] sys[1] finished, 7 cycles, exposed communication 7 cycles.\n"
            "[workload] [info] sys[0] finished, 9 cycles, exposed communication 4 cycles.\n"
            "[workload] [info] sys[2] finished, 9 cycles, exposed communication 4 cycles.\n");
}

TEST(AstraReport, JsonHasRanksByNumberAndTotals) {
  astra::RunOptions options;
  options.quirks.set(astra::Quirk::group_ring, false);
  const std::vector<std::string> warnings{"system.json:1: a key: a warning"};
  const astra::RunResult result = three_ranks();
  const chakra::Statistics traces{
      .memory = Bytes(600), .programs = 2, .stored_nodes = 5, .nodes = 8};
  const auto json = nlohmann::json::parse(astra_json({result, options, warnings, {}, traces}));
  EXPECT_EQ(json["traces"]["nodes"], 8);
  EXPECT_EQ(json["traces"]["bytes_per_node"], 75);  // 600 / 8
  ASSERT_EQ(json["ranks"].size(), 3U);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(json["ranks"][rank]["rank"], rank);
    EXPECT_EQ(json["ranks"][rank]["cycles"], rank == 1 ? 7 : 9);
    EXPECT_EQ(json["ranks"][rank]["exposed_cycles"], rank == 1 ? 7 : 4);
  }
  EXPECT_EQ(json["npus"], 3);
  EXPECT_EQ(json["cycles"], 9);
  EXPECT_EQ(json["cycles_min"], 7);
  EXPECT_EQ(json["exposed_cycles"], 7);
  EXPECT_EQ(json["backend"], "unaware");
  EXPECT_EQ(json["quirks"].size(), astra::kQuirkCount);
  EXPECT_EQ(json["quirks"]["group-ring"], false);
  EXPECT_EQ(json["quirks"]["gib-bandwidth"], true);
  EXPECT_EQ(json["classes"], 2);
  EXPECT_EQ(json["events"], 12);
  EXPECT_EQ(json["messages"], 5);
  EXPECT_EQ(json["warnings"][0], warnings[0]);
  EXPECT_TRUE(json["unfolded"].empty());
}

TEST(AstraReport, TheSummaryNamesTheLastRankAndWhyRanksDidNotFold) {
  astra::RunResult result = three_ranks();
  EXPECT_THAT(astra_summary(result),
              StartsWith("3 ranks finished: 7 to 9 cycles (1 cycle = 1 ns), rank 0 last; 2 classes "
                         "of ranks and 5 messages simulated\n"));
  result.unfolded = {"a mesh has corners"};
  EXPECT_THAT(astra_summary(result), HasSubstr("not folded: a mesh has corners\n"));
  result.classes.pop_back();
  result.class_of = {0, 0, 0};
  EXPECT_THAT(astra_summary(result),
              StartsWith("3 ranks finished: 9 cycles (1 cycle = 1 ns); 1 class of ranks"));
}

}  // namespace
}  // namespace orrery::report
