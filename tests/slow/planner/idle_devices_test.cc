// SPDX-License-Identifier: Apache-2.0
// Machines of several sorts of devices, of which the best plan leaves some idle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "../../planner/mixed_task.h"
#include "planner/full/search.h"
#include "planner/full/space.h"
#include "study/run.h"

namespace orrery::full {
namespace {

using testing::mixed_task;
using testing::quick;
using testing::slowed;
using testing::task;

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

}  // namespace
}  // namespace orrery::full
