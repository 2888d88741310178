// SPDX-License-Identifier: Apache-2.0
#include "estimate/least_replay.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "estimate/estimate.h"
#include "estimate/quick_bound.h"
#include "random_plans.h"
#include "simulate/simulate.h"
#include "workload/parallel/lower.h"
#include "workload/plan/layout.h"

namespace orrery::estimate {
namespace {

Time step_of(const zoo::Model& model, const machine::Machine& machine, const plan::Plan& plan) {
  const auto fitted = machine::with_devices(machine, plan.devices());
  const auto workload = parallel::lower(model, plan);
  EXPECT_TRUE(fitted && workload);
  simulate::SimulateOptions options;
  options.algorithms = plan::algorithms_of(plan);
  return simulate::simulate(*workload, *fitted, options)->step_time;
}

/// A pipeline in which nothing runs beside kernels but its messages.
plan::Plan quiet_pipeline(std::int64_t batch) {
  plan::Plan plan{.tp = 8, .pp = 4, .dp = 1, .microbatch = 1, .global_batch = batch};
  plan.sequence = 2048;
  plan.overlap_p2p = true;
  return plan;
}

TEST(LeastReplay, IsTheStepWhereNothingContends) {
  const auto model = *zoo::load_model("gpt-7.5b");
  const auto machine = *machine::load_machine("dgx-h100");
  for (const plan::Schedule schedule :
       {plan::Schedule::one_f_one_b, plan::Schedule::zb_h1, plan::Schedule::gpipe}) {
    plan::Plan plan = quiet_pipeline(16);
    plan.schedule = schedule;
    const Time step = step_of(model, machine, plan);
    const auto bound = Estimator(model, machine).lower_bound(plan);
    ASSERT_TRUE(bound);
    EXPECT_LE(*bound, step) << name_of(schedule);
    EXPECT_GE(*bound / step, 0.97) << name_of(schedule);
  }
}

TEST(LeastReplay, SkippedRoundsAddWhatEachAdds) {
  // In the steady state a microbatch more is a period more, evaluated or skipped: from 64 to 128
  // as long as from 512 to 576.
  const auto model = *zoo::load_model("gpt-7.5b");
  const auto machine = *machine::load_machine("dgx-h100");
  Estimator estimator(model, machine);
  const auto bound = [&](std::int64_t batch) {
    return *estimator.lower_bound(quiet_pipeline(batch));
  };
  const Time few = bound(128) - bound(64);
  const Time many = bound(576) - bound(512);
  EXPECT_GT(few, Time(0));
  EXPECT_NEAR(many / few, 1, 1e-6);
}

TEST(LeastReplay, IsNeverAboveTheSimulationAndNearIt) {
  testing::RandomPlans plans({.seed = 31, .machines = testing::kSwitchedMachines});
  constexpr int kPlans = 120;
  double sum = 0;
  for (int i = 0; i < kPlans; ++i) {
    const auto drawn = plans.next();
    const auto& [name, machine_name, model, plan] = drawn.plan;
    const Time step = step_of(model, drawn.machine, plan);
    const auto bound = Estimator(model, drawn.machine).lower_bound(plan);
    ASSERT_TRUE(bound) << name;
    EXPECT_LE(*bound, step) << name << plan::to_yaml(plan);
    sum += *bound / step;
  }
  fmt::print("{} random plans: bound {:.1f} % of the simulated time\n", kPlans, 100 * sum / kPlans);
  EXPECT_GE(sum / kPlans, 0.95);
}

}  // namespace
}  // namespace orrery::estimate
