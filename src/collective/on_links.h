// SPDX-License-Identifier: Apache-2.0
/// Collectives as flows: what their messages take on links that they share with each other alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "collective/cost.h"
#include "collective/message_list.h"
#include "machine/machine.h"
#include "machine/topology/link_map.h"

namespace orrery::collective {

/// Of a buffer of `size` bytes, in whole bytes.
Bytes bytes_of(const MessageList& list, std::uint32_t message, Bytes size);

/// The messages of one phase, in `groups` of members that send beside each other.
struct PhaseFlows {
  const MessageList& list;
  Bytes size{0};  ///< of the phase's buffer
  std::uint32_t groups = 1;
  std::function<std::span<const topology::Hop>(std::uint32_t group, std::uint32_t message)> way;
};

/// From the first message to the end of the last, max-min fair, with nothing else on the links; a
/// message begins when those that it waits for have arrived.
Time flow_time(const PhaseFlows& phase);

/// Collectives on a machine's network of links (topology::Wires), where closed forms would give
/// away what ways share:
///
///   time = sum over phases of setup (phase_messages.h) + flow_time of the messages of all groups
///
/// as `--network flow` simulates a collective of every group at once. Ignores: that a group which
/// has ended a phase before others begins the next one.
class LinkTimes {
 public:
  /// Requires wires with a graph; device d is its host d.
  explicit LinkTimes(machine::Machine machine) : machine_(std::move(machine)) {}

  /// Mistakes: algorithms that have no messages, or too many (phase_messages.h).
  Result<void> check(graph::CollectiveKind kind, const std::vector<Extent>& extents,
                     CollectiveAlgorithm algorithm) const;
  /// Of plan_messages, or of plan_token_exchange with it. Requires check().
  Time time(const std::vector<CollectivePhase>& phases);
  Time time(graph::CollectiveKind kind, Bytes size, const std::vector<Extent>& extents,
            CollectiveAlgorithm algorithm);

 private:
  /// Phases of equal shape send the same messages over the same ways, whatever their sizes.
  using Shape =
      std::pair<std::pair<graph::CollectiveKind, CollectiveAlgorithm>, std::vector<std::int64_t>>;
  struct Ways {
    MessageList list;
    std::uint32_t groups = 0;
    std::vector<std::vector<topology::Hop>> of_pair;  ///< by group and pair of the list
    std::map<Bytes, Time> known;                      ///< by size of the buffer
  };
  Ways& ways_of(const CollectivePhase& phase);
  /// Members of every group, in the order of the phase's schedule.
  std::vector<std::vector<std::int64_t>> groups_of(const CollectivePhase& phase) const;

  machine::Machine machine_;
  std::map<Shape, Ways> ways_;
};

}  // namespace orrery::collective
