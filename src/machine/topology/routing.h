// SPDX-License-Identifier: Apache-2.0
/// Routes through a network of links.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/result.h"
#include "machine/topology/link_graph.h"
#include "machine/topology/link_map.h"

namespace orrery::topology {

/// Returns a number that looks random, the same for the same input everywhere (Steele, Lea and
/// Flood, OOPSLA 2014: SplitMix64).
constexpr std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31U);
}

/// Checks that a routing suits the network; the mistake is a sentence that says what it would need.
Result<void> check_routing(const LinkGraph& graph, Routing routing);

/// Finds routes, and remembers distances: one table of the size of the network per switch that has
/// been a target. `graph` must outlive it. Requires what check_routing says.
class Router {
 public:
  /// `lost`: links that no route takes, by link; empty: none. With lost links only shortest, ecmp
  /// and spray are possible.
  Router(const LinkGraph& graph, Routing routing, std::uint64_t seed = 0,
         const std::vector<bool>& lost = {});

  /// Appends the route of flow `key` between two hosts. Nothing when they are one and it has no
  /// link to itself. False when no route leads there.
  ///
  ///   nearest  the least sum of GraphLink::length. Where links of an irregular network differ in
  ///            bandwidth, a route with less than half of the widest nearest route's is none
  ///   ecmp     at every vertex link hash(seed, key, vertex) mod n of the n links that lead nearer
  ///   spray    all of these, in parts as the bandwidths of the routes that they begin: a link that
  ///            gets a share f is a hop of bandwidth / f; the latencies are on the first hop, as of
  ///            the first of the routes
  bool route(std::int32_t source, std::int32_t target, std::uint64_t key, std::vector<Hop>& hops);

  /// Appends a route that passes these vertices one after the other; between them the nearest, of
  /// several by hash with ecmp, else the first. False when there is none.
  bool through(std::int32_t source, std::span<const std::int32_t> stops, std::int32_t target,
               std::uint64_t key, std::vector<Hop>& hops);

  /// Appends the route by choice[l] at each level l of a fat tree from 0 up: parent choice % up[l],
  /// cable choice / up[l], the same cable down. Requires the family clos and source != target.
  bool climb(std::int32_t source, std::int32_t target, std::span<const std::int32_t> choice,
             std::vector<Hop>& hops) const;

  Routing routing() const { return routing_; }
  std::uint64_t seed() const { return given_seed_; }
  const LinkGraph& graph() const { return graph_; }
  const Adjacency& adjacency() const { return adjacency_; }
  /// Returns the lengths of the nearest routes from every vertex to this one, -1: none.
  const std::vector<std::int16_t>& distances(std::int32_t target);
  /// Returns the links out of a vertex that begin a nearest route to another, in their order.
  std::vector<std::int32_t> nearer(std::int32_t here, std::int32_t goal);
  /// Returns the link that messages over this one count on (GraphLink::joint).
  LinkId link_id(std::int32_t link) const {
    return static_cast<LinkId>(at(link).joint ? link & ~1 : link);
  }
  Hop hop(std::int32_t link) const { return {link_id(link), at(link).bandwidth, at(link).latency}; }

 private:
  /// Distances to a target, and, where links differ, the bandwidth of the widest nearest route.
  struct Nearest {
    std::vector<std::int16_t> distance;
    std::vector<float> width;  ///< empty: all routes are as wide
  };
  const GraphLink& at(std::int32_t link) const {
    return graph_.links[static_cast<std::size_t>(link)];
  }
  bool stated(std::int32_t source, std::int32_t target, std::vector<Hop>& hops) const;
  bool dimension_order(std::int32_t source, std::int32_t target, std::vector<Hop>& hops) const;
  bool d_mod_k(std::int32_t source, std::int32_t target, std::vector<Hop>& hops) const;
  bool minimal(std::int32_t source, std::int32_t target, std::vector<Hop>& hops) const;
  bool walk(std::int32_t source, std::int32_t target, std::uint64_t key, std::vector<Hop>& hops);
  /// Appends the hops to any vertex, and goes no farther than that.
  bool approach(std::int32_t here, std::int32_t goal, std::uint64_t key, std::vector<Hop>& hops);
  bool spray(std::int32_t source, std::int32_t target, std::vector<Hop>& hops);
  /// Appends the `copy`-th link between two vertices; returns false when there is none.
  bool pass(std::int32_t from, std::int32_t to, std::int32_t copy, std::vector<Hop>& hops) const;
  /// Returns the vertex that the host's only link leads to, or the host itself.
  std::int32_t gate(std::int32_t host) const;

  const LinkGraph& graph_;
  Adjacency adjacency_;
  Routing routing_;
  std::uint64_t given_seed_;
  std::uint64_t seed_;
  std::vector<std::int32_t> first_of_level_;                        ///< of a clos
  std::vector<std::int32_t> gates_;                                 ///< by host
  std::vector<std::unique_ptr<Nearest>> nearest_;                   ///< by target vertex
  using Rings = std::map<std::int32_t, std::vector<std::int32_t>>;  ///< vertices by distance

  const Nearest& nearest(std::int32_t target);
  void reach_before(std::int32_t vertex, std::int32_t target, Nearest& found, Rings& rings) const;
  float width_over(std::int32_t link, const Nearest& to_goal) const;
  std::int32_t spray_on(std::int32_t here, std::int32_t goal, Rings& rings, std::vector<Hop>& hops);

  std::vector<double> share_;                    ///< of spray, by vertex
  std::vector<std::vector<std::int32_t>> into_;  ///< links to a vertex; lazily
  bool unlike_ = false;                          ///< links of an irregular network differ in speed
};

}  // namespace orrery::topology
