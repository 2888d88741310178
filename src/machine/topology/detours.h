// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "machine/topology/link_graph.h"
#include "machine/topology/routing.h"

namespace orrery::topology {

/// Routes around lost links: what a routing does once it knows of them.
///
///   a route without a lost link   stays (hashes are resilient: others do not move)
///   sprayed                     over what is left of the routes over the fewest links
///   shortest                    the first of what is left over the fewest links
///   all others                  one of these by hash, as ecmp
///
/// Links are at the part of their bandwidth, and the route has the additional latency, of the route
/// that it takes the place of.
///
/// Ignores: balance between the flows that move.
class Detours {
 public:
  /// `graph` must outlive it.
  Detours(const LinkGraph& graph, Routing routing, std::uint64_t seed);

  /// Sets, by link, whether it is lost.
  void set_lost(const std::vector<bool>& lost);
  /// `now` takes the place of `route` until set_lost(), lost or not. Must stay valid as routes do.
  void plan(std::span<const Hop> route, std::span<const Hop> now) {
    instead_.insert_or_assign(route.data(), now);
  }
  /// Returns what takes the place of `route`, which began with all links there: itself where
  /// nothing of it is lost; itself too where no other leads there. Stays valid as long as `route`
  /// does.
  std::span<const Hop> instead_of(std::span<const Hop> route);

 private:
  std::optional<std::vector<Hop>> around(std::span<const Hop> route);
  const GraphLink& link_of(const Hop& hop) const { return graph_.links[hop.link]; }

  const LinkGraph& graph_;
  Routing routing_;
  std::uint64_t seed_;
  std::vector<bool> lost_;
  std::optional<Router> router_;                        ///< without the lost links
  std::map<const Hop*, std::span<const Hop>> instead_;  ///< by first hop, since set_lost
  std::deque<std::vector<Hop>> routes_;                 ///< messages may still be on older ones
};

}  // namespace orrery::topology
