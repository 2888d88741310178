// SPDX-License-Identifier: Apache-2.0
// The estimate is within 3 % of the simulation, which shares no code with it but the lowering and
// the models of kernels and collectives.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace
}  // namespace orrery
