// SPDX-License-Identifier: Apache-2.0
#include "study/fit_advice.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "study/run.h"

namespace orrery::study {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Llama 3 70B on 64 H100: 84.8 of 80 GiB.
struct TooLarge {
  zoo::Model model = *zoo::load_model("llama-3-70b");
  machine::Machine machine = *machine::load_machine("dgx-h100");
  plan::Plan plan{.tp = 8,
                  .dp = 8,
                  .sequence_parallel = true,
                  .global_batch = 64,
                  .zero = 1,
                  .attention = zoo::AttentionKernel::flash};
};

TEST(FitAdvice, IsOfPlansThatFitTheFastestFirst) {
  const TooLarge step;
  ASSERT_FALSE(run_step(step.model, step.machine, step.plan, 0, {}));
  const std::vector<FitChange> advice = fit_advice(step.model, step.machine, step.plan, 5);
  ASSERT_GE(advice.size(), 3U);
  for (std::size_t i = 0; i < advice.size(); ++i) {
    EXPECT_EQ(advice[i].fields.size(), 1U) << "one change is enough";
    EXPECT_LE(advice[i].memory, step.machine.device.memory[0].capacity);
    EXPECT_TRUE(i == 0 || advice[i - 1].step_time <= advice[i].step_time);
  }
}

/// `plan` with the fields of the change.
plan::Plan changed(plan::Plan plan, const FitChange& change) {
  const std::string yaml = fmt::format("{{{}}}", fmt::join(change.fields, ", "));
  const ConfigNode node = *parse_config(yaml, "change", ConfigSyntax::yaml);
  const plan::Plan given = *plan::parse_plan(node);
  plan::Plan::fields([&](std::string_view name, auto member, std::string_view) {
    if (node.find(name) != nullptr) {
      plan.*member = given.*member;
    }
  });
  return plan;
}

TEST(FitAdvice, IsWhatTheSimulatorSaysOfTheChangedPlan) {
  const TooLarge step;
  for (const FitChange& change : fit_advice(step.model, step.machine, step.plan, 5)) {
    const auto run = run_step(step.model, step.machine, changed(step.plan, change), 0, {});
    ASSERT_TRUE(run) << to_string(change);
    EXPECT_EQ(run->timeline.step_time, change.step_time) << to_string(change);
  }
}

TEST(FitAdvice, StandsInTheErrorWhenAskedFor) {
  const TooLarge step;
  const auto plain = run_step(step.model, step.machine, step.plan, 0, {});
  EXPECT_THAT(plain.error().to_string(), Not(HasSubstr("fits with")));
  const auto advised = run_step(step.model, step.machine, step.plan, 0, {.advise = true});
  // The driver shows 81,559 MiB of an H100's 80 GB: 81559 / 1024 = 79.647 GiB.
  EXPECT_THAT(advised.error().to_string(),
              AllOf(HasSubstr("at most 79.65 GiB of hbm"), HasSubstr("fits with")));
}

TEST(FitAdvice, WhereNothingHelpsThatIsSaid) {
  TooLarge step;
  step.plan = {.global_batch = 1, .zero = 0};  // 70B on one device
  const auto run = run_step(step.model, step.machine, step.plan, 0, {.advise = true});
  EXPECT_THAT(run.error().to_string(), HasSubstr("does not fit with more recompute"));
}

TEST(FitAdvice, WhereNothingHelpsAShorterSequenceMay) {
  const zoo::Model model = *zoo::load_model("llama-3-8b");
  const machine::Machine machine = *machine::load_machine("dgx-h100");
  const plan::Plan plan{.tp = 8, .global_batch = 1, .recompute = plan::Recompute::full};
  plan::Plan longer = plan;
  longer.sequence = std::int64_t{1} << 24;
  const std::int64_t tokens = fitting_sequence(model, machine, longer);
  ASSERT_GT(tokens, 0);
  longer.sequence = tokens;
  EXPECT_TRUE(run_step(model, machine, longer, 0, {}));
  longer.sequence = 2 * tokens;
  EXPECT_FALSE(run_step(model, machine, longer, 0, {}));
}

TEST(FitAdvice, ItsProgressNeverGoesBack) {
  const TooLarge step;
  std::vector<double> shares;
  fit_advice(step.model, step.machine, step.plan, 3,
             [&](double share) { shares.push_back(share); });
  ASSERT_GE(shares.size(), 10U);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_LE(shares.back(), 1);
}

}  // namespace
}  // namespace orrery::study
