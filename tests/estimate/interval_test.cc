// SPDX-License-Identifier: Apache-2.0
// The interval holds the simulation, which shares no code with it but the lowering of blocks and
// the models of kernels, collectives and links: its lower end is never above it, its value is near
// it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cases.h"
#include "estimate/estimate.h"
#include "random_plans.h"
#include "simulate/simulate.h"
#include "workload/parallel/lower.h"
#include "workload/parallel/step_clock.h"
#include "workload/plan/layout.h"

namespace orrery::estimate {
namespace {

using testing::Case;

Result<double> simulated(const zoo::Model& model, const plan::Plan& plan,
                         machine::Machine machine) {
  parallel::set_clocks(machine, model, plan);
  const auto workload = parallel::lower(model, plan, {.machine = &machine});
  if (!workload) {
    return fail(workload.error());
  }
  simulate::SimulateOptions options;
  options.algorithms = plan::algorithms_of(plan);
  const auto timeline = simulate::simulate(*workload, machine, options);
  if (!timeline) {
    return fail(timeline.error());
  }
  return to_seconds(timeline->step_time);
}

Result<double> simulated(const Case& c) {
  return machine::load_machine(c.machine)
      .and_then([&](const machine::Machine& open) {
        return machine::with_devices(open, c.plan.devices());
      })
      .and_then(
          [&](const machine::Machine& machine) { return simulated(c.model, c.plan, machine); });
}

/// Values are within `tolerance` of the simulation.
void compare(const std::vector<Case>& cases, double tolerance) {
  double worst = 0;
  for (const Case& c : cases) {
    const auto truth = simulated(c);
    ASSERT_TRUE(truth) << c.name << ": " << truth.error().to_string();
    const auto machine = machine::load_machine(c.machine);
    ASSERT_TRUE(machine);
    const auto interval = Estimator(c.model, *machine).interval(c.plan);
    ASSERT_TRUE(interval) << c.name << ": " << interval.error().to_string();
    const double difference = to_seconds(interval->value) / *truth - 1;
    worst = std::max(worst, std::abs(difference));
    fmt::print("{:<36} simulate {:9.4f} s  at least {:5.1f} %  value {:+6.2f} %\n", c.name, *truth,
               100 * to_seconds(interval->least) / *truth, 100 * difference);
    EXPECT_LE(to_seconds(interval->least), *truth) << c.name;
    EXPECT_LE(std::abs(difference), tolerance) << c.name;
    EXPECT_EQ(interval->compute + interval->exposed + interval->bubble + interval->tail,
              interval->value)
        << c.name;
  }
  fmt::print("largest difference {:.2f} %\n", 100 * worst);
}

/// A pipeline in which nothing runs beside kernels but its messages.
plan::Plan quiet_pipeline(std::int64_t batch) {
  plan::Plan plan{.tp = 8, .pp = 4, .dp = 1, .microbatch = 1, .global_batch = batch};
  plan.sequence = 2048;
  plan.overlap_p2p = true;
  return plan;
}

TEST(Interval, IsNarrowWhereNothingContends) {
  const auto model = *zoo::load_model("gpt-7.5b");
  const auto machine = *machine::load_machine("dgx-h100");
  for (const plan::Schedule schedule :
       {plan::Schedule::one_f_one_b, plan::Schedule::zb_h1, plan::Schedule::gpipe}) {
    plan::Plan plan = quiet_pipeline(16);
    plan.schedule = schedule;
    const auto truth = simulated({"quiet", "dgx-h100", model, plan});
    const auto interval = Estimator(model, machine).interval(plan);
    ASSERT_TRUE(truth && interval);
    EXPECT_LE(to_seconds(interval->least), *truth) << name_of(schedule);
    EXPECT_GE(to_seconds(interval->least) / *truth, 0.97) << name_of(schedule);
    EXPECT_NEAR(to_seconds(interval->value) / *truth, 1, 0.02) << name_of(schedule);
  }
}

/// In the steady state a microbatch more is a period more: from 64 to 128 as long as from 60,032 to
/// 60,096, of which only some are run.
TEST(Interval, GrowsByTheSameForEveryMicrobatch) {
  Estimator estimator(*zoo::load_model("gpt-7.5b"), *machine::load_machine("dgx-h100"));
  const auto of = [&](std::int64_t batch) { return *estimator.interval(quiet_pipeline(batch)); };
  const Time few = of(128).value - of(64).value;
  EXPECT_GT(few, Time(0));
  EXPECT_NEAR((of(60'096).value - of(60'032).value) / few, 1, 1e-6);
  EXPECT_GT(of(60'096).least, of(60'032).least);
}

TEST(Interval, IsNearTheRunsOfSC21) {
  compare(testing::sc21_cases(), 0.05);
}

TEST(Interval, IsNearTheRunsOfKorthikanti2022) {
  compare(testing::korthikanti_cases(), 0.05);
}

TEST(Interval, IsNearVTrainsClusters) {
  compare(testing::vtrain_multi_cases(), 0.05);
}

TEST(Interval, IsNearVTrainsNodesWhereTheHostIsTheLimit) {
  compare(testing::vtrain_single_cases(), 0.1);
}

TEST(Interval, IsNearEveryOverlapAndSchedule) {
  compare(testing::planner_cases(), 0.1);
}

TEST(Interval, HoldsForAnyNumberOfChunks) {
  // Two microbatches of up to 48 chunks each, whose messages and reductions share the network's
  // ports: a closed form of the schedule was 29 % short of the last of these.
  std::vector<Case> cases;
  for (const std::int64_t chunks : {1, 2, 4, 8, 12, 24}) {
    Case c{"gpt-22b chunks " + std::to_string(chunks),
           "dgx-a100-80g",
           *zoo::load_model("gpt-22b"),
           {}};
    c.plan = {.tp = 8, .pp = 2, .dp = 4, .chunks = chunks, .microbatch = 8, .global_batch = 64};
    c.plan.schedule = chunks > 1 ? plan::Schedule::interleaved : plan::Schedule::one_f_one_b;
    c.plan.recompute = plan::Recompute::full;
    c.plan.zero = 1;
    c.plan.overlap_p2p = c.plan.overlap_grad_reduce = true;
    c.plan.sequence = 2048;
    cases.push_back(std::move(c));
  }
  compare(cases, 0.12);  // messages and reductions share ports, which values leave out
}

TEST(Interval, FollowsThePlansOrder) {
  // With dp innermost the tp groups cross nodes: half as fast again.
  std::vector<Case> cases;
  for (const char* order : {"tp-cp-dp-pp", "tp-cp-pp-dp", "dp-tp-cp-pp"}) {
    Case c{std::string("gpt-7.5b ") + order, "dgx-a100-80g", *zoo::load_model("gpt-7.5b"), {}};
    c.plan = {.tp = 4, .pp = 4, .dp = 8, .global_batch = 128};
    c.plan.order = order;
    cases.push_back(std::move(c));
  }
  compare(cases, 0.1);
}

/// Random plans: |value / simulated - 1|, ascending. No lower end is above the simulation.
std::vector<double> differences(const std::vector<std::string>& machines, int count) {
  testing::RandomPlans plans({.seed = 2026, .machines = machines});
  std::vector<double> differences;
  double least = 0;
  for (int i = 0; i < count; ++i) {
    const auto drawn = plans.next();
    const Case& c = drawn.plan;
    const auto truth = simulated(c.model, c.plan, drawn.machine);
    EXPECT_TRUE(truth) << c.name << plan::to_yaml(c.plan);
    const auto interval = Estimator(c.model, drawn.machine).interval(c.plan);
    EXPECT_TRUE(interval) << c.name << plan::to_yaml(c.plan);
    if (truth && interval) {
      EXPECT_LE(to_seconds(interval->least), *truth) << c.name << plan::to_yaml(c.plan);
      differences.push_back(std::abs(to_seconds(interval->value) / *truth - 1));
      least += to_seconds(interval->least) / *truth;
    }
  }
  std::ranges::sort(differences);
  fmt::print("{} random plans: median {:.2f} %, 90 % within {:.1f} %; at least {:.1f} %\n", count,
             100 * differences[differences.size() / 2],
             100 * differences[differences.size() * 9 / 10], 100 * least / count);
  return differences;
}

TEST(Interval, HoldsForRandomPlans) {
  const std::vector<double> found = differences(testing::kSwitchedMachines, 150);
  EXPECT_LE(found[found.size() / 2], 0.04);
  EXPECT_LE(found[found.size() * 9 / 10], 0.2);
}

TEST(Interval, HoldsForRandomPlansOnATorus) {
  const std::vector<double> found = differences(testing::kTorusMachines, 40);
  EXPECT_LE(found[found.size() / 2], 0.2);
}

}  // namespace
}  // namespace orrery::estimate
