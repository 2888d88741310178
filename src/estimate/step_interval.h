// SPDX-License-Identifier: Apache-2.0
/// The step time of a plan as an interval, from the costs of its blocks and states alone.
///
///   least   max of least_step.h and of the schedule with least times (schedule_run.h), then the
///           optimizer's kernels: no run is faster
///   value   the schedule with times as they are beside each other, then what is left of the
///           reductions, the optimizer, gathers:
///
///             pass        max(chain + lost + exposed, host, gathers of its parameters, copies)
///             lost        kernels slowed beside reductions and gathers of every microbatch
///             exposed     those that compute waits for
///             per port    no microbatch takes less than the bytes of its busiest port
///             tail        end of the last reduction - end of the last pass
///
///   most    value times what 19 of 20 simulations are not above, by kind of plan: measured
///
/// A step of more pieces of work than a schedule is run for is linear in the microbatches.
///
/// Ignores:  what is left of sharing of ports between messages, gathers and reductions; order of
///           collectives of one lane. docs/models/estimate.md says how much that is.
/// Source:   docs/models/estimate.md says how near it is.
#pragma once

#include "estimate/cost_tables.h"
#include "workload/plan/plan.h"

namespace orrery::estimate {

struct Interval {
  Time least{0};  ///< no run is faster
  Time value{0};
  Time most{0};
  /// Parts of value, in the stage that is busiest; they sum to it.
  Time compute{0};  ///< kernels alone
  Time exposed{0};  ///< within passes: collectives, waits for the host, slower kernels
  Time bubble{0};   ///< pipeline fill and drain, waits for messages
  Time tail{0};     ///< after the last pass: the end of the step
};

/// Requires costs of Sharing::alone. Never above the simulated time.
Time least_interval(const plan::Plan& plan, const PlanCosts& costs);

/// Returns all of the interval but `least`. Requires costs of Sharing::together.
Interval composed_interval(const plan::Plan& plan, const PlanCosts& costs);

}  // namespace orrery::estimate
