// SPDX-License-Identifier: Apache-2.0
/// A phase of a collective as messages: which there are, and how each travels.
///
///   time of a phase alone = setup + end of its last message
///   setup                 = launch + copy of the own chunk (Protocol) + CollectivePhase::waits +
///                           sends, which the network does not see
///
/// A message over dimension d holds each link of its route for bytes / (efficiency * bandwidth) and
/// takes d's step latency, in rings the slowest dimension's (cost.h). Rings are those of
/// ring_orders.h; pipelined algorithms cut their buffer into kMessageChunks.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "collective/cost.h"
#include "collective/message_list.h"
#include "collective/schedule.h"
#include "machine/machine.h"
#include "machine/topology/link_map.h"

namespace orrery::collective {

/// Chunks into which trees and chains cut their buffer.
inline constexpr int kMessageChunks = 16;

/// A collective of more messages than this is refused: its schedule alone would take gigabytes.
inline constexpr std::int64_t kMostMessages = 4'000'000;

/// Checks that the phases exist message by message; the mistake says why not: rail, themis, trees
/// and in_switch over several dimensions, or more than kMostMessages, of which members that fold
/// send the share `sent` of the messages of rings.
Result<void> check_messages(const std::vector<CollectivePhase>& phases,
                            const machine::Machine& machine, double sent = 1);

/// Plans as plan_collective does; in place of a choice (automatic, custom) that has no messages the
/// ring, or for messages from rank to rank the direct exchange.
std::vector<CollectivePhase> plan_messages(graph::CollectiveKind kind, Bytes size,
                                           const std::vector<Extent>& extents,
                                           CollectiveAlgorithm algorithm,
                                           const machine::Machine& machine);

/// Requires check_messages. Ranks are numbered over the phase's extents, innermost first.
MessageSchedule schedule_of(const CollectivePhase& phase, const machine::Machine& machine,
                            int chunks = kMessageChunks);

/// Returns the same as a list; of rings, which are the longest, without making the schedule, and
/// the first two rounds (MessageList::of_rings).
MessageList list_of(const CollectivePhase& phase, const machine::Machine& machine);

/// Says how the messages of one phase travel. Phases of equal kind, algorithm, extents and
/// protocols share their routes, whatever their sizes.
class PhaseRoutes {
 public:
  PhaseRoutes(const CollectivePhase& phase, const machine::Machine& machine);

  /// Appends the links from one device to another, each at the rate at which the phase passes it;
  /// the step latency is the last link's.
  void append(std::int64_t source, std::int64_t destination,
              std::vector<topology::Hop>& hops) const;

 private:
  bool lockstep_ = false;
  Time slowest_{0};
  std::vector<Time> steps_;  ///< step latencies by dimension
  topology::LinkMap map_;
};

/// Returns the time that the phase takes before its first message.
Time setup_of(const CollectivePhase& phase, const machine::Machine& machine);

}  // namespace orrery::collective
