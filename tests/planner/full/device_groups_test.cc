// SPDX-License-Identifier: Apache-2.0
#include "machine/device_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "../mixed_task.h"
#include "planner/full/search.h"
#include "planner/full/space.h"
#include "study/run.h"

namespace orrery::full {
namespace {

using testing::mixed_task;
using testing::quick;
using testing::slowed;
using testing::task;

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
