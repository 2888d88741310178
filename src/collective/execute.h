// SPDX-License-Identifier: Apache-2.0
/// Runs the messages of a schedule on links: store and forward at the ranks, cut-through at the
/// links in between, first come first served on every link.
#pragma once

#include <functional>
#include <vector>

#include "base/units.h"
#include "collective/schedule.h"

namespace orrery {

/// The links of a network, and which of them a message passes, in order.
struct Wires {
  int links = 0;
  Bandwidth bandwidth{0};  ///< of one link
  Time step_latency{0};    ///< of a message over one link
  Time hop_latency{0};     ///< more for every further link
  /// Of a message where not all are alike; instead of the three above.
  struct Speed {
    Bandwidth bandwidth{0};
    Time step_latency{0};
    Time hop_latency{0};
  };
  std::function<Speed(int sender, int receiver)> speed;
  std::function<std::vector<int>(int sender, int receiver)> route;
};

/// A message leaves when those in its `after` have arrived; among ready ones that want a link the
/// one that was ready first goes first (ties: in order of the schedule). It holds each link of its
/// route for bytes / bandwidth, one after the other, and arrives latency after the last.
struct Execution {
  std::vector<Time> departure;  ///< by message: on its first link
  std::vector<Time> arrival;
  Time end{0};
};
Execution execute(const MessageSchedule& schedule, Bytes size, const Wires& wires);

}  // namespace orrery
