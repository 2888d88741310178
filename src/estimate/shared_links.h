// SPDX-License-Identifier: Apache-2.0
/// SharedLinks say what messages and groups that move at the same moment put on the links.
///
///   On a switch and between fully connected devices every rank has ports of its own. On rings,
///   tori and meshes the ways of neighbours cross the same links, and the devices of a block may
///   share one (node_bandwidth): there the weights of all of them are summed, link by link.
///
///   Links of one sort are one port (LinkMap::class_of), with the load of the busiest of them.
///   Messages come in over the links of the lines' other devices: ports of their own, classes() on.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/cost.h"
#include "collective/occupancy.h"
#include "estimate/prices.h"
#include "machine/machine.h"
#include "machine/topology/link_map.h"

namespace orrery::estimate {

/// Returns whether the dimension is a ring, torus or mesh: one device's transfers cross the links
/// of others.
bool is_line(const topology::NetworkDimension& dimension);
/// Returns whether different devices use the same links of it.
bool is_shared(const topology::NetworkDimension& dimension);

/// Ranks of one communicator.
using GroupMembers = std::vector<std::int64_t>;

/// A message from one rank to another.
struct Pair {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// The slowest of some messages of equal size that leave at one moment.
struct MessageWay {
  Time latency{0};
  double seconds_per_byte = 0;  ///< alone
  std::vector<PortLoad> ports;
  std::vector<PortLoad> arrival;
  Time least_latency{0};
  double least_seconds_per_byte = 0;  ///< alone, of the fastest: what every rank needs at least
  bool alike = true;                  ///< each puts the same load on the same ports

  PortPhase phase(Bytes bytes) const;
  Time least(Bytes bytes) const;

  friend bool operator==(const MessageWay&, const MessageWay&) = default;
};

class SharedLinks {
 public:
  explicit SharedLinks(const machine::Machine& machine);

  /// Returns whether different devices use the same links, in some dimension, or in one of these.
  bool crossing() const { return crossing_; }
  bool crossing(const std::vector<collective::Extent>& extents) const;

  /// Returns the loads of a group that shares no links with others.
  std::vector<PortLoad> loads(const collective::CollectivePhase& phase,
                              const GroupMembers& group) const;
  /// The loads of all groups of a stage, and for a part `meanwhile` of the time those of all
  /// stages.
  struct Crowd {
    std::vector<GroupMembers> stage;
    std::vector<GroupMembers> all;
    double meanwhile = 0;
    bool crosses = false;  ///< found out: links of a stage carry other stages' too
  };
  std::vector<PortLoad> loads(const collective::CollectivePhase& phase, Crowd& crowd);
  /// Returns the port of a switch: class_of up or down.
  std::uint32_t port(int dimension, bool up) const;
  MessageWay slowest(std::vector<Pair> messages);

 private:
  struct OnLink {
    double stage = 0;
    double all = 0;
  };
  /// Returns how far apart two ranks are in each dimension: where nothing is shared, messages of
  /// one distance are alike.
  std::vector<std::int64_t> distance(const Pair& message) const;
  bool owns(std::int64_t device, topology::LinkId link) const;
  /// Raises the ports of a link that a collective uses.
  void raise(std::vector<PortLoad>& ports, topology::LinkId link, double load) const;
  void raise(std::vector<PortLoad>& out, std::vector<PortLoad>& in, const Pair& message,
             const topology::LinkUse& use) const;
  void put(const std::vector<topology::LinkUse>& uses, double OnLink::*whose);
  void clear();
  /// Returns the load of a message alone.
  std::vector<PortLoad> ports_of(const topology::Route& route) const;

  topology::LinkMap links_;
  std::vector<std::int64_t> ranks_;
  collective::Occupancy occupancy_;
  bool crossing_ = false;
  std::vector<OnLink> on_link_;
  std::vector<topology::LinkId> used_;
};

}  // namespace orrery::estimate
