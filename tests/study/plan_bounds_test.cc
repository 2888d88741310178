// SPDX-License-Identifier: Apache-2.0
#include "study/plan_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "study/run.h"
#include "workload/plan/defaults.h"

namespace orrery::study {
namespace {

using ::testing::HasSubstr;

TEST(PlanBounds, ARowIsThePlanThatTheCommandWouldCompleteAndNoRunIsFaster) {
  const zoo::Model model = *zoo::load_model("gpt2");
  const machine::Machine machine = *machine::load_machine("dgx-a100-80g");
  const FieldColumn tp{"tp", {"1", "2", "5"}, {2, 0, 1, 1}};
  const FieldColumn batch{"global_batch", {"64"}, {0, 0, 0, 0}};
  const auto bounds = plan_bounds(model, machine, {}, 8, {tp, batch});
  ASSERT_TRUE(bounds);
  EXPECT_TRUE(std::isnan(bounds->least_time_s[0]));
  EXPECT_THAT(bounds->mistakes.at(static_cast<std::size_t>(bounds->mistake[0])), HasSubstr("tp"));
  EXPECT_EQ(bounds->least_time_s[2], bounds->least_time_s[3]);
  for (const auto& [row, degree] : {std::pair<std::size_t, std::int64_t>{1, 1}, {2, 2}}) {
    plan::PlacedPlan open;
    open.plan.tp = degree;
    open.plan.global_batch = 64;
    open.places = {{"tp", ""}, {"global_batch", ""}};
    const auto run = run_step(model, machine, plan::complete(open, &model, &machine, 8), 8, {});
    ASSERT_TRUE(run);
    EXPECT_LE(bounds->least_time_s[row], to_seconds(run->timeline.step_time));
    EXPECT_GT(bounds->least_time_s[row], 0.2 * to_seconds(run->timeline.step_time));
    EXPECT_EQ(bounds->mistake[row], -1);
  }
}

TEST(PlanBounds, AFrameworkFillsAllRowsAlikeWhetherItIsGivenOnceOrByRow) {
  const zoo::Model model = *zoo::load_model("gpt2");
  const machine::Machine machine = *machine::load_machine("dgx-a100-80g");
  const FieldColumn tp{"tp", {"1", "2"}, {0, 1}};
  plan::PlacedPlan once;
  once.plan.framework = "torchtitan";
  once.places["framework"] = "--framework";
  const auto all = plan_bounds(model, machine, once, 8, {tp});
  const auto by_row =
      plan_bounds(model, machine, {}, 8, {tp, {"framework", {"torchtitan"}, {0, 0}}});
  const auto without = plan_bounds(model, machine, {}, 8, {tp});
  ASSERT_TRUE(all && by_row && without);
  EXPECT_EQ(all->least_time_s, by_row->least_time_s);
  EXPECT_EQ(all->least_memory_bytes, by_row->least_memory_bytes);
  EXPECT_NE(all->least_memory_bytes, without->least_memory_bytes);  // its autograd keeps more
  once.plan.framework = "torchtytan";
  EXPECT_THAT(plan_bounds(model, machine, once, 8, {tp}).error().to_string(),
              HasSubstr("torchtytan"));
}

TEST(PlanBounds, ColumnsThatAreNoFieldsAndValuesThatAreNoneAreMistakesTogether) {
  const auto bounds = plan_bounds(*zoo::load_model("gpt2"), *machine::load_machine("dgx-a100-80g"),
                                  {}, 8, {{"tpp", {"1"}, {0}}, {"pp", {"two"}, {0}}});
  ASSERT_FALSE(bounds);
  EXPECT_THAT(bounds.error().to_string(), HasSubstr("tpp"));
  EXPECT_THAT(bounds.error().to_string(), HasSubstr("two"));
}

}  // namespace
}  // namespace orrery::study
