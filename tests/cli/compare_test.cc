// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "study/sweep/database.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kComparedStep = " --model gpt2 --machine dgx-a100-80g ";

TEST(CompareCommand, ReportsAndPlansGiveTheSame) {
  const Folder folder;
  const std::string one = folder.write("one.yaml", "tp: 2\nglobal_batch: 8\n");
  const std::string two = folder.write("two.yaml", "tp: 4\nglobal_batch: 8\n");
  const auto reported = [&](const std::string& plan, const std::string& name) {
    return folder.write(name, orrery("simulate --json --plan " + plan + kComparedStep).out);
  };
  const std::string a = reported(one, "a.json");
  const std::string b = reported(two, "b");  // no extension: JSON by its brace
  const Outcome reports = orrery("compare --json " + a + " " + b);
  ASSERT_EQ(reports.status, 0) << reports.err;
  const Outcome plans = orrery("compare --json " + one + " " + two + kComparedStep);
  ASSERT_EQ(plans.status, 0) << plans.err;
  const auto json = nlohmann::json::parse(reports.out);
  EXPECT_EQ(json.at("groups"), nlohmann::json::parse(plans.out).at("groups"));
  EXPECT_EQ(json.at("plan").at(0).at("field"), "tp");
  const auto step = json.at("groups").at("step").at("step_time_s");
  EXPECT_DOUBLE_EQ(step.at("ratios")[1],
                   step.at("values")[1].get<double>() / step.at("values")[0].get<double>());
}

TEST(CompareCommand, OnePlanOnTwoMachines) {
  const Folder folder;
  const std::string plan = folder.write("one.yaml", "tp: 2\nglobal_batch: 8\n");
  const Outcome run =
      orrery("compare --json " + plan + " --model gpt2 --machine dgx-a100-80g --machine dgx-h100");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto runs = nlohmann::json::parse(run.out).at("runs");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs.at(0).at("machine"), "dgx-a100-80g");
  EXPECT_EQ(runs.at(1).at("machine"), "dgx-h100");
  const std::string alone =
      orrery("simulate --json --plan " + plan + " --model gpt2 --machine dgx-h100").out;
  EXPECT_EQ(
      nlohmann::json::parse(run.out).at("groups").at("step").at("step_time_s").at("values")[1],
      nlohmann::json::parse(alone).at("step_time_s"));
}

TEST(CompareCommand, TheTableHasDifferenceAndRatio) {
  const Folder folder;
  const std::string plan = folder.write("one.yaml", "tp: 2\nglobal_batch: 8\n");
  const Outcome run = orrery("compare " + plan + " " + plan + kComparedStep);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("B - A"));
  EXPECT_THAT(run.out, HasSubstr("1.0000"));
  EXPECT_THAT(run.out, HasSubstr("The plans agree"));
  const Outcome three = orrery("compare " + plan + " " + plan + " " + plan + kComparedStep);
  EXPECT_THAT(three.out, HasSubstr("C / A"));
}

TEST(CompareCommand, FiguresHaveUnitsAndTheBestRunIsMarked) {
  // Twice the tokens per step: the step takes longer, the tokens per second are more.
  const Folder folder;
  const std::string small = folder.write("small.yaml", "tp: 2\nglobal_batch: 8\n");
  const std::string large = folder.write("large.yaml", "tp: 2\nglobal_batch: 16\n");
  const Outcome run = orrery("compare " + small + " " + large + kComparedStep);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, ::testing::ContainsRegex("step_time_s +s +[0-9.]+\\* +[0-9.]+ "));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("tokens_per_s +tokens/s +[0-9.]+ +[0-9.]+\\*"));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("model_flops_per_device +TFLOP/s +[0-9.]+ "));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("mfu +% +[0-9.]+ "));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("capacity +GiB +[0-9.]+ +[0-9.]+ "));
  EXPECT_THAT(run.out, HasSubstr("\n* the best run of the figure\n"));
  const Outcome same = orrery("compare " + small + " " + small + kComparedStep);
  EXPECT_THAT(same.out, Not(HasSubstr("*")));
}

TEST(CompareCommand, MistakesSayWhatAFileIsNot) {
  const Folder folder;
  const std::string plan = folder.write("plan.yaml", "tp: 2\n");
  const std::string other = folder.write("other.json", "{\"tables\": []}");
  const std::string broken = folder.write("broken.json", "{\"step_time_s\": ");
  const std::string partial = folder.write("partial.json", "{\"step_time_s\": 1}");
  const auto error = [](const std::string& arguments) {
    const Outcome run = orrery("compare " + arguments);
    EXPECT_EQ(run.status, 2) << arguments;
    EXPECT_THAT(run.out, IsEmpty());
    return run.err;
  };
  EXPECT_THAT(error(plan), HasSubstr("plan.yaml', expected two or more runs"));
  EXPECT_THAT(error("--model gpt2 --machine dgx-h100 --machine dgx-h10"),
              ::testing::AllOf(HasSubstr("RUN: missing"), HasSubstr("did you mean 'dgx-h100'")));
  EXPECT_THAT(error(plan + " " + plan), HasSubstr("--model: missing"));
  EXPECT_THAT(error(other + " " + other), HasSubstr("other.json: neither a run nor a plan"));
  EXPECT_THAT(error(other + " " + other), Not(HasSubstr("--model")));
  EXPECT_THAT(error(broken + " " + plan), HasSubstr("broken.json:1"));
  EXPECT_THAT(error(partial + " " + partial), HasSubstr("breakdown_s: required, but missing"));
  EXPECT_THAT(error("no-such-plan " + plan), HasSubstr("found 'no-such-plan'"));
  const std::string wrong = folder.write("wrong.yaml", "tp: 5\n");
  EXPECT_THAT(error(plan + " " + wrong + kComparedStep), HasSubstr("wrong.yaml:1: tp: found '5'"));
}

/// examples/explain_and_compare as its README says.
TEST(CompareCommand, TheExampleRuns) {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string command = "ORRERY=" + std::string(ORRERY_BINARY) + " " + ORRERY_SOURCE_DIR +
                              "/examples/explain_and_compare/run.sh >" + out;
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string text = content(out);
  EXPECT_THAT(text, HasSubstr("  dp reduce_scatter"));
  EXPECT_THAT(text, HasSubstr("Bottleneck: compute peak"));
  EXPECT_THAT(text, ::testing::ContainsRegex("overlap_grad_reduce +false +true"));
  EXPECT_THAT(text, ::testing::ContainsRegex("per_million_tokens[^\n]* 0.90"));
}

// Two ranks of one kernel of 2 ms each, from torch.profiler, and the same as Nsight Systems'
// tables: the comparison reads both alike.
TEST(CompareCommand, AMeasuredStepBesideThePlan) {
  const Folder folder;
  const std::string plan = folder.write("one.yaml", "dp: 2\nglobal_batch: 2\n");
  for (const char* const name : {"rank0.json", "rank1.json"}) {
    folder.write(name, R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a_gemm", )"
                       R"("ts": 5, "dur": 2000, "args": {}}]})");
  }
  auto database =
      sweep::Database::open(folder / "run.sqlite", sweep::Database::Mode::create).value();
  for (const char* const sql :
       {"CREATE TABLE StringIds (id INTEGER, value TEXT)",
        "INSERT INTO StringIds VALUES (1, 'a_gemm')",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (deviceId INTEGER, start INTEGER, end INTEGER, "
        "demangledName INTEGER)",
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 5000, 2005000, 1), (1, 7000, 2007000, "
        "1)"}) {
    ASSERT_TRUE(database.run(sql).has_value()) << sql;
  }
  nlohmann::json classes;
  for (const char* const files : {"rank*.json", "run.sqlite"}) {
    const Outcome run =
        orrery("compare " + plan + kComparedStep + " --json --measured '" + folder / files + "'");
    ASSERT_EQ(run.status, 0) << run.err;
    const auto json = nlohmann::json::parse(run.out);
    EXPECT_EQ(json.at("files").size(), 2U);
    EXPECT_NEAR(json.at("measured").at("step_s").get<double>(), 2e-3, 1e-12);
    classes = json.at("classes");
    const auto product = std::find_if(classes.begin(), classes.end(), [](const auto& each) {
      return each.at("name") == "product";
    });
    EXPECT_NEAR(product->at("measured_s").get<double>(), 2e-3, 1e-12);
    EXPECT_GT(product->at("simulated_s"), 2e-3);
    EXPECT_THAT(product->at("advice").get<std::string>(), HasSubstr("calibrate gemm"));
  }
  const Outcome none = orrery("compare " + plan + kComparedStep + " --measured '" +
                              folder / "none*.json" + "' --html " + folder / "x.html");
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("--measured: found"));
  EXPECT_THAT(none.err, HasSubstr("--html"));
}

// Traces of a plan of 8 ranks on the machine itself: by a plan of 16 they take what that plan
// takes, up to the whole microseconds of their durations.
TEST(CompareCommand, TracesOfEightRanksAreRescaledToSixteen) {
  const Folder folder;
  const std::string plan = folder.write("8.yaml", "tp: 2\npp: 2\ndp: 2\nglobal_batch: 8\n");
  ASSERT_EQ(
      orrery("export chakra --plan " + plan + kComparedStep + "--output " + (folder / "t")).status,
      0);
  const std::string traces =
      " --chakra " + (folder / "t") + " --groups " + (folder / "t.groups.json") + " --rescale ";
  const Outcome run = orrery("compare " + plan + kComparedStep + traces +
                             "tp=1,pp=4,dp=4,global_batch=16,schedule=gpipe --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_NEAR(json.at("measured").at("step_s"), json.at("simulated").at("step_s"), 2e-5);
  const auto& rescaled = json.at("rescaled");
  EXPECT_EQ(rescaled.at("devices"), 16);
  EXPECT_EQ(rescaled.at("global_batch"), 16);
  const double step = rescaled.at("simulated_s");
  EXPECT_NEAR(rescaled.at("step_s"), step, 0.005 * step);
  EXPECT_EQ(rescaled.at("factors").at(0).at("by_name"), rescaled.at("factors").at(0).at("kernels"));
}

TEST(CompareCommand, WhatCannotBeRescaledIsAMistake) {
  const Folder folder;
  const std::string plan = folder.write("8.yaml", "tp: 2\ndp: 4\nglobal_batch: 8\n");
  const Outcome alone = orrery("compare " + plan + " " + plan + kComparedStep + "--rescale tp=4");
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.err, HasSubstr("--rescale: goes with --measured or --chakra"));
  const Outcome both = orrery("compare " + plan + kComparedStep + "--chakra " + (folder / "t") +
                              " --measured x.json --rescale tpp=4");
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("--chakra: contradicts --measured"));
  EXPECT_THAT(both.err, HasSubstr("tpp"));
  const Outcome torn = orrery("compare " + plan + kComparedStep + "--measured x.json --rescale tp");
  EXPECT_THAT(torn.err, HasSubstr("--rescale: found 'tp'"));
}

}  // namespace
}  // namespace orrery::testing
