// SPDX-License-Identifier: Apache-2.0
#include "study/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace orrery::study {
namespace {

using ::testing::HasSubstr;

Result<ValidationProfile> parsed(const std::string& more) {
  const std::string text =
      "table: t\ntitle: T\nsource: S\nmachine: selene\ncsv: t.csv\nkey: [a]\n" + more;
  return parse_config(text, "folder/t.yaml", ConfigSyntax::yaml).and_then(parse_profile);
}

constexpr const char* kMeasured = "measured:\n  - {column: time_s, measure: step_s}\n";

TEST(Profile, SaysHowTheRowsOfItsTableAreRun) {
  const auto profile = parsed(std::string("plan: {tp: 2, recompute: full}\n") +
                              "why: {tp: paper, recompute: paper}\n" +
                              "columns: {layers: n_layers}\n"
                              "cases:\n  mode:\n    fast: {zero: 1}\n    slow: {zero: 0}\n" +
                              kMeasured + "fitted: {tp: 1}\ngoal: 0.08\n");
  ASSERT_TRUE(profile) << profile.error().to_string();
  EXPECT_EQ(profile->csv, "folder/t.csv");
  EXPECT_EQ(profile->plan[1].value, "full");
  EXPECT_EQ(profile->columns[0].value, "n_layers");
  const auto fast = profile->cases[0].settings_of("fast");
  ASSERT_TRUE(fast);
  EXPECT_EQ(fast->front().value, "1");
  EXPECT_FALSE(profile->cases[0].settings_of("other"));
  EXPECT_EQ(profile->measured[0].measure, Measure::step_s);
  EXPECT_EQ(profile->fitted[0].text, "1");
  EXPECT_DOUBLE_EQ(profile->goal.value_or(0), 0.08);
}

TEST(Profile, ACaseOfAnyTextTakesTheCells) {
  const auto profile = parsed(
      "plan: {tp: 1}\nwhy: {tp: paper}\ncases:\n  recompute_modules:\n    \"\": {}\n    full: "
      "{recompute: full}\n"
      "    \"*\": {recompute_modules: \"*\", zero: 1}\n" +
      std::string(kMeasured));
  ASSERT_TRUE(profile) << profile.error().to_string();
  const CaseColumn& column = profile->cases[0];
  EXPECT_TRUE(column.settings_of("").value().empty());
  EXPECT_EQ(column.settings_of("full").value().front().field, "recompute");
  const auto other = column.settings_of("moe_act layernorm").value();
  EXPECT_EQ(other[0].value, "moe_act layernorm");
  EXPECT_EQ(other[1].value, "1");
}

TEST(Profile, ACaseMayHangOnSeveralColumns) {
  const CaseColumn both{.column = "model/system", .values = {{"a/b", {}}}};
  EXPECT_EQ(both.columns(), (std::vector<std::string>{"model", "system"}));
  EXPECT_EQ((CaseColumn{.column = "model", .values = {}}).columns(),
            std::vector<std::string>{"model"});
}

TEST(Profile, AChoiceWithoutAReasonIsAMistake) {
  const auto profile = parsed(std::string("plan: {tp: 2}\n") + kMeasured);
  ASSERT_FALSE(profile);
  EXPECT_THAT(profile.error().to_string(), HasSubstr("why.tp"));
}

TEST(Profile, EveryMistakeIsReportedAtOnce) {
  const auto profile = parsed(
      "plan: {tpp: 2}\ncolumns: {layers: [1]}\nmeasured:\n  - {column: x, measure: step_h}\n"
      "goal: 8\nmachines: x\n");
  ASSERT_FALSE(profile);
  const std::string text = profile.error().to_string();
  for (const char* part : {"did you mean 'tp'", "columns.layers", "step_h", "goal", "machines"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(Profile, EveryShippedOneLoadsAndItsFileIsBesideIt) {
  const std::vector<std::string> names = list_configs("validation");
  EXPECT_GE(names.size(), 6U);
  for (const std::string& name : names) {
    const auto profile = load_profile(name);
    ASSERT_TRUE(profile) << profile.error().to_string();
    EXPECT_EQ(profile->table, name);
    EXPECT_TRUE(read_file(profile->csv)) << profile->csv;
  }
}

}  // namespace
}  // namespace orrery::study
