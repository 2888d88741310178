// SPDX-License-Identifier: Apache-2.0
#include "report/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace orrery::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

study::ValidationRow row(const char* key, double predicted, double published) {
  study::ValidationRow made;
  made.key = key;
  made.predicted = predicted;
  made.published = published;
  made.error = predicted / published - 1;
  made.origin = "published-read";
  return made;
}

/// Two scored rows, 10 % and -20 %, and one that a parameter was fitted to.
study::ValidationResult made_result(const char* name) {
  study::ValidationResult result;
  result.profile.table = name;
  result.profile.title = "Made";
  result.profile.source = "Nobody | nowhere";
  result.profile.plan = {{"tp", "2", ""}};
  result.profile.why = {{"tp", "said so"}};
  result.profile.measured = {{.column = "time_s", .label = "", .settings = {}}};
  result.profile.goal = 0.16;
  result.profile.notes = "A note.";
  result.csv = "made.csv";
  result.machine = "box";
  result.rows = {row("a=1", 1.1, 1), row("a=2", 0.8, 1), row("a=3", 3, 1)};
  result.rows[1].oom = true;
  result.rows[2].scored = false;
  result.score = study::score_of(result.rows);
  return result;
}

TEST(ValidationJson, OneTableAlsoStandsAtTheTop) {
  const auto json = nlohmann::json::parse(json_of(std::vector{made_result("t")}));
  EXPECT_NEAR(json.at("mape").get<double>(), 0.15, 1e-12);
  EXPECT_NEAR(json.at("worst").get<double>(), 0.2, 1e-12);
  EXPECT_EQ(json.at("goal_met"), true);
  EXPECT_EQ(json.at("rows"), 2);  // one of the three is not scored
  EXPECT_EQ(json.at("answered"), 2);
  EXPECT_TRUE(json.at("covered").is_null());
  EXPECT_TRUE(json.at("memory_mape").is_null());
  EXPECT_EQ(json.at("predictions").size(), 3U);
  EXPECT_EQ(json.at("predictions")[1].at("oom"), true);
  EXPECT_EQ(json.at("predictions")[2].at("scored"), false);
  EXPECT_NEAR(json.at("p90").get<double>(), 0.2, 1e-12);
  EXPECT_EQ(json.at("tables")[0].at("mape"), json.at("mape"));
  EXPECT_FALSE(json.at("tables")[0].contains("predictions"));  // once is enough
}

TEST(ValidationJson, SeveralTablesStandInAList) {
  const auto json = nlohmann::json::parse(json_of(std::vector{made_result("t"), made_result("u")}));
  EXPECT_FALSE(json.contains("rows"));
  EXPECT_EQ(json.at("tables")[1].at("table"), "u");
  EXPECT_EQ(json.at("tables")[1].at("predictions").size(), 3U);
}

TEST(ValidationJson, GroupsHaveTheSameScores) {
  study::ValidationResult result = made_result("t");
  result.groups["dense 26"] = study::score_of({result.rows[0]});
  const auto json = nlohmann::json::parse(json_of(std::vector{result}));
  ASSERT_EQ(json.at("groups").size(), 1U);
  EXPECT_NEAR(json.at("groups").at("dense 26").at("mape").get<double>(), 0.1, 1e-12);
}

TEST(ValidationPlot, HasADotPerRowThatRanTheDiagonalAndTheNamesOfOutliers) {
  study::ValidationResult result = made_result("t");
  result.rows.push_back(row("a=4", 0, 1));
  result.rows.back().problem = "no model";
  result.rows[2].key = "model=GPT OSS n=8";
  const std::string svg = validation_plot(result);
  std::size_t dots = 0;
  for (std::size_t at = 0; (at = svg.find("<circle", at)) != std::string::npos; ++at) {
    ++dots;
  }
  EXPECT_EQ(dots, 3U);
  EXPECT_THAT(svg, HasSubstr("stroke=\"#888888\""));
  EXPECT_THAT(svg, HasSubstr(">GPT OSS 8</text>"));  // three times the published figure
  EXPECT_THAT(svg, Not(HasSubstr("<polyline")));
}

TEST(ValidationTable, ListsRowsOrTheWorstOfThem) {
  const std::string rows = validation_table({made_result("t")}, true);
  EXPECT_THAT(rows, HasSubstr("+10.0 %"));
  EXPECT_THAT(rows, HasSubstr("does not fit in memory"));
  EXPECT_THAT(rows, HasSubstr("15.0 %"));
  EXPECT_THAT(rows, HasSubstr("16 %, met"));
  const std::string worst = validation_table({made_result("t")}, false);
  EXPECT_LT(worst.find("-20.0 %"), worst.find("+10.0 %"));
  EXPECT_THAT(worst, Not(HasSubstr("a=3")));
}

TEST(ValidationTable, ScoresOfGroupsStandUnderTheirTable) {
  study::ValidationResult result = made_result("t");
  result.groups["dense 26"] = study::score_of({result.rows[1]});
  EXPECT_THAT(validation_table({result, made_result("u")}, false),
              ::testing::ContainsRegex("\nt +2 +15.0 %.*\n  dense 26 +1 +20.0 %.*\nu +2 "));
}

/// A row that says only whether its plan fits has no error: its group's figures are dashes.
TEST(ValidationTable, AGroupOfVerdictsAloneHasNoErrors) {
  study::ValidationResult result = made_result("t");
  study::ValidationRow verdict = row("a=5", 1, 0);
  verdict.verdict = true;
  verdict.ran = false;
  verdict.oom = true;
  result.groups["large"] = study::score_of({verdict});
  EXPECT_THAT(validation_table({result}, false),
              HasSubstr("\n  large     0        -        -        -        -        -  "
                        "verdicts on memory alone: 100.0 % right\n"));
  EXPECT_THAT(validation_page({result}),
              HasSubstr("| large | 0 | verdicts on memory alone: 100.0 % right | - | - |"));
}

TEST(ValidationTable, ARowWithoutAPredictionShowsADashAndSaysWhy) {
  study::ValidationResult failed = made_result("t");
  failed.rows[0].predicted = 0;
  failed.rows[0].error = -1;
  failed.rows[0].problem = "tp: found '3'";
  EXPECT_THAT(validation_table({failed}, true),
              ::testing::ContainsRegex("a=1 +- +1 +-100.0 %  published-read; tp: found '3'"));
  failed.rows[0].origin.clear();
  EXPECT_THAT(validation_table({failed}, true),
              ::testing::ContainsRegex("a=1 +- +1 +-100.0 %  tp: found '3'"));
  failed.rows[0].origin = "published-read";
  EXPECT_THAT(validation_page({failed}),
              HasSubstr("| a=1 | - | 1 | -100.0 % | published-read | tp: found '3' |"));
}

TEST(ValidationPage, NothingPublishedIsNothingToBeOffFrom) {
  study::ValidationResult unmeasured = made_result("t");
  unmeasured.rows[1].published = 0;
  unmeasured.rows[1].error = 0;
  EXPECT_THAT(validation_page({unmeasured}), HasSubstr("| a=2 | 0.8 | - | - | published-read |"));
}

TEST(ValidationPage, GivesReasonsAndEscapesItsTables) {
  const std::string page = validation_page({made_result("t")});
  EXPECT_THAT(page, HasSubstr("| tp | 2 | said so |"));
  EXPECT_THAT(page, HasSubstr("A note."));
  EXPECT_THAT(page, HasSubstr("| a=2 | 0.8 | 1 | -20.0 % | published-read | does not fit"));
  study::ValidationResult piped = made_result("t");
  piped.rows[0].key = "a|b";
  EXPECT_THAT(validation_page({piped}), HasSubstr("| a\\|b |"));
}

TEST(ValidationPage, IsTheSameWhereverTheTablesLie) {
  study::ValidationResult failed = made_result("t");
  failed.csv = "/somewhere/t.csv";
  failed.rows[0].problem = "/somewhere/t.csv:6: tp: found '3'\n/somewhere/t.csv:6: pp: found '0'";
  EXPECT_THAT(validation_page({failed}),
              HasSubstr("| t.csv:6: tp: found '3'; t.csv:6: pp: found '0' |"));
}

}  // namespace
}  // namespace orrery::report
