// SPDX-License-Identifier: Apache-2.0
/// Where the nodes of a template repeat, so that a run can jump them (node_run.h).
///
///   A period is a layer, or a few where reductions of gradients fill a bucket only every few. Node
///   i + length takes, uses and waits for what node i does, so much later. Later nodes wait for
///   nothing in a repetition but its last nodes; what they transfer comes after those: it is on one
///   of their lanes, or waits for the last of one.
#pragma once

#include <cstdint>
#include <vector>

#include "estimate/timed_workload.h"

namespace orrery::estimate {

/// `starts`: the first nodes of blocks, in order. `kinds`: by node a number, equal where nodes are
/// equal but for what they wait for.
std::vector<Repeat> find_repeats(const TimedTemplate& nodes,
                                 const std::vector<std::uint32_t>& starts,
                                 const std::vector<std::uint32_t>& kinds);

}  // namespace orrery::estimate
