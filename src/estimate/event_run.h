// SPDX-License-Identifier: Apache-2.0
/// A step by the event loop, where links carry the transfers of several groups.
///
///   Groups that cross one another's links on a ring, torus or mesh (and the messages of several
///   ranks), or groups of several stages on a link of a whole node, are as fast as the others let
///   them be at that moment, and drift apart or fall into step as they do. No sum and no mean of
///   who moves when gives that. Nor do maps know what messages that take a twentieth of a pass or
///   more (chunks of one layer behind PCIe) meet at both ends, and who waits for that. Such plans
///   are run by `simulate`, with few microbatches. Of more than these the step is linear,
///
///       T(m) = T(b) + (m - b) (T(b) - T(a)) / (b - a)
///
///   a, b   microbatches of two runs, of interleaved chunks whole rounds of one per stage each
///
/// Ignores: that the rounds between a and b may not be a whole number of periods.
#pragma once

#include "base/result.h"
#include "estimate/estimate.h"
#include "estimate/timed_workload.h"
#include "machine/machine.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::estimate {

/// Whether a plan can be run by events: on a machine of one sort.
bool runs_by_events(const plan::Plan& plan, const machine::Machine& machine);
/// Whether it has rings, tori or meshes.
bool has_lines(const machine::Machine& machine);

/// Of a plan that can be run by events: how many times what they say maps may say. 0: maps are
/// enough. The first of plans on any machine, the second of several stages where there are no
/// lines; requires slowed maps.
double most_above_on_lines(const plan::Plan& plan, const machine::Machine& machine);
double most_above_events(const plan::Plan& plan, const TimedWorkload& timed);

/// Requires a checked plan and the machine of its devices. Parts are of the rank that computes
/// most; the tail is the optimizer.
Result<Estimate> run_by_events(const zoo::Model& model, const plan::Plan& plan,
                               const machine::Machine& machine);

}  // namespace orrery::estimate
