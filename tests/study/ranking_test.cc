// SPDX-License-Identifier: Apache-2.0
#include "study/ranking.h"

#include <gtest/gtest.h>

namespace orrery::study {
namespace {

ValidationRow figure(int line, const char* metric, double predicted, double published) {
  ValidationRow row;
  row.line = line;
  row.metric = metric;
  row.predicted = predicted;
  row.published = published;
  row.devices = 1;
  return row;
}

ValidationResult result_with(std::vector<ValidationRow> rows) {
  ValidationResult result{.profile = {},
                          .csv = "t.csv",
                          .machine = "",
                          .rows = std::move(rows),
                          .score = {},
                          .groups = {}};
  return result;
}

TEST(Ranking, CountsPairsThatDifferInOneRespectByMoreThanFivePerCent) {
  const auto table = parse_csv(
      "model,tp,gpu\n"
      "a,1,x\n"   // 2: published 10, predicted 9
      "a,2,x\n"   // 3: 5, 6: with 2 another layout, in order
      "a,2,y\n"   // 4: 5.2, 7: with 3 within 5 %, with 2 two respects
      "a,2,z\n"   // 5: 4, 8: with 3 and 4 another machine, both out of order
      "b,1,x\n",  // 6: another model
      "t.csv");
  ASSERT_TRUE(table);
  ValidationResult result =
      result_with({figure(2, "tpot", 9, 10), figure(3, "tpot", 6, 5), figure(4, "tpot", 7, 5.2),
                   figure(5, "tpot", 8, 4), figure(6, "tpot", 1, 1)});
  result.profile.ranking = Ranking{
      .metric = "tpot", .same = {"model"}, .by = {{"layout", {"tp"}}, {"machine", {"gpu"}}}};
  compare_rows(*table, result);
  EXPECT_EQ(result.ranking.at("layout").pairs, 1U);
  EXPECT_EQ(result.ranking.at("layout").right, 1U);
  EXPECT_EQ(result.ranking.at("machine").pairs, 2U);
  EXPECT_EQ(result.ranking.at("machine").right, 0U);
}

TEST(Ranking, RegretIsWhatTheChoiceUnderALimitLacks) {
  // Rates seats x 11 / (ttft + 10 tpot): of line 2 11/110, published and predicted; of line 3
  // 22/130 published, 22/210 predicted; of line 4 44/220 published, 44/300 predicted.
  const auto table = parse_csv("seats,tokens\n1,11\n2,11\n4,11\n", "t.csv");
  ASSERT_TRUE(table);
  ValidationResult result = result_with({figure(2, "tpot", 10, 10), figure(2, "ttft", 10, 10),
                                         figure(3, "tpot", 20, 12), figure(3, "ttft", 10, 10),
                                         figure(4, "tpot", 29, 21), figure(4, "ttft", 10, 10)});
  result.profile.regret = Regret{.metric = "tpot",
                                 .ttft = "ttft",
                                 .limits = {5, 15, 20, 30},
                                 .within = {},
                                 .seats = "seats",
                                 .tokens = "tokens"};
  compare_rows(*table, result);
  EXPECT_EQ(result.regret.at(5).groups, 0U);  // none keeps it
  // Under 15 line 2 is chosen, where line 3 would have kept it: 0.1 instead of 22/130.
  EXPECT_EQ(result.regret.at(15).groups, 1U);
  EXPECT_EQ(result.regret.at(15).broken, 0U);
  EXPECT_NEAR(result.regret.at(15).loss, 1 - 0.1 / (22.0 / 130), 1e-12);
  EXPECT_NEAR(result.regret.at(20).loss, 0, 1e-12);
  EXPECT_NEAR(result.regret.at(30).loss, 0, 1e-12);
  ValidationResult optimistic = result_with({figure(2, "tpot", 10, 10), figure(2, "ttft", 10, 10),
                                             figure(4, "tpot", 19, 21), figure(4, "ttft", 10, 10)});
  optimistic.profile.regret = result.profile.regret;
  compare_rows(*table, optimistic);
  EXPECT_EQ(optimistic.regret.at(20).broken, 1U);
  // 19 does not leave a tenth of 20 free, 10 does: line 2 it is, as nothing else was measured
  // below.
  optimistic.profile.regret->spare = 0.1;
  optimistic.regret.clear();
  compare_rows(*table, optimistic);
  EXPECT_EQ(optimistic.regret.at(20).groups, 1U);
  EXPECT_EQ(optimistic.regret.at(20).broken, 0U);
  EXPECT_NEAR(optimistic.regret.at(20).loss, 0, 1e-12);
}

}  // namespace
}  // namespace orrery::study
