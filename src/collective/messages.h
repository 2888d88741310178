// SPDX-License-Identifier: Apache-2.0
/// A collective run message by message on the links of a machine: the network model "message", the
/// check on the closed forms of cost.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

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
/// takes d's step latency, in rings the slowest dimension's (cost.h). Rings are those of
/// ring_orders.h; pipelined algorithms cut their buffer into 16 chunks.
///
/// `algorithm` automatic: what plan_collective takes; where that has no messages (in_switch, rail
/// and trees over several dimensions), the ring or the direct exchange. Nothing when an algorithm
/// that was asked for has no messages, or more than kMostMessages of them.
///
/// Ignores: what each further send of a member costs (StepCount::further_messages).
std::optional<std::vector<CollectivePhase>> message_plan(CollectiveKind kind, Bytes size,
                                                         const MessageGroup& group,
                                                         CollectiveAlgorithm algorithm,
                                                         const Machine& machine);

/// The members of every group of a phase, in the order of its schedule.
using DeviceGroups = std::vector<std::vector<std::int64_t>>;
DeviceGroups groups_of(const CollectivePhase& phase, const Machine& machine);

/// Time until the last of these groups, all beginning at once, has done one phase of message_plan.
struct MessageCuts {
  int chunks = 16;  ///< of the buffer, where an algorithm is pipelined
  int slices = 1;   ///< of every message (execute.h, together)
};
Time message_time(const CollectivePhase& phase, const DeviceGroups& groups, const Machine& machine,
                  const MessageCuts& cuts = {});
/// Of the group of device 0 alone.
Time message_time(const CollectivePhase& phase, const Machine& machine);

}  // namespace orrery
