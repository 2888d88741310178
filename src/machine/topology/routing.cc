// SPDX-License-Identifier: Apache-2.0
#include "machine/topology/routing.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace orrery::topology {
namespace {

using Family = Layout::Family;

bool is_grid(const LinkGraph& graph) {
  const Family family = graph.layout.family;
  return family == Family::mesh || family == Family::torus || family == Family::butterfly;
}

/// Returns the next coordinate on the way from one to another. It takes the shorter way around, and
/// on a tie goes forward unless the target is behind (as SimGrid: forward from the upper half
/// only).
std::int32_t next_coordinate(Family family, std::int32_t from, std::int32_t to, std::int32_t extent,
                             std::int32_t first) {
  if (family == Family::butterfly) {
    return to;
  }
  if (family == Family::mesh) {
    return from + (to > from ? 1 : -1);
  }
  const std::int32_t half = extent / 2;
  const bool forward =
      (to > first && to <= first + half) || (first > half && (first + half) % extent >= to);
  return (from + (forward ? 1 : extent - 1)) % extent;
}

/// Returns the graph without the lost links; of links without ends nobody knows where they lead.
LinkGraph without(LinkGraph graph, const std::vector<bool>& lost) {
  for (std::size_t l = 0; l < graph.links.size(); ++l) {
    graph.links[l].source = lost[l] ? -1 : graph.links[l].source;
  }
  return graph;
}

}  // namespace

Result<void> check_routing(const LinkGraph& graph, Routing routing) {
  const Family family = graph.layout.family;
  if (routing == Routing::dimension_order && !is_grid(graph)) {
    return fail("routing dimension_order needs a mesh, torus or flattened butterfly");
  }
  if (routing == Routing::d_mod_k && family != Family::clos) {
    return fail("routing d_mod_k needs a fat tree (fat_tree, leaf_spine or clos)");
  }
  if (routing == Routing::minimal && family != Family::cascade) {
    return fail("routing minimal needs a dragonfly of a SimGrid platform");
  }
  if (routing == Routing::stated && graph.routes.empty()) {
    return fail("routing stated needs a file that states routes");
  }
  const bool tree = routing == Routing::greedy || routing == Routing::source_rule ||
                    routing == Routing::pair_split || routing == Routing::colour;
  const std::string name(name_of(routing));
  if (tree && family != Family::clos) {
    return fail("routing " + name + " needs a fat tree (fat_tree, leaf_spine or clos)");
  }
  const bool by_leaf = routing == Routing::source_rule || routing == Routing::pair_split;
  if (by_leaf && (graph.layout.shape.size() != 2 || graph.layout.up[0] != 1)) {
    return fail("routing " + name + " needs two levels of switches");
  }
  const bool open =
      std::ranges::any_of(graph.links, [](const GraphLink& l) { return l.source < 0; });
  if (open && routing != Routing::automatic && routing != Routing::stated) {
    return fail("the file states routes, but not what its links join: expected routing stated");
  }
  return {};
}

bool all_reachable(const LinkGraph& graph, Routing routing) {
  Router router(graph, routing);
  if (router.routing() == Routing::stated) {
    const auto hosts = static_cast<std::size_t>(graph.hosts);
    const auto own = std::ranges::count_if(
        graph.routes, [](const auto& route) { return route.first.first == route.first.second; });
    return graph.routes.size() - static_cast<std::size_t>(own) == hosts * (hosts - 1);
  }
  const std::vector<std::int16_t>& back = router.distances(0);
  std::vector<bool> seen(graph.vertices.size());
  std::vector<std::int32_t> open{0};
  seen[0] = true;
  while (!open.empty()) {
    const std::int32_t here = open.back();
    open.pop_back();
    if (here != 0 && here < graph.hosts && !graph.hosts_forward) {
      continue;
    }
    for (const std::int32_t link : router.adjacency().out(here)) {
      const std::int32_t to = graph.links[static_cast<std::size_t>(link)].target;
      if (!seen[static_cast<std::size_t>(to)]) {
        seen[static_cast<std::size_t>(to)] = true;
        open.push_back(to);
      }
    }
  }
  for (std::size_t h = 0; h < static_cast<std::size_t>(graph.hosts); ++h) {
    if (!seen[h] || back[h] < 0) {
      return false;
    }
  }
  return true;
}

Router::Router(const LinkGraph& graph, Routing routing, std::uint64_t seed,
               const std::vector<bool>& lost)
    : graph_(graph),
      adjacency_(lost.empty() ? Adjacency(graph) : Adjacency(without(graph, lost))),
      routing_(routing == Routing::automatic ? graph.routing : routing),
      given_seed_(seed),
      seed_(mixed(seed)),
      gates_(static_cast<std::size_t>(graph.hosts)),
      nearest_(graph.vertices.size()),
      share_(graph.vertices.size()) {
  // A gate is also where all that comes to its host comes from.
  std::vector<std::int32_t> entrance(static_cast<std::size_t>(graph.hosts), -1);
  for (std::int32_t from = 0; from < std::ssize(graph.vertices); ++from) {
    for (const std::int32_t link : adjacency_.out(from)) {
      const std::int32_t to = at(link).target;
      if (to < graph.hosts && to != from) {
        std::int32_t& known = entrance[static_cast<std::size_t>(to)];
        known = known < 0 || known == from ? from : to;
      }
    }
  }
  for (std::int32_t host = 0; host < graph.hosts; ++host) {
    const std::int32_t leads = gate(host);
    gates_[static_cast<std::size_t>(host)] =
        leads == entrance[static_cast<std::size_t>(host)] ? leads : host;
  }
  const auto ends = [](const GraphLink& link) { return link.source >= 0; };
  const auto some = std::ranges::find_if(graph.links, ends);
  unlike_ = graph.layout.family == Family::irregular &&
            std::any_of(some, graph.links.end(), [&](const GraphLink& link) {
              return ends(link) && link.bandwidth != some->bandwidth;
            });
  if (graph.layout.family == Family::clos) {
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      if (v == 0 || graph.vertices[v].level != graph.vertices[v - 1].level) {
        first_of_level_.push_back(static_cast<std::int32_t>(v));
      }
    }
  }
}

/// A link of the host to itself counts as none.
std::int32_t Router::gate(std::int32_t host) const {
  std::int32_t to = host;
  for (const std::int32_t link : adjacency_.out(host)) {
    if (at(link).target != host) {
      if (to != host || graph_.hosts_forward) {
        return host;
      }
      to = at(link).target;
    }
  }
  return to;
}

bool Router::route(std::int32_t source, std::int32_t target, std::uint64_t key,
                   std::vector<Hop>& hops) {
  if (source == target) {
    if (!stated(source, target, hops)) {
      pass(source, target, 0, hops);
    }
    return true;
  }
  switch (routing_) {
    case Routing::stated:
      return stated(source, target, hops);
    case Routing::dimension_order:
      return dimension_order(source, target, hops);
    case Routing::d_mod_k:
      return d_mod_k(source, target, hops);
    case Routing::minimal:
      return minimal(source, target, hops);
    case Routing::spray:
      return spray(source, target, hops);
    default:
      return walk(source, target, key, hops);
  }
}

bool Router::pass(std::int32_t from, std::int32_t to, std::int32_t copy,
                  std::vector<Hop>& hops) const {
  for (const std::int32_t link : adjacency_.out(from)) {
    if (at(link).target == to && copy-- == 0) {
      hops.push_back(hop(link));
      return true;
    }
  }
  return false;
}

bool Router::stated(std::int32_t source, std::int32_t target, std::vector<Hop>& hops) const {
  const auto found = graph_.routes.find({source, target});
  if (found == graph_.routes.end()) {
    return false;
  }
  for (const std::int32_t link : found->second) {
    hops.push_back(hop(link));
  }
  return true;
}

bool Router::dimension_order(std::int32_t source, std::int32_t target,
                             std::vector<Hop>& hops) const {
  const Layout& layout = graph_.layout;
  const auto router_of = [&](std::int32_t host) {
    return layout.concentration == 0 ? host : layout.first_router + host / layout.concentration;
  };
  std::int32_t here = router_of(source);
  const std::int32_t last = router_of(target);
  bool found = here == source || pass(source, here, 0, hops);
  std::int32_t stride = 1;
  for (const std::int32_t extent : layout.shape) {
    const std::int32_t first = (here - layout.first_router) / stride % extent;
    const std::int32_t to = (last - layout.first_router) / stride % extent;
    for (std::int32_t x = first; x != to && found;) {
      const std::int32_t next = next_coordinate(layout.family, x, to, extent, first);
      const std::int32_t there = here + (next - x) * stride;
      found = pass(here, there, 0, hops);
      here = there;
      x = next;
    }
    stride *= extent;
  }
  return found && (last == target || pass(last, target, 0, hops));
}

bool Router::walk(std::int32_t source, std::int32_t target, std::uint64_t key,
                  std::vector<Hop>& hops) {
  const std::int32_t goal = gates_[static_cast<std::size_t>(target)];
  return approach(source, goal, key, hops) && (goal == target || pass(goal, target, 0, hops));
}

bool Router::through(std::int32_t source, std::span<const std::int32_t> stops, std::int32_t target,
                     std::uint64_t key, std::vector<Hop>& hops) {
  std::int32_t here = source;
  for (const std::int32_t stop : stops) {
    if (!approach(here, stop, key, hops)) {
      return false;
    }
    here = stop;
  }
  return walk(here, target, key, hops);
}

bool Router::approach(std::int32_t here, std::int32_t goal, std::uint64_t key,
                      std::vector<Hop>& hops) {
  const std::uint64_t salt = mixed(seed_ ^ mixed(key));
  while (here != goal) {
    const std::vector<std::int32_t> routes = nearer(here, goal);
    if (routes.empty()) {
      return false;
    }
    const std::size_t chosen = routing_ == Routing::ecmp && routes.size() > 1
                                   ? mixed(salt ^ static_cast<std::uint64_t>(here)) % routes.size()
                                   : 0;
    hops.push_back(hop(routes[chosen]));
    here = at(routes[chosen]).target;
  }
  return true;
}

}  // namespace orrery::topology
