// SPDX-License-Identifier: Apache-2.0
#include "machine/device_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "../task.h"
#include "planner/full/search.h"
#include "planner/full/space.h"
#include "study/run.h"

namespace orrery::full {
namespace {

using testing::task;

/// Four H100 and four of another sort, on the network of dgx-h100.
Task mixed_task(const compute::Device& other) {
  Task mixed = task("gpt2", "dgx-h100", 8, 64, 1024);
  mixed.machine.parts = {{"h", 4, mixed.machine.device}, {"other", 4, other}};
  mixed.machine.device = machine::mean_device(mixed.machine.parts);
  return mixed;
}

compute::Device slowed(double factor) {
  compute::Device device = machine::load_machine("dgx-h100")->device;
  device.name = "slow";
  for (FlopRate& peak : device.peak) {
    peak = peak * factor;
  }
  device.memory[0].bandwidth = device.memory[0].bandwidth * factor;
  return device;
}

Options quick() {
  Options options;
  options.top = 2;
  options.most_estimates = 200;
  options.most_simulations = 24;
  return options;
}

/// The answer runs again to the picosecond, is no slower than the faster part alone, and none of
/// the even plans of the same degrees is faster.
TEST(PlanParts, TheBestOfMixedDevicesUsesEachForWhatItDoes) {
  const Task mixed = mixed_task(machine::load_machine("dgx-a100-80g")->device);
  const auto answer = search(mixed, quick());
  ASSERT_TRUE(answer) << answer.error().to_string();
  const Found& best = answer->top.front();
  EXPECT_LE(answer->bound, best.step_time);
  EXPECT_EQ(best.plan.devices(), 8);
  const auto again = study::run_step(mixed.model, mixed.machine, best.plan, 0, {});
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->timeline.step_time, best.step_time);
  EXPECT_TRUE(!best.plan.batch_shares.empty() || !best.plan.stage_layers.empty())
      << plan::to_yaml(best.plan);
  plan::Plan even = best.plan;
  even.batch_shares.clear();
  even.stage_layers.clear();
  if (const auto run = study::run_step(mixed.model, mixed.machine, even, 0, {})) {
    EXPECT_GE(run->timeline.step_time, best.step_time);
  }
  const auto alone = search(task("gpt2", "dgx-h100", 4, 64, 1024), quick());
  ASSERT_TRUE(alone);
  EXPECT_LE(best.step_time, alone->top.front().step_time);
}

/// There `auto` would be the split in proportion, which plans have in numbers: of `auto` itself
/// bounds and memory would be those of another split.
TEST(PlanParts, LayersInProportionAreTriedOnce) {
  const Task mixed = mixed_task(machine::load_machine("dgx-a100-80g")->device);
  const auto space = Space::of(mixed);
  ASSERT_TRUE(space);
  int uneven = 0;
  for (const plan::Plan& group : space->groups()) {
    for (const plan::Plan& shape : space->shapes(group)) {
      EXPECT_NE(shape.stage_layers, "auto") << plan::to_yaml(shape);
      uneven += shape.stage_layers.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(uneven, 0);
}

/// Devices a hundred times as slow only hold the others up: they stay idle, and the answer is that
/// of the faster ones alone.
TEST(PlanParts, DevicesThatHoldOthersUpStayIdle) {
  const auto answer = search(mixed_task(slowed(0.01)), quick());
  ASSERT_TRUE(answer) << answer.error().to_string();
  const Found& best = answer->top.front();
  EXPECT_EQ(best.plan.parts, "h");
  EXPECT_EQ(best.plan.devices(), 4);
  const auto alone = search(task("gpt2", "dgx-h100", 4, 64, 1024), quick());
  ASSERT_TRUE(alone);
  EXPECT_EQ(best.step_time, alone->top.front().step_time);
}

/// Equal devices at 1 and 9 dollars an hour. All eight take the least time at 40 dollars an hour;
/// the cheap four alone are slower, but not ten times, so they are the cheapest. The cost is that
/// of the plan's own devices, and no plan's is below the bound.
TEST(PlanParts, TheCheapestLeavesDearDevicesIdle) {
  Task mixed = mixed_task(machine::load_machine("dgx-h100")->device);
  mixed.machine.parts[0].device.price_per_hour = Money(1);
  mixed.machine.parts[1].device.price_per_hour = Money(9);
  mixed.machine.device = machine::mean_device(mixed.machine.parts);
  Options options = quick();
  const auto fastest = search(mixed, options);
  options.objective = Objective::cost;
  const auto cheapest = search(mixed, options);
  ASSERT_TRUE(fastest && cheapest) << cheapest.error().to_string();
  const Found& fast = fastest->top.front();
  const Found& cheap = cheapest->top.front();
  EXPECT_EQ(fast.plan.devices(), 8);
  EXPECT_EQ(cheap.plan.parts, "h");
  EXPECT_EQ(cheap.plan.devices(), 4);
  EXPECT_EQ(cheap.score, cheap.step_time);
  EXPECT_LE(cheapest->bound, cheap.score);
  EXPECT_LT(cheap.cost_per_million_tokens->value(), fast.cost_per_million_tokens->value());
  // 4 devices of 1 dollar for the step, by tokens.
  EXPECT_NEAR(cheap.cost_per_million_tokens->value(), 4.0 / 3600 / cheap.tokens_per_s * 1e6,
              1e-9 * cheap.cost_per_million_tokens->value());
}

TEST(PlanParts, NamedPartsStay) {
  Task mixed = mixed_task(machine::load_machine("dgx-a100-80g")->device);
  mixed.fixed.plan.parts = "other,h";
  mixed.fixed.places["parts"] = "--parts";
  const auto answer = search(mixed, quick());
  ASSERT_TRUE(answer) << answer.error().to_string();
  for (const Found& found : answer->top) {
    EXPECT_EQ(found.plan.parts, "other,h");
  }
  mixed.fixed.plan.parts = "none";
  EXPECT_FALSE(search(mixed, quick()));
}

}  // namespace
}  // namespace orrery::full
