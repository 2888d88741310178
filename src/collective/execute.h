// SPDX-License-Identifier: Apache-2.0
/// Runs the messages of schedules on links: store and forward at the ranks, cut-through at the
/// links in between, first come first served on every link.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/units.h"
#include "collective/schedule.h"
#include "machine/topology/link_map.h"

namespace orrery {

/// How a message goes: each link is held for bytes / bandwidth, from when it is free and the first
/// byte is there; a link's latency later the first byte is at the next. `after` the last byte has
/// passed the last link the message has arrived.
struct MessageWay {
  std::vector<Hop> hops;
  Time after{0};
};

/// The links of a network, and the way of a message on them.
struct Wires {
  std::size_t links = 0;
  std::function<const MessageWay&(std::int64_t sender, std::int64_t receiver)> way;
};

/// One schedule run by several groups at once on the same links, as one schedule: rank r of group i
/// is groups[i][r]. The buffer is cut into `slices` that run beside each other, as transports cut
/// messages into packets, two of a message under way at once. Message by message, slice by slice,
/// group by group.
MessageSchedule together(const MessageSchedule& schedule,
                         std::span<const std::vector<std::int64_t>> groups, int slices = 1);

/// A message leaves when those in its `after` have arrived; among ready ones that want a link the
/// one that was ready first goes first (ties: in order of the schedule).
struct Execution {
  std::vector<Time> departure;  ///< by message: on its first link
  std::vector<Time> arrival;
  Time end{0};
};
Execution execute(const MessageSchedule& schedule, Bytes size, const Wires& wires);

}  // namespace orrery
