// SPDX-License-Identifier: Apache-2.0
/// The mean step of a plan whose workers step alone (workload/plan/rounds.h), from the interval of
/// one step without what ends a round. Maxima and minima are over stages; A is the all-reduce, or
/// with shard_outer the reduce-scatter, and t_outer holds the gather after it:
///
///   least   co2: max(tau least + min t_outer, max A) / tau
///           others: (tau least + min(t_outer + A)) / tau
///   value   co2: max(tau value + lost + t_outer, A + gather) / tau,  lost: kernels slowed beside A
///           others: (tau value + t_outer + A) / tau
///
/// A pipeline of split backwards may begin a step before it has ended the one before in every
/// stage: then `least` of a step is the kernels of the busiest stage.
#pragma once

#include "estimate/cost_tables.h"
#include "estimate/step_interval.h"
#include "workload/plan/plan.h"

namespace orrery::estimate {

/// Returns the least mean time of a round's steps. `least`: one step's; it stays as it is where the
/// plan has no rounds.
Time least_mean(const plan::Plan& plan, const PlanCosts& costs, Time least);

/// Returns the same of composed_interval().
Interval mean_interval(const plan::Plan& plan, const PlanCosts& costs, Interval step);

/// Returns the fewest steps of a round whose compute hides the all-reduce of co2, going by value; 1
/// where the plan has no rounds.
std::int64_t hiding_steps(const plan::Plan& plan, const PlanCosts& costs, const Interval& step);

}  // namespace orrery::estimate
