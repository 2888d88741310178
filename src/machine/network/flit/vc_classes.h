// SPDX-License-Identifier: Apache-2.0
/// Says which virtual channels of a port a packet may take.
#pragma once

#include <cstdint>

#include "machine/network/flit/routing_traits.h"

namespace orrery::flit {

/// A set of virtual channels of one port: bit v is VC v.
using VcMask = std::uint64_t;

/// VcClasses divides the virtual channels by phases, rings and groups, by our rules or BookSim's.
class VcClasses {
 public:
  explicit VcClasses(const RoutingTraits& traits);

  VcMask all() const { return all_; }
  VcMask half(unsigned which) const { return which == 0 ? low_ : high_; }
  /// Returns the VCs of a packet in its phase, of two.
  VcMask of_phase(unsigned phase, bool at_target) const {
    return traits_.follows_booksim() && at_target ? all_ : half(phase);
  }
  /// Returns the VCs of a ring's half, within those of the phase.
  VcMask of_ring(unsigned ring, unsigned phase, bool at_target) const;
  /// Returns the VCs of a group of a dragonfly, by how many a packet has left.
  VcMask of_group(unsigned group) const;
  /// Returns the VCs to the node of a packet that is at its target's router.
  VcMask to_node(std::uint8_t phase) const;

 private:
  RoutingTraits traits_;
  VcMask all_;
  VcMask low_;
  VcMask high_;
};

}  // namespace orrery::flit
