// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/event_queue.h"
#include "machine/faults/faults.h"
#include "machine/network/fair.h"
#include "machine/topology/detours.h"

namespace orrery::network {

/// LinkFaults applies faults to the links of a FairNetwork, and to the routes of messages.
///
///   a link's share changes   at once; what is on a lost link waits
///   routes                   some time after a loss or return (the caller's clock): messages under
///                            route and later ones go around what is lost then (detours.h), and
///                            back when it has returned
///
/// Bytes that have left a sender arrive. Ignores: packets lost, and sent again.
class LinkFaults {
 public:
  /// Follows faults of links of dimensions, around which there are no other ways.
  explicit LinkFaults(FairNetwork& network, std::size_t links)
      : network_(network), share_(links, 1) {}
  /// `graph` must outlive it.
  LinkFaults(FairNetwork& network, const topology::LinkGraph& graph, topology::Routing routing,
             std::uint64_t seed)
      : LinkFaults(network, graph.links.size()) {
    detours_.emplace(graph, routing, seed);
  }

  /// Gives the link this share of its bandwidth from now on. Returns whether routes are to be
  /// looked for again.
  bool change(topology::LinkId link, double share);

  /// Returns the route that a message takes which would go `route`, as far as losses are known.
  std::span<const topology::Hop> route(std::span<const topology::Hop> route) {
    return detours_ ? detours_->instead_of(route) : route;
  }
  void began(TransferId id, std::span<const topology::Hop> route,
             std::span<const topology::Hop> taken);

  /// Routes for messages that reroute() is to put in place of theirs, given the links that are
  /// lost.
  using Replan = std::function<void(const std::vector<bool>& lost, topology::Detours& detours)>;
  void replan_by(Replan replan) { replan_ = std::move(replan); }

  struct Moved {
    std::span<const topology::Hop> from;
    std::span<const topology::Hop> to;
    Bytes left{0};
  };
  /// Losses are known from now on.
  void reroute(engine::EventQueue& queue, const std::function<void(const Moved&)>& moved = {});

 private:
  struct Message {
    std::span<const topology::Hop> route;  ///< with all links there
    std::span<const topology::Hop> taken;
  };

  FairNetwork& network_;
  std::vector<double> share_;  ///< by link
  std::optional<topology::Detours> detours_;
  Replan replan_;
  std::vector<Message> messages_;  ///< by TransferId; of those that have arrived, the last
};

/// Returns the hosts (as nodes of one rank) and links of a network, for faults::schedule_of.
/// `graph` must outlive it.
faults::Places places_of(const topology::LinkGraph& graph);

}  // namespace orrery::network
