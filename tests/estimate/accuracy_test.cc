// SPDX-License-Identifier: Apache-2.0
// The estimate is within 3 % of the simulation, which shares no code with it but the lowering and
// the models of kernels and collectives.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "cases.h"
#include "estimate/estimate.h"
#include "simulate/simulate.h"
#include "workload/parallel/lower.h"

namespace orrery {
namespace {

using testing::Case;

constexpr double kTolerance = 0.03;

Result<double> simulated(const Case& c) {
  const auto workload = lower(c.model, c.plan);
  if (!workload) {
    return fail(workload.error());
  }
  const auto machine = load_machine(c.machine).and_then(
      [&](const Machine& open) { return with_devices(open, c.plan.devices()); });
  if (!machine) {
    return fail(machine.error());
  }
  SimulateOptions options;
  options.algorithms.fill(CollectiveAlgorithm::automatic);
  options.algorithms[static_cast<std::size_t>(Axis::tp)] = c.plan.tp_algorithm;
  options.algorithms[static_cast<std::size_t>(Axis::dp)] = c.plan.dp_algorithm;
  const auto timeline = simulate(*workload, *machine, options);
  if (!timeline) {
    return fail(timeline.error());
  }
  return to_seconds(timeline->step_time);
}

void compare(const std::vector<Case>& cases) {
  double worst = 0;
  for (const Case& c : cases) {
    const auto truth = simulated(c);
    ASSERT_TRUE(truth) << c.name << ": " << truth.error().to_string();
    const auto machine = load_machine(c.machine);
    ASSERT_TRUE(machine);
    const auto estimate = Estimator(c.model, *machine).estimate(c.plan);
    ASSERT_TRUE(estimate) << c.name << ": " << estimate.error().to_string();
    const double guess = to_seconds(estimate->step_time);
    const double difference = guess / *truth - 1;
    worst = std::max(worst, std::abs(difference));
    fmt::print("{:<36} simulate {:9.4f} s  estimate {:9.4f} s  {:+6.2f} %\n", c.name, *truth, guess,
               100 * difference);
    EXPECT_LE(std::abs(difference), kTolerance) << c.name;
    EXPECT_EQ(estimate->compute + estimate->exposed + estimate->bubble + estimate->tail,
              estimate->step_time)
        << c.name;
  }
  fmt::print("largest difference {:.2f} %\n", 100 * worst);
}

TEST(Accuracy, WithinThreePercentOnTheRunsOfSC21) {
  compare(testing::sc21_cases());
}

TEST(Accuracy, WithinThreePercentOnTheRunsOfKorthikanti2022) {
  compare(testing::korthikanti_cases());
}

TEST(Accuracy, WithinThreePercentOnVTrainsClusters) {
  compare(testing::vtrain_multi_cases());
}

TEST(Accuracy, WithinThreePercentOnVTrainsNodesWhereTheHostIsTheLimit) {
  compare(testing::vtrain_single_cases());
}

TEST(Accuracy, WithinThreePercentOnEveryOverlapAndSchedule) {
  compare(testing::planner_cases());
}

/// Plans of a small model, where overheads weigh most, with every field drawn at random.
class RandomPlans {
 public:
  Case next() {
    Case c = testing::gpt_case("random", "selene", {24, 3072, 32, 1, 1, 1, 1, 1, 1});
    do {
      draw(c.plan);
    } while (!check(c.plan, c.model) || (c.plan.devices() > 8 && c.plan.devices() % 8 != 0));
    return c;
  }

 private:
  std::int64_t pick(const std::vector<std::int64_t>& values) {
    return values[random_() % values.size()];
  }

  void draw(Plan& plan) {
    plan.tp = pick({1, 2, 4, 8});
    plan.pp = pick({1, 2, 4, 8, 12});
    plan.dp = pick({1, 2, 4});
    plan.microbatch = pick({1, 2, 4});
    plan.global_batch = plan.dp * plan.microbatch * plan.pp * pick({1, 2, 4});
    plan.recompute = static_cast<Recompute>(pick({0, 1, 2}));
    plan.sequence_parallel = plan.tp > 1 && pick({0, 1}) == 1;
    plan.zero = plan.pp > 1 ? pick({0, 1}) : pick({0, 1, 2, 3});
    plan.chunks = plan.pp > 1 ? pick({1, 1, 2, 3}) : 1;
    plan.schedule = plan.chunks > 1 ? Schedule::interleaved : Schedule::one_f_one_b;
    plan.overlap_p2p = pick({0, 1}) == 1;
    plan.overlap_grad_reduce = pick({0, 0, 1}) == 1;
    plan.overlap_param_gather = plan.zero > 0 && pick({0, 0, 1}) == 1;
    plan.order = pick({0, 1}) == 0 ? "tp-dp-pp" : "tp-pp-dp";
    plan.host_dispatch = 10_us * pick({0, 0, 1, 4});
    plan.p2p_host_sync = pick({0, 0, 1}) == 1;
  }

  std::mt19937_64 random_{2026};  // always the same plans
};

TEST(Accuracy, HoldsForNineOfTenRandomPlansAndOnAverageByFar) {
  constexpr int kPlans = 60;
  RandomPlans plans;
  double sum = 0;
  double worst = 0;
  int outside = 0;
  for (int i = 0; i < kPlans; ++i) {
    const Case c = plans.next();
    const auto truth = simulated(c);
    const auto machine = load_machine(c.machine);
    ASSERT_TRUE(truth && machine);
    const auto estimate = Estimator(c.model, *machine).estimate(c.plan);
    ASSERT_TRUE(estimate) << estimate.error().to_string();
    const double difference = std::abs(to_seconds(estimate->step_time) / *truth - 1);
    sum += difference;
    worst = std::max(worst, difference);
    outside += difference > kTolerance ? 1 : 0;
  }
  fmt::print("{} random plans: mean difference {:.2f} %, largest {:.2f} %, {} above {} %\n", kPlans,
             100 * sum / kPlans, 100 * worst, outside, 100 * kTolerance);
  EXPECT_LE(sum / kPlans, 0.01);
  EXPECT_LE(outside, kPlans / 10);
  EXPECT_LE(worst, 0.1);
}

}  // namespace
}  // namespace orrery
