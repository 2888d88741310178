// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "workload/parallel/draft.h"

namespace orrery::parallel {

/// Returns the kernel of `step` as n pieces that run one after the other, so that others can wait
/// for a piece where they need a tile of its result:
///
///   piece i takes floor((i+1) t / n) - floor(i t / n) of the kernel's time t: all take t
///
/// The host dispatches the first, with the kernel; all read what the step reads, the last writes
/// what it writes. n = 1 is the step itself. Pass `fuse` joins pieces that nobody waits for.
///
/// Ignores:  that tiles of one wave end together: pieces take equal time.
/// Requires: n >= 1; a compute step of one operator, launched once, whose time follows from its
///           shape or its duration (graph::is_divisible).
std::vector<Step> in_pieces(const Step& step, std::int64_t n);

}  // namespace orrery::parallel
