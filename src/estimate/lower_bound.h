// SPDX-License-Identifier: Apache-2.0
/// A time that no run of a plan can be faster than, and that is cheap to have.
///
///   max over stages of
///       fill      the first message's way to the stage, on idle stages and links
///     + own work  sum over its instances of the least time from compute free to compute free:
///                 kernels alone and the collectives they wait for, on idle links
///     + drain     from its last message on: the passes it is waited for with, and the end
///   and of every lane of a stage (collectives and messages of one communicator) and of the host:
///   the sum of what it does;  where no device uses the links of another, of every port of a rank:
///   the bytes of all its transfers at the port's rate;  and the issue lists with least times
///   (least_replay.h).
///
/// Admissible: every term is a path of dependencies of the run with no duration longer than the
/// run's: no sharing of links, no slower kernels, of a stage's messages the fastest.
#pragma once

#include "estimate/replay.h"

namespace orrery::estimate {

/// Requires the least maps.
Time least_time(const PreparedPlan& plan);

}  // namespace orrery::estimate
