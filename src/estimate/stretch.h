// SPDX-License-Identifier: Apache-2.0
/// What of a template takes longer beside communication of other instances.
///
///   kernels      beside messages and collectives, by their own slowdowns
///   collectives  that kernels wait for, on a port that messages leave or come in by: of one that
///                wants it for c beside a message that wants it for m, the rate is
///                max(1, c) / max(1, c + m) of that without
///
///   slowdown     of both together: 1 / (1 - sum(t_i (1 - 1/s_i)) / sum(t_i))
///   crowded      messages take long enough for it to matter which collective they meet: a message
///                leaves when the next template begins, perhaps with a gather
#pragma once

#include <vector>

#include "estimate/pass_map.h"
#include "estimate/timed_workload.h"

namespace orrery::estimate {

struct Stretch {
  Time work{0};  ///< of kernels, and of collectives that share ports with messages
  Slowdown slowdown;
  bool crowded = false;  ///< to be run node by node
};

/// What the longest message takes, of the kernels of the shortest template that sends one.
double share_of_messages(const TimedWorkload& timed);

/// Whether messages take long enough for it to matter that two of them come in at once.
bool messages_matter(const TimedWorkload& timed);

/// By template. Requires their slowed maps.
std::vector<Stretch> stretches_of(const TimedWorkload& timed);

}  // namespace orrery::estimate
