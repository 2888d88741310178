// SPDX-License-Identifier: Apache-2.0
/// Says which links a phase of a collective, or a message, holds for how long.
///
/// On switches, fully connected dimensions and whole rings every member's links are charged alike,
/// with what the busiest carries, so that members stay alike (folding). On lines - parts of rings,
/// meshes - a link is charged by its place: with g the links between member g and g+1 of c
///
///   ring, send_recv   every link there and back: the last member's part returns over all of them
///   direct            (g+1)(c-1-g) messages each way; broadcast: c-1-g, forwards
///   halving_doubling, double_binary_tree: what its steps and edges put on the links there
///   others            every link for all of the phase
///
/// On whole rings direct exchanges and shifts charge the two directions by what goes each way
/// (half-way messages forwards, as LinkMap).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/cost.h"
#include "graph/members.h"
#include "machine/topology/link_map.h"

namespace orrery::collective {

/// `simulated` devices (ascending) may stand for others like them, those that differ from them in
/// `folded` digits of their numbers: a link of such a device is then that of its representative,
/// and one that a block of devices shares is charged for all of the block. It keeps references to
/// its arguments.
class Occupancy {
 public:
  Occupancy(const topology::LinkMap& links, std::span<const std::int64_t> simulated,
            std::span<const graph::Digit> folded = {})
      : links_(links), simulated_(simulated), folded_(folded) {}

  /// Returns the links that the simulated members of one group use, ascending, each once. Their
  /// weights are relative to phase.serialisation.
  std::vector<topology::LinkUse> phase(const CollectivePhase& phase,
                                       std::span<const std::int64_t> members) const;
  topology::Route message(std::int64_t source, std::int64_t destination) const;

 private:
  /// Returns the number of devices of the link's block per simulated one.
  double alike(topology::LinkId link) const;
  /// Returns the link that stands for it.
  topology::LinkId representative(topology::LinkId link) const;

  const topology::LinkMap& links_;
  std::span<const std::int64_t> simulated_;
  std::span<const graph::Digit> folded_;
};

}  // namespace orrery::collective
