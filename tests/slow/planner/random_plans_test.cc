// SPDX-License-Identifier: Apache-2.0
// The best plan found is within 0.5 % of the best of 2,000 random plans that run, in ten settings.
// All are simulated; the random ones are drawn from the space that was searched.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "../../planner/task.h"
#include "planner/full/search.h"
#include "study/run.h"

namespace orrery::full {
namespace {

using testing::Setting;

class RandomPlans : public ::testing::TestWithParam<Setting> {};

TEST_P(RandomPlans, NoneIsFasterByHalfAPercent) {
  constexpr int kPlans = 2000;
  constexpr int kTries = 400'000;
  const Setting& setting = GetParam();
  const Task task = testing::task(setting);
  const auto answer = search(task, {});
  ASSERT_TRUE(answer && !answer->top.empty());
  const Time best = answer->top.front().step_time;
  const auto space = Space::of(task);
  const std::vector<plan::Plan> groups = space->groups();
  std::mt19937_64 random(20261123);
  Time fastest = Time::max();
  int ran = 0;
  for (int i = 0; i < kTries && ran < kPlans; ++i) {
    const std::vector<plan::Plan> shapes = space->shapes(groups[random() % groups.size()]);
    const std::vector<plan::Plan> variants = space->variants(shapes[random() % shapes.size()]);
    const plan::Plan plan = variants[random() % variants.size()];
    const auto run = study::run_step(task.model, task.machine, plan, task.devices, {});
    if (!run) {
      continue;
    }
    ++ran;
    fastest = std::min(fastest, run->timeline.step_time);
    EXPECT_LE(best, run->timeline.step_time * 1.005) << plan::to_yaml(plan);
    EXPECT_LE(answer->bound, run->timeline.step_time) << plan::to_yaml(plan);
  }
  EXPECT_EQ(ran, kPlans);
  fmt::print("{} on {} x {}: best {:.4f} s, fastest of {} random plans {:.4f} s\n", setting.model,
             setting.machine, setting.devices, to_seconds(best), ran, to_seconds(fastest));
}

INSTANTIATE_TEST_SUITE_P(Settings, RandomPlans,
                         ::testing::Values(Setting{"gpt-7.5b", "dgx-a100-80g", 16, 64, 2048},
                                           Setting{"gpt2-medium", "dgx-a100-80g", 8, 32, 1024},
                                           Setting{"llama-3-8b", "dgx-h100", 8, 32, 4096},
                                           Setting{"llama-2-13b", "l40s", 8, 16, 2048},
                                           Setting{"llama-3-8b", "tpu-v4", 16, 32, 4096},
                                           Setting{"deepseek-v2-lite", "dgx-h100", 8, 32, 2048},
                                           Setting{"mixtral-8x7b", "dgx-h100", 16, 32, 4096},
                                           Setting{"llama-3-70b", "dgx-h100", 32, 32, 4096},
                                           Setting{"llama-3-8b", "mi300x", 16, 32, 4096},
                                           Setting{"gpt-22b", "rtx-pro-6000", 8, 16, 2048}),
                         [](const auto& param) { return fmt::format("n{}", param.index); });

}  // namespace
}  // namespace orrery::full
