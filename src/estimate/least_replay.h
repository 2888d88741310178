// SPDX-License-Identifier: Apache-2.0
/// The issue lists of all stages with least times: an earliest end of the step.
///
///   Every stage takes its instances in turn, as in replay.h, by the maps of Works::least: nothing
///   is slowed or shares links. Maps are monotone, so no end comes later than with the true times.
///   What is not known when an instance begins (messages in its middle) does not hold it up; nor
///   does the host, which a run may let work in another order.
///
///   Rounds: with x the moments at the end of a round when compute is free and messages arrive,
///   and F a round, F(x) >= x + d gives F^n(x) >= x + n d. So when d comes out as in the round
///   before, or kPatience instances have been evaluated, the rest is n d. The other clocks are
///   forgotten there, which only brings moments forward.
///
/// Ignores: contention, meetings' waits.
#pragma once

#include "base/units.h"
#include "estimate/replay.h"

namespace orrery::estimate {

/// Of a plan mapped with Works::least. Zero where stages wait for one another.
Time least_replay(const PreparedPlan& plan);

}  // namespace orrery::estimate
