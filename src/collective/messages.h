// SPDX-License-Identifier: Apache-2.0
/// A collective run message by message on the links of a machine: the network model "message", the
/// check on the closed forms of cost.h.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"
#include "collective/cost.h"
#include "collective/execute.h"
#include "collective/schedule.h"
#include "machine/machine.h"

namespace orrery {

/// More messages than this take minutes.
inline constexpr std::int64_t kMostMessages = 4'000'000;

/// The members r * stride, r < count, of a machine that has exactly stride * count devices
/// (with_devices).
struct MessageGroup {
  std::int64_t stride = 1;
  std::int64_t count = 2;
};

/// What plan_collective plans for this group, run: every message of each phase's algorithm on its
/// way through the network (LinkMap::route), with the protocol of the phase.
///
///   time of a phase = launch + local copy + end of the last message
///
/// A message over dimension d holds each link of its way for bytes / (efficiency * bandwidth) and
/// takes d's step latency, in rings the slowest dimension's (cost.h). Rings over several dimensions
/// are rotated so that every member uses its own port, as in flat.h; pipelined algorithms cut their
/// buffer into 16 chunks.
///
/// `algorithm` automatic: what plan_collective takes; where that has no messages (in_switch, rail
/// and trees over several dimensions), the ring or the direct exchange. Nothing when an algorithm
/// that was asked for has no messages, or more than kMostMessages of them.
///
/// Ignores: other groups that use the same links at the same time; what each further send of a
/// member costs (StepCount::further_messages); on rings and meshes of links, a second ring that
/// goes the other way round.
std::optional<std::vector<CollectivePhase>> message_plan(CollectiveKind kind, Bytes size,
                                                         const MessageGroup& group,
                                                         CollectiveAlgorithm algorithm,
                                                         const Machine& machine);

/// Time of one phase of message_plan.
Time message_time(const CollectivePhase& phase, const Machine& machine);

}  // namespace orrery
