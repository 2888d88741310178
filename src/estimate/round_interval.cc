// SPDX-License-Identifier: Apache-2.0
#include "estimate/round_interval.h"

#include <algorithm>
#include <cmath>

#include "workload/plan/rounds.h"
#include "workload/plan/schedule.h"

namespace orrery::estimate {
namespace {

/// The most of each over the stages, and the least time that what computes waits for at a round's
/// end.
struct RoundTimes {
  Time outer{0};
  Time average{0};
  Time late_average{0};  ///< and the gather that follows
  Time least_outer = Time::max();
  Time least_end = Time::max();
  double slowdown = 1;
};

RoundTimes times_of(const PlanCosts& costs) {
  RoundTimes times;
  for (std::size_t s = 0; s < costs.states.size(); ++s) {
    const StageState& state = costs.states[s];
    const Time outer = state.outer + state.shared_outer;
    times.outer = std::max(times.outer, outer);
    times.average = std::max(times.average, state.averaged);
    times.late_average = std::max(times.late_average, state.averaged + state.shared_outer);
    times.least_outer = std::min(times.least_outer, outer);
    times.least_end = std::min(times.least_end, outer + state.averaged);
    times.slowdown = std::max(times.slowdown, costs.loads[s].slowdown());
  }
  return times;
}

bool runs_late(const plan::Plan& plan) {
  return plan.data_parallel_update == plan::DataParallelUpdate::co2;
}

Time least_of_steps(const plan::Plan& plan, const PlanCosts& costs, Time least) {
  if (plan.pp == 1 || !plan::splits_backward(plan.schedule)) {
    return least;
  }
  Time busiest{0};
  for (const StagePasses& load : costs.loads) {
    busiest = std::max(busiest, load.kernels * plan.microbatches());
  }
  return std::min(least, busiest);
}

}  // namespace

Time least_mean(const plan::Plan& plan, const PlanCosts& costs, Time least) {
  if (!plan::runs_rounds(plan)) {
    return least;
  }
  const RoundTimes times = times_of(costs);
  const Time steps = least_of_steps(plan, costs, least) * plan.local_steps;
  const Time round = runs_late(plan) ? std::max(steps + times.least_outer, times.average)
                                     : steps + times.least_end;
  return Time(round.value() / plan.local_steps);
}

Interval mean_interval(const plan::Plan& plan, const PlanCosts& costs, Interval step) {
  if (!plan::runs_rounds(plan)) {
    return step;
  }
  const RoundTimes times = times_of(costs);
  const Time steps = step.value * plan.local_steps;
  const Time lost =
      runs_late(plan) ? std::min(times.average, steps) * (1 - 1 / times.slowdown) : Time(0);
  const Time round = runs_late(plan) ? std::max(steps + lost + times.outer, times.late_average)
                                     : steps + times.outer + times.average;
  const double most = step.most / step.value;
  step.value = Time(round.value() / plan.local_steps);
  step.most = step.value * most;
  return step;
}

std::int64_t hiding_steps(const plan::Plan& plan, const PlanCosts& costs, const Interval& step) {
  if (!plan::runs_rounds(plan) || step.value <= Time(0)) {
    return 1;
  }
  const RoundTimes times = times_of(costs);
  const Time beside = times.late_average - std::min(times.late_average, times.outer);
  const double slowed = step.value / Time(1) * times.slowdown;
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::ceil(static_cast<double>(beside.value()) / slowed)));
}

}  // namespace orrery::estimate
