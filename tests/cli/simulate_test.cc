// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

/// A run of milliseconds on eight devices, with more arguments.
std::string small(const std::string& arguments = {}) {
  return "simulate --model gpt2 --machine dgx-a100-80g --tp 2 --pp 2 --dp 2 --global-batch 16 " +
         arguments;
}

TEST(Simulate, PrintsATable) {
  const Outcome run = orrery(small());
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, IsEmpty());
  EXPECT_THAT(run.out, AllOf(HasSubstr("Step time"), HasSubstr("MFU"), HasSubstr("bubble"),
                             HasSubstr("Memory per device"), HasSubstr("events/s")));
}

TEST(Simulate, JsonIsOneObjectWithTheFiguresOfTheManual) {
  const Outcome run = orrery(small("--json"));
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  for (const char* key :
       {"model", "machine", "devices", "plan", "step_time_s", "tokens_per_s",
        "model_flops_per_device", "hardware_flops_per_device", "mfu", "hfu", "breakdown_s",
        "hidden_s", "memory_bytes", "events", "wall_s", "events_per_s", "fold", "passes_s"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["plan"]["tp"], 2);
  EXPECT_EQ(json["devices"], 8);
  EXPECT_EQ(json["memory_bytes"].size(), 2U);
}

TEST(Simulate, CsvIsAHeaderAndALine) {
  const Outcome run = orrery(small("--csv"));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("model,machine,devices,network,plan.tp,"));
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 2);
}

TEST(Simulate, FlagsWinOverThePlanFile) {
  const Folder folder;
  const std::string plan = folder.write("plan.yaml", "tp: 2\npp: 2\ndp: 2\nglobal_batch: 16\n");
  const Outcome run = orrery("simulate --model gpt2 --machine dgx-a100-80g --json --plan " + plan +
                             " --pp 1 --dp=4 --recompute full");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["plan"]["tp"], 2);
  EXPECT_EQ(json["plan"]["pp"], 1);
  EXPECT_EQ(json["plan"]["dp"], 4);
  EXPECT_EQ(json["plan"]["recompute"], "full");
}

TEST(Simulate, UnderscoresAndBooleansWithoutValueAreUnderstood) {
  const Outcome run =
      orrery(small("--sequence_parallel --overlap-p2p false --host_dispatch=5us --json"));
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["plan"]["sequence_parallel"], true);
  EXPECT_EQ(json["plan"]["overlap_p2p"], false);
}

TEST(Simulate, NoFoldSimulatesEveryRankWithTheSameResult) {
  const auto folded = nlohmann::json::parse(orrery(small("--json")).out);
  const auto unfolded = nlohmann::json::parse(orrery(small("--json --no-fold")).out);
  EXPECT_EQ(unfolded["fold"]["simulated"], 8);
  EXPECT_LT(folded["fold"]["simulated"], 8);
  EXPECT_EQ(folded["step_time_s"], unfolded["step_time_s"]);
}

TEST(Simulate, TraceIsAFileOfItsOwn) {
  const Folder folder;
  const std::string path = folder / "step.json";
  const Outcome run = orrery(small("--trace " + path));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Step time"));
  EXPECT_GT(nlohmann::json::parse(content(path))["traceEvents"].size(), 100U);
}

TEST(Simulate, TraceThatCannotBeWrittenLeavesStandardOutputEmpty) {
  const Outcome run = orrery(small("--json --trace /nonexistent/step.json"));
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("/nonexistent/step.json"));
}

TEST(Simulate, EveryMistakeOfTheCommandLineAtOnce) {
  const Outcome run = orrery(
      "simulate --model gpt5-175b --tp two --recompute ful --devices 0 --skip fuze --json --csv");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("did you mean 'gpt3-175b'"));
  EXPECT_THAT(run.err, HasSubstr("--machine: missing"));
  EXPECT_THAT(run.err, HasSubstr("--tp: found 'two'"));
  EXPECT_THAT(run.err, AllOf(HasSubstr("--recompute: found 'ful', expected one of"),
                             HasSubstr("did you mean 'full'")));
  EXPECT_THAT(run.err, HasSubstr("--devices: found '0', expected at least 1"));
  EXPECT_THAT(run.err, AllOf(HasSubstr("--skip: found 'fuze'"), HasSubstr("did you mean 'fuse'")));
  EXPECT_THAT(run.err, HasSubstr("--csv: contradicts --json"));
}

TEST(Simulate, UnknownOptionsAreNamedWithAGuess) {
  const Outcome run = orrery(small("--mircobatch 2 --zero_stage 1 stray"));
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("unknown option --mircobatch (did you mean '--microbatch'?)"));
  EXPECT_THAT(run.err, HasSubstr("unknown option --zero-stage"));
  EXPECT_THAT(run.err, HasSubstr("unexpected argument 'stray'"));
}

TEST(Simulate, OptionWithoutItsValueIsAMistake) {
  const Outcome run = orrery("simulate --model");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--model"));
}

TEST(Simulate, MistakesInAPlanFileNameFileAndLine) {
  const Folder folder;
  const std::string plan = folder.write("bad.yaml", "tp: 2\npp: zwei\nglobal_bach: 16\n");
  const Outcome run = orrery("simulate --model gpt2 --machine dgx-a100-80g --plan " + plan);
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr(plan + ":2: pp: found 'zwei'"));
  EXPECT_THAT(run.err, AllOf(HasSubstr(plan + ":3: "), HasSubstr("did you mean 'global_batch'")));
}

TEST(Simulate, PlanThatDoesNotSuitTheModelIsRefusedWithEveryReason) {
  const Outcome run = orrery(
      "simulate --model gpt2 --machine dgx-a100-80g --tp 5 --pp 7 --global-batch 3 "
      "--microbatch 2 --devices 64");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("tp"), HasSubstr("pp"), HasSubstr("global_batch"),
                             HasSubstr("devices: found '64'")));
}

TEST(Simulate, WhatDoesNotFitNeedsAllowOom) {
  const std::string huge = "simulate --model gpt3-175b --machine dgx-a100-80g --tp 8 ";
  const Outcome refused = orrery(huge);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.out, IsEmpty());
  const Outcome allowed = orrery(huge + "--allow-oom");
  EXPECT_EQ(allowed.status, 0) << allowed.err;
  EXPECT_THAT(allowed.out, HasSubstr("DOES NOT FIT"));
}

TEST(Simulate, VerboseTimesThePasses) {
  const Outcome run = orrery(small("--verbose"));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("pipeline"), HasSubstr("fuse")));
  EXPECT_THAT(orrery(small()).out, Not(HasSubstr("fuse")));
}

TEST(Simulate, FullStandardOutputIsAFailure) {
  const Folder folder;
  const std::string command =
      std::string(ORRERY_BINARY) + " " + small() + " >/dev/full 2>" + (folder / "err");
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1);
  EXPECT_THAT(content(folder / "err"), HasSubstr("standard output"));
}

TEST(Simulate, APriceGivesACostThatIsProportionalToIt) {
  const std::string step =
      "simulate --model gpt2 --machine dgx-a100-80g --dp 4 --global-batch 8 --json";
  const auto cost = [&](const std::string& price) {
    const Outcome run = orrery(step + " --price-per-hour " + price);
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out).at("cost").at("per_step").get<double>();
  };
  EXPECT_DOUBLE_EQ(cost("3"), 2 * cost("'1.5 USD'"));
  const Outcome wrong = orrery(step + " --price-per-hour cheap");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--price-per-hour: found 'cheap'"));
}

}  // namespace
}  // namespace orrery::testing
