// SPDX-License-Identifier: Apache-2.0
#include "study/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "study/nearest_rows.h"
#include "study/run.h"

namespace orrery::study {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A table of small models on one A100 node.
ValidationProfile small_profile() {
  ValidationProfile profile;
  profile.machine = "selene";
  profile.key = {"name"};
  profile.plan = {{"layers", "2", ""},      {"hidden", "256", ""},   {"heads", "4", ""},
                  {"vocab", "1024", ""},    {"sequence", "128", ""}, {"compute_type", "fp16", ""},
                  {"global_batch", "8", ""}};
  profile.columns = {{"tp", "tp", ""}};
  profile.measured = {
      {.column = "time_ms", .measure = Measure::step_ms, .label = "", .settings = {}}};
  return profile;
}

Result<ValidationResult> validated(const ValidationProfile& profile, const std::string& text,
                                   const ValidationOptions& options = {}) {
  return parse_csv(text, "runs.csv").and_then([&](const CsvTable& table) {
    return validate(profile, table, options);
  });
}

double step_ms(const std::vector<Setting>& settings) {
  const auto run = make_case(settings);
  const auto result =
      run_step(*run->model(), *machine::load_machine("selene"), run->plan, 0, RunOptions{});
  return 1e3 * to_seconds(result->timeline.step_time);
}

TEST(Validate, APredictionIsTheStepTimeOfTheRowsPlan) {
  std::vector<Setting> settings = small_profile().plan;
  settings.push_back({"tp", "2", ""});
  const double expected = step_ms(settings);
  const auto result = validated(small_profile(), "name,tp,time_ms,origin\nx,2,4,read\n");
  ASSERT_TRUE(result) << result.error().to_string();
  const ValidationRow& row = result->rows.at(0);
  EXPECT_EQ(row.key, "name=x");
  EXPECT_EQ(row.origin, "read");
  EXPECT_DOUBLE_EQ(row.predicted, expected);
  EXPECT_DOUBLE_EQ(row.error, expected / 4 - 1);
}

TEST(Validate, RowsAreScoredInTheGroupsOfTheProfile) {
  ValidationProfile profile = small_profile();
  profile.group = {"kind", "release"};
  const auto result =
      validated(profile, "name,tp,kind,release,time_ms\nx,2,a,1,4\ny,2,a,1,8\nz,2,b,2,4\n");
  ASSERT_TRUE(result) << result.error().to_string();
  ASSERT_EQ(result->groups.size(), 2U);
  EXPECT_EQ(result->groups.at("a 1").rows, 2U);
  EXPECT_DOUBLE_EQ(result->groups.at("b 2").worst, std::abs(result->rows[2].error));
  EXPECT_FALSE(validated(profile, "name,tp,kind,time_ms\nx,2,a,4\n"));  // no such column
}

TEST(Validate, RatesCountTheFlopsOfThePaper) {
  // B = 8, S = 128, L = 2, H = 256, V = 1024, one device. Equation 3 of SC'21:
  // 96 x 8 x 128 x 2 x 256^2 x (1 + 128/1536 + 1024/(16 x 2 x 256)) = 12,884,901,888 x 1.2083333.
  ValidationProfile profile = small_profile();
  profile.measured = {
      {.column = "tflops", .measure = Measure::tflops_with_recompute, .label = "", .settings = {}}};
  std::vector<Setting> settings = profile.plan;
  settings.push_back({"tp", "1", ""});
  const auto result = validated(profile, "name,tp,tflops\nx,1,10\n");
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_NEAR(result->rows[0].predicted,
              12884901888.0 * (1 + 1.0 / 12 + 1.0 / 8) / (step_ms(settings) * 1e-3) / 1e12, 1e-9);
}

TEST(Validate, ARowThatCannotBeRunIsNotAnsweredAndSaysWhy) {
  const auto result = validated(small_profile(), "name,tp,time_ms\na,3,4\n");  // 4 heads over 3
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_DOUBLE_EQ(result->rows[0].error, -1);
  EXPECT_EQ(result->score.lines, 1U);
  EXPECT_EQ(result->score.answered, 0U);
  EXPECT_EQ(result->score.rows, 0U);  // no error to count
  ValidationResult goal = *result;
  goal.profile.goal = 1;
  EXPECT_FALSE(goal.goal_met());
  EXPECT_THAT(result->rows[0].problem, HasSubstr("runs.csv:2: tp: found '3'"));
}

/// Without a time the score is of memory: 5 % too little.
TEST(Validate, ATableOfMemoryAloneIsScoredByIt) {
  ValidationRow row;
  row.memory = true;
  row.published = 20;
  row.predicted = 19;
  row.error = -0.05;
  ValidationResult memory;
  memory.score = score_of({row});
  EXPECT_EQ(memory.score.rows, 1U);
  EXPECT_DOUBLE_EQ(memory.score.mape, 0.05);
  EXPECT_DOUBLE_EQ(memory.score.bias, -0.05);
  EXPECT_DOUBLE_EQ(memory.score.worst, 0.05);
  EXPECT_DOUBLE_EQ(memory.score.memory_mape.value(), 0.05);
  memory.profile.goal = 0.08;
  EXPECT_TRUE(memory.goal_met());
  memory.profile.goal = 0.04;
  EXPECT_FALSE(memory.goal_met());
}

TEST(Validate, RowsToWhichSomethingWasFittedAreShownButNotScored) {
  ValidationProfile profile = small_profile();
  profile.fitted = {{"tp", "1"}};
  const auto result = validated(profile, "name,tp,time_ms\na,1,4\nb,2,4\n");
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->rows[0].scored);
  EXPECT_TRUE(result->rows[1].scored);
  EXPECT_EQ(result->score.rows, 1U);
  EXPECT_DOUBLE_EQ(result->score.mape, std::abs(result->rows[1].error));
}

TEST(Validate, FlagsWinOverProfileAndRow) {
  ValidationOptions options;
  options.overrides = {{"tp", "4", "--tp"}};
  const auto overridden = validated(small_profile(), "name,tp,time_ms\na,1,4\n", options);
  const auto stated = validated(small_profile(), "name,tp,time_ms\na,4,4\n");
  EXPECT_EQ(overridden->rows[0].predicted, stated->rows[0].predicted);
}

TEST(Validate, TheNumberOfThreadsChangesNothing) {
  const std::string text = "name,tp,time_ms\na,1,4\nb,2,4\nc,4,4\nd,1,3\ne,3,1\n";
  const auto one = validated(small_profile(), text, {.overrides = {}, .machine = {}, .threads = 1});
  const auto many =
      validated(small_profile(), text, {.overrides = {}, .machine = {}, .threads = 7});
  ASSERT_EQ(one->rows.size(), many->rows.size());
  for (std::size_t i = 0; i < one->rows.size(); ++i) {
    EXPECT_EQ(one->rows[i].key, many->rows[i].key);
    EXPECT_EQ(one->rows[i].predicted, many->rows[i].predicted);
  }
}

TEST(Validate, MissingColumnsAreMistakesOfTheFile) {
  const auto columns = validated(small_profile(), "nam,tp,time\na,1,4\n");
  ASSERT_FALSE(columns);
  EXPECT_THAT(columns.error().to_string(), HasSubstr("did you mean 'nam'"));
  EXPECT_EQ(columns.error().mistakes.size(), 2U);
}

TEST(Validate, AnUnknownCellFailsItsRowNotTheTable) {
  ValidationProfile profile = small_profile();
  profile.cases = {{.column = "mode", .values = {{"plain", {}}}}};
  const auto result = validated(profile,
                                "name,tp,mode,time_ms\na,x,plain,4\nb,1,plain,nan\nc,1,odd,-2\n"
                                "d,1,odd,4\ne,1,plain,4\n");
  ASSERT_TRUE(result) << result.error().to_string();
  ASSERT_EQ(result->rows.size(), 5U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(result->rows[i].error, -1) << i;
  }
  EXPECT_THAT(result->rows[0].problem, HasSubstr("runs.csv:2: tp: found 'x'"));
  EXPECT_THAT(result->rows[1].problem, HasSubstr("runs.csv:3: time_ms: found 'nan'"));
  EXPECT_THAT(result->rows[2].problem, HasSubstr("runs.csv:4: time_ms: found '-2'"));
  EXPECT_THAT(result->rows[2].problem, HasSubstr("mode: found 'odd', expected one of plain"));
  EXPECT_THAT(result->rows[4].problem, IsEmpty());
  EXPECT_GT(result->rows[4].predicted, 0);
  EXPECT_EQ(result->score.lines, 5U);
  EXPECT_EQ(result->score.answered, 1U);
  EXPECT_EQ(result->score.rows, 1U);
}

TEST(Validate, ACaseOfTwoColumnsNeedsBothTexts) {
  ValidationProfile profile = small_profile();
  profile.columns.clear();
  profile.cases = {
      {.column = "name/mode", .values = {{"a/fast", {{"tp", "2", ""}}}, {"*", {{"tp", "1", ""}}}}}};
  const auto result =
      validated(profile, "name,tp,mode,time_ms\na,1,fast,4\na,1,slow,4\nb,1,fast,4\n");
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_NE(result->rows[0].predicted, result->rows[1].predicted);
  EXPECT_EQ(result->rows[1].predicted, result->rows[2].predicted);
}

TEST(Validate, AMistakeOfTheFlagsIsSaidOnce) {
  ValidationOptions options;
  options.overrides = {{"tp", "two", "--tp"}};
  const auto result = validated(small_profile(), "name,tp,time_ms\na,1,4\nb,2,4\n", options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().mistakes.size(), 1U);
}

TEST(Validate, ALongListOfNamesIsNotPrintedPerRow) {
  ValidationProfile profile = small_profile();
  profile.columns.push_back({"model", "name", ""});
  const auto result = validated(profile, "name,tp,time_ms\nno-such-model,1,4\n");
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_THAT(result->rows[0].problem, HasSubstr(" more"));
  EXPECT_LT(result->rows[0].problem.size(), 400U);
}

TEST(Validate, AColumnOfFlagsSetsFieldsAndCasesWinOverIt) {
  ValidationProfile profile = small_profile();
  profile.columns.clear();
  profile.flags = "settings";
  profile.cases = {{.column = "name", .values = {{"b*", {{"tp", "1", ""}}}, {"*", {}}}}};
  const auto result = validated(profile,
                                "name,settings,time_ms\na,--tp 2 --overlap-tp,4\n"
                                "a,--tensor-model-parallel-size 2,4\nb1,--tp 2,4\nc,tp 2,4\n"
                                "a,--sequence-parallel false --tp 2,4\n");
  ASSERT_TRUE(result) << result.error().to_string();
  std::vector<Setting> replicated = small_profile().plan;
  replicated.push_back({"tp", "2", ""});
  std::vector<Setting> two = replicated;  // as the command, which divides sequences where tp > 1
  two.push_back({"sequence_parallel", "true", ""});
  std::vector<Setting> one = small_profile().plan;
  one.push_back({"tp", "1", ""});
  EXPECT_DOUBLE_EQ(result->rows[0].predicted, step_ms(two));
  EXPECT_DOUBLE_EQ(result->rows[1].predicted, step_ms(two));
  EXPECT_DOUBLE_EQ(result->rows[2].predicted, step_ms(one));
  EXPECT_THAT(result->rows[3].problem, HasSubstr("found 'tp', expected a flag"));
  EXPECT_DOUBLE_EQ(result->rows[4].predicted, step_ms(replicated));  // a flag of the row wins
  EXPECT_NE(result->rows[4].predicted, result->rows[0].predicted);
}

TEST(Validate, AColumnMayChooseTheMeasure) {
  ValidationProfile profile = small_profile();
  profile.measured = {{.column = "value",
                       .label = "",
                       .settings = {},
                       .by = "unit",
                       .measures = {{"ms", Measure::step_ms}, {"s", Measure::step_s}}}};
  const auto result = validated(profile, "name,tp,unit,value\na,2,ms,4\na,2,s,4\na,2,h,4\n");
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_DOUBLE_EQ(result->rows[0].predicted, 1e3 * result->rows[1].predicted);
  EXPECT_THAT(result->rows[2].problem, HasSubstr("unit: found 'h', expected one of ms, s"));
}

TEST(Validate, MemoryAndVerdictsAreScoredApartFromTimes) {
  // The small model fits: the rows that ran are right, the one that did not is wrong, and what it
  // held when memory ran out is no peak.
  ValidationProfile profile = small_profile();
  profile.measured.push_back(
      {.column = "gib", .measure = Measure::allocated_gib, .label = "peak", .settings = {}});
  profile.outcome = Outcome{.column = "outcome", .ok = "ok"};
  const auto result =
      validated(profile, "name,tp,time_ms,gib,outcome\na,2,4,1,ok\nb,2,,2,OOM\nc,2,4,,ok\n");
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->score.lines, 3U);
  EXPECT_EQ(result->score.answered, 3U);
  EXPECT_EQ(result->score.rows, 2U);
  ASSERT_TRUE(result->score.memory_mape);
  EXPECT_DOUBLE_EQ(*result->score.memory_mape, std::abs(result->rows[1].error));
  ASSERT_TRUE(result->score.oom_right);
  EXPECT_DOUBLE_EQ(*result->score.oom_right, 2.0 / 3);
}

TEST(Validate, AnotherFileCompletesTheRows) {
  // 4 devices run 16 sequences where 2 ran 8.
  const std::string file = ::testing::TempDir() + "layouts.csv";
  ASSERT_TRUE(write_file(file, "name,release,gpus,tp,batch\na,1,2,1,8\na,2,2,2,8\n"));
  ValidationProfile profile = small_profile();
  profile.columns = {{"tp", "tp", ""}, {"devices", "gpus", ""}, {"global_batch", "batch", ""}};
  profile.join =
      Join{.file = file, .on = {{"name", "release=of"}, {"name"}}, .scale = {{"batch", "gpus"}}};
  const auto result = validated(profile, "name,of,gpus,time_ms\na,2,4,4\na,9,2,4\nb,1,2,4\n");
  ASSERT_TRUE(result) << result.error().to_string();
  const auto timed = [](const char* tp, const char* devices, const char* batch) {
    std::vector<Setting> settings = small_profile().plan;
    settings.insert(settings.end(),
                    {{"tp", tp, ""}, {"devices", devices, ""}, {"global_batch", batch, ""}});
    return step_ms(settings);
  };
  EXPECT_DOUBLE_EQ(result->rows[0].predicted, timed("2", "4", "16"));
  EXPECT_DOUBLE_EQ(result->rows[1].predicted, timed("1", "2", "8"));  // the second list of columns
  EXPECT_THAT(result->rows[2].problem, HasSubstr("tp: found '', expected a whole number"));
}

TEST(Score, IsOverAbsoluteErrors) {
  // |errors| 0.1, 0.2, 0.4, 0.5: mean 0.3, median 0.3, worst 0.5; signed mean -0.25.
  std::vector<ValidationRow> rows(5);
  rows[0].error = 0.1;
  rows[1].error = -0.2;
  rows[2].error = -0.4;
  rows[3].error = -0.5;
  rows[4].error = 7;
  rows[4].scored = false;
  const ValidationScore score = score_of(rows);
  EXPECT_EQ(score.rows, 4U);
  EXPECT_DOUBLE_EQ(score.mape, 0.3);
  EXPECT_DOUBLE_EQ(score.median, 0.3);
  EXPECT_DOUBLE_EQ(score.p90, 0.5);  // the fourth of four: 3.6 rounded up
  EXPECT_DOUBLE_EQ(score.worst, 0.5);
  EXPECT_DOUBLE_EQ(score.bias, -0.25);
}

TEST(NearestRows, OfARowOfATableIsThisRow) {
  // At distance 0 in model, devices and degrees; of other machines none is looked at.
  const ValidationProfile profile = load_profile("training_tpu").value();
  const auto published = published_runs(profile, load_csv(profile.csv).value()).value();
  const PublishedRun& run = published.back();
  const machine::Machine machine = machine::load_machine(run.machine).value();
  const auto nearest = nearest_rows(run.model, run.plan, machine, 3);
  ASSERT_FALSE(nearest.empty());
  EXPECT_EQ(nearest[0].model, run.model.name);
  EXPECT_EQ(nearest[0].devices, run.plan.devices());
  for (const NearestRow& row : nearest) {
    EXPECT_EQ(machine::load_machine(row.machine)->device.name, machine.device.name);
    EXPECT_NEAR(row.error, row.predicted / row.published - 1, 1e-12);
  }
}

TEST(NearestRows, OfTimeAreNoRowsOfPower) {
  // A row of this table has a time, three of memory and a power: one run.
  const ValidationProfile profile = load_profile("h100_hf_training").value();
  const CsvTable table = load_csv(profile.csv).value();
  EXPECT_EQ(published_runs(profile, table, {}, false).value().size(), table.rows.size());
}

TEST(NearestRows, OfMemoryAreRowsOfMemory) {
  const ValidationProfile profile = load_profile("training_litgpt_lora_memory").value();
  const auto published = published_runs(profile, load_csv(profile.csv).value(), {}, true).value();
  ASSERT_FALSE(published.empty());
  const machine::Machine machine = machine::load_machine(published[0].machine).value();
  const auto nearest = nearest_rows(published[0].model, published[0].plan, machine, 1, true);
  ASSERT_EQ(nearest.size(), 1U);
  EXPECT_NE(nearest[0].measure.find("_g"), std::string::npos) << nearest[0].measure;  // GB or GiB
}

}  // namespace
}  // namespace orrery::study
