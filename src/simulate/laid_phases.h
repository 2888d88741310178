// SPDX-License-Identifier: Apache-2.0
/// Phases of collectives on a network of links (topology::Wires), for a transport that moves whole
/// phases.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "machine/machine.h"
#include "machine/topology/link_map.h"
#include "simulate/message_plans.h"

namespace orrery::simulate {

/// Returns the links of a machine: those of its topology where it has one.
topology::LinkMap laid_links(const machine::Machine& machine);

/// LaidPhases says what the messages of a phase do to the links of the machine's topology.
///
///   round    messages that as many others must precede, one after another
///   busiest  sum over the rounds of the busiest link's time for the round's messages
///   stretch  busiest on the topology / busiest on the dimensions' own links
///   weight   of a link: its time for all messages of the phase / busiest
///
/// A phase takes stretch times the serialisation of its closed form: the same on a network that
/// gives every pair of the phase what the dimensions say, more where routes meet
/// (over-subscription, collisions of a hash) or links are slower, less where they are faster.
/// Latencies stay the dimensions', as with messages (phase_messages.h).
///
/// Ignores: that rounds of different members overlap.
class LaidPhases {
 public:
  /// References must outlive this, but `machine`, whose wires must have a graph. Links are numbered
  /// from `first_link` on.
  LaidPhases(const Wiring& wiring, Binding& binding, const machine::Machine& machine,
             std::size_t first_link);

  /// Mistakes: algorithms that have no messages.
  Result<void> check(const graph::Workload& workload, std::string_view network) {
    return on_links_.check_algorithms(workload, network);
  }
  std::size_t links() const { return map_.links(); }

  struct Phase {
    double stretch = 1;
    std::vector<topology::LinkUse> links;  ///< ascending
  };
  /// Requires check().
  Phase of(CommunicatorIndex communicator, int collective, std::size_t phase);
  topology::Route message(std::int64_t source, std::int64_t destination) const;

 private:
  topology::LinkId first_;
  machine::Machine machine_;
  machine::Machine flat_;  ///< the same without its topology
  topology::LinkMap map_;
  std::size_t flat_links_ = 0;
  MessagePlans on_links_;
  MessagePlans on_dimensions_;
};

}  // namespace orrery::simulate
