// SPDX-License-Identifier: Apache-2.0
/// Routing prepares here what it needs once: where a router's ports lead, and the tables of min and
/// up_down.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>

#include "machine/network/flit/routing.h"

namespace orrery::flit {
namespace {

constexpr std::uint32_t kUnreached = UINT32_MAX;
constexpr std::int32_t kMostTableRouters = 4096;  // of which two tables take 134 MB

// The port that each channel leaves by, in the order in which the makers list channels.

std::vector<std::size_t> grid_ports(const RouterGraph& graph) {
  std::vector<std::size_t> ports;
  const bool all = graph.shape == Shape::cmesh &&  // express channels
                   graph.channels.size() == 4 * static_cast<std::size_t>(graph.routers);
  for (std::int32_t router = 0; router < graph.routers; ++router) {
    std::int32_t weight = 1;
    for (std::size_t d = 0; d < graph.extents.size(); ++d) {
      const std::int32_t extent = graph.extents[d];
      const std::int32_t x = router / weight % extent;
      const bool ring = (graph.shape == Shape::torus && extent > 1) || all;
      if (ring || x + 1 < extent) {
        ports.push_back(2 * d);
      }
      if (ring || x > 0) {
        ports.push_back(2 * d + 1);
      }
      weight *= extent;
    }
  }
  return ports;
}

/// A port for every place of each dimension, its own left out.
std::vector<std::size_t> butterfly_ports(const RouterGraph& graph) {
  std::vector<std::size_t> ports;
  const auto add_line = [&](std::int32_t at, std::int32_t extent, std::size_t first) {
    for (std::int32_t other = 0; other < extent; ++other) {
      if (other != at) {
        ports.push_back(first + static_cast<std::size_t>(other));
      }
    }
  };
  for (std::int32_t router = 0; router < graph.routers; ++router) {
    std::int32_t weight = 1;
    std::size_t first = 0;
    for (const std::int32_t extent : graph.extents) {
      add_line(router / weight % extent, extent, first);
      first += static_cast<std::size_t>(extent);
      weight *= extent;
    }
  }
  return ports;
}

/// k ports up (or on), k down.
std::vector<std::size_t> staged_ports(const RouterGraph& graph) {
  const auto k = static_cast<std::size_t>(graph.extents[0]);
  const auto wide =
      static_cast<std::size_t>(graph.routers) / std::max<std::size_t>(1, graph.extents.size());
  std::vector<std::size_t> ports;
  ports.reserve(graph.channels.size());
  for (std::size_t i = 0; i < graph.channels.size(); ++i) {
    const auto source = static_cast<std::size_t>(graph.channels[i].source);
    const auto target = static_cast<std::size_t>(graph.channels[i].target);
    ports.push_back(i % k + (source / wide < target / wide ? 0 : k));
  }
  return ports;
}

/// A port for every router of the group, its own left out, then those to other groups.
std::vector<std::size_t> dragonfly_ports(const RouterGraph& graph, std::size_t radix) {
  const auto group = static_cast<std::size_t>(graph.extents[0]);
  std::vector<std::size_t> ports;
  for (std::size_t router = 0; router < static_cast<std::size_t>(graph.routers); ++router) {
    for (std::size_t port = 0; port < radix; ++port) {
      if (port != router % group) {
        ports.push_back(port);
      }
    }
  }
  return ports;
}

std::vector<std::size_t> cluster_ports(const RouterGraph& graph) {
  const auto links = static_cast<std::size_t>(graph.extents[1]);
  std::vector<std::size_t> ports;
  ports.reserve(graph.channels.size());
  for (std::size_t i = 0; i < graph.channels.size(); ++i) {
    ports.push_back(static_cast<std::size_t>(graph.channels[i].target) * links + i % links);
  }
  return ports;
}

std::vector<std::size_t> port_numbers(const RouterGraph& graph, std::size_t& radix) {
  const auto extent = [&](std::size_t d) { return static_cast<std::size_t>(graph.extents[d]); };
  switch (graph.shape) {
    case Shape::mesh:
    case Shape::torus:
    case Shape::cmesh:
      radix = 2 * graph.extents.size();
      return grid_ports(graph);
    case Shape::flattened_butterfly:
      radix = 0;
      for (std::size_t d = 0; d < graph.extents.size(); ++d) {
        radix += extent(d);
      }
      return butterfly_ports(graph);
    case Shape::fat_tree:
    case Shape::fly:
      radix = 2 * extent(0);
      return staged_ports(graph);
    case Shape::dragonfly:
      radix = extent(0) + extent(1);
      return dragonfly_ports(graph, radix);
    case Shape::switch_clusters:
      radix = extent(0) * extent(1);
      return cluster_ports(graph);
    case Shape::tree:
    case Shape::graph:
      break;
  }
  return {};
}

using Channels = std::vector<std::vector<std::uint32_t>>;  ///< by router

/// Channels by the router that `end` says, in their order.
Channels channels_by(const RouterGraph& graph, std::int32_t Channel::*end) {
  Channels lists(static_cast<std::size_t>(graph.routers));
  for (std::uint32_t i = 0; i < graph.channels.size(); ++i) {
    lists[static_cast<std::size_t>(graph.channels[i].*end)].push_back(i);
  }
  return lists;
}

/// Breadth-first levels from router 0, over channels in either direction.
std::vector<std::int32_t> levels_of(const RouterGraph& graph) {
  const auto out = channels_by(graph, &Channel::source);
  std::vector<std::int32_t> levels(static_cast<std::size_t>(graph.routers), -1);
  std::vector<std::int32_t> order{0};
  levels[0] = 0;
  for (std::size_t next = 0; next < order.size(); ++next) {
    const auto router = static_cast<std::size_t>(order[next]);
    for (const std::uint32_t channel : out[router]) {
      const std::int32_t target = graph.channels[channel].target;
      if (levels[static_cast<std::size_t>(target)] < 0) {
        levels[static_cast<std::size_t>(target)] = levels[router] + 1;
        order.push_back(target);
      }
    }
  }
  return levels;
}

/// Dijkstra from the states of `begin`. `ahead(state, reach)` calls reach(next, latency) for what
/// lies behind a state; true: this way to it is the shortest so far, of equally long ones the
/// first.
template <typename Ahead>
void reach_all(std::initializer_list<std::uint32_t> begin, std::size_t states, Ahead ahead) {
  using Reached = std::pair<Cycle, std::uint32_t>;
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> nearest;
  std::vector<Cycle> distance(states, INT64_MAX);
  for (const std::uint32_t state : begin) {
    distance[state] = 0;
    nearest.emplace(0, state);
  }
  while (!nearest.empty()) {
    const auto [reached, state] = nearest.top();
    nearest.pop();
    if (reached > distance[state]) {
      continue;  // reached sooner since
    }
    ahead(state, [&, so_far = reached](std::uint32_t next, Cycle latency) {
      const bool shorter = so_far + latency < distance[next];
      if (shorter) {
        distance[next] = so_far + latency;
        nearest.emplace(distance[next], next);
      }
      return shorter;
    });
  }
}

/// `first`: by router, the channel of the first hop to it.
void shortest_from(std::uint32_t source, const RouterGraph& graph, const Channels& out,
                   std::span<std::uint32_t> first) {
  reach_all({source}, out.size(), [&](std::uint32_t router, const auto& reach) {
    for (const std::uint32_t channel : out[router]) {
      const auto target = static_cast<std::uint32_t>(graph.channels[channel].target);
      if (reach(target, graph.channels[channel].latency)) {
        first[target] = router == source ? channel : first[router];
      }
    }
  });
}

/// `steps`: by router, channels to the goal on a shortest route (breadth first).
void steps_to(std::size_t goal, const RouterGraph& graph, const Channels& in,
              std::span<std::uint32_t> steps) {
  std::vector<std::size_t> order{goal};
  steps[goal] = 0;
  for (std::size_t next = 0; next < order.size(); ++next) {
    for (const std::uint32_t channel : in[order[next]]) {
      const auto source = static_cast<std::size_t>(graph.channels[channel].source);
      if (steps[source] == kUnreached) {
        steps[source] = steps[order[next]] + 1;
        order.push_back(source);
      }
    }
  }
}

/// `table`: by state and goal, the channel to take. States are of routers that may go up, then of
/// those that may not: an up leads to a state that may go up, a down to one that may not.
void up_down_to(std::uint32_t goal, const RouterGraph& graph, const Channels& in,
                const std::vector<std::int32_t>& is_up, std::span<std::uint32_t> table) {
  const auto routers = static_cast<std::uint32_t>(in.size());
  const auto take = [&](std::uint32_t channel, std::uint32_t phases, const auto& reach) {
    const auto source = static_cast<std::uint32_t>(graph.channels[channel].source);
    for (std::uint32_t phase = 0; phase < phases; ++phase) {
      const std::uint32_t from = phase * routers + source;
      if (reach(from, graph.channels[channel].latency)) {
        table[std::size_t{from} * routers + goal] = channel;
      }
    }
  };
  reach_all({goal, goal + routers}, 2 * std::size_t{routers},
            [&](std::uint32_t state, const auto& reach) {
              for (const std::uint32_t channel : in[state % routers]) {
                if (is_up[channel] != 0 && state < routers) {
                  take(channel, 1, reach);
                } else if (is_up[channel] == 0 && state >= routers) {
                  take(channel, 2, reach);
                }
              }
            });
}

Error unreachable(const RouterGraph& graph, std::size_t from, std::size_t to, Algorithm algorithm) {
  const auto name = [&](std::size_t router) {
    return graph.router_names.empty() ? std::to_string(router) : graph.router_names[router];
  };
  return Error(fmt::format("routing {}: no way from router {} to router {}", name_of(algorithm),
                           name(from), name(to)));
}

}  // namespace

Result<void> Routing::prepare() {
  const std::vector<std::size_t> ports = port_numbers(*graph_, radix_);
  const auto routers = static_cast<std::size_t>(graph_->routers);
  ports_.assign(routers * radix_, kUnreached);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    ports_[static_cast<std::size_t>(graph_->channels[i].source) * radix_ + ports[i]] =
        static_cast<std::uint32_t>(i);
  }
  const bool table = algorithm_ == Algorithm::min && graph_->shape != Shape::dragonfly;
  const bool lists = algorithm_ == Algorithm::nca && graph_->shape == Shape::tree;
  if ((table || lists || algorithm_ == Algorithm::up_down) && graph_->routers > kMostTableRouters) {
    return fail(fmt::format("routing {} keeps a table for {} routers at most, found {}",
                            name_of(algorithm_), kMostTableRouters, graph_->routers));
  }
  if (table) {
    return make_shortest();
  }
  if (algorithm_ == Algorithm::up_down) {
    return make_up_down();
  }
  if (lists) {
    make_nearer();
  }
  const Shape shape = graph_->shape;
  if (shape == Shape::mesh || shape == Shape::torus || shape == Shape::cmesh ||
      shape == Shape::flattened_butterfly) {
    dimensions_ = graph_->extents.size();
    for (std::int32_t router = 0; router < graph_->routers; ++router) {
      std::int32_t rest = router;
      for (const std::int32_t extent : graph_->extents) {
        coordinates_.push_back(rest % extent);
        rest /= extent;
      }
    }
  }
  return {};
}

Result<void> Routing::make_shortest() {
  const auto routers = static_cast<std::size_t>(graph_->routers);
  const auto out = channels_by(*graph_, &Channel::source);
  table_.assign(routers * routers, kUnreached);
  for (std::size_t source = 0; source < routers; ++source) {
    shortest_from(static_cast<std::uint32_t>(source), *graph_, out,
                  std::span(table_).subspan(source * routers, routers));
  }
  return all_reached(table_);
}

/// By router and goal: the channels that lead a step nearer.
void Routing::make_nearer() {
  const auto routers = static_cast<std::size_t>(graph_->routers);
  const auto in = channels_by(*graph_, &Channel::target);
  const auto out = channels_by(*graph_, &Channel::source);
  std::vector<std::uint32_t> steps(routers * routers, kUnreached);  // by goal and router
  for (std::size_t goal = 0; goal < routers; ++goal) {
    steps_to(goal, *graph_, in, std::span(steps).subspan(goal * routers, routers));
  }
  nearer_begin_.assign(1, 0);
  for (std::size_t router = 0; router < routers; ++router) {
    for (std::size_t goal = 0; goal < routers; ++goal) {
      const std::uint32_t* const to_goal = steps.data() + goal * routers;
      std::ranges::copy_if(out[router], std::back_inserter(nearer_), [&](std::uint32_t channel) {
        const auto target = static_cast<std::size_t>(graph_->channels[channel].target);
        return to_goal[target] < to_goal[router];
      });
      nearer_begin_.push_back(nearer_.size());
    }
  }
}

/// From where a node injects to where one is reached; other routers may be cut off.
Result<void> Routing::all_reached(std::span<const std::uint32_t> first_hop) const {
  const auto routers = static_cast<std::size_t>(graph_->routers);
  for (const Node& from : graph_->nodes) {
    for (const Node& to : graph_->nodes) {
      const auto source = static_cast<std::size_t>(from.inject);
      const auto goal = static_cast<std::size_t>(to.eject);
      if (source != goal && first_hop[source * routers + goal] == kUnreached) {
        return fail(unreachable(*graph_, source, goal, algorithm_));
      }
    }
  }
  return {};
}

/// A channel goes up if it leads to a lower level, or to a lower number on the same level
/// (Schroeder et al. 1991, Autonet). Backwards from every destination: the shortest route with all
/// ups first.
Result<void> Routing::make_up_down() {
  const auto routers = static_cast<std::size_t>(graph_->routers);
  const std::vector<std::int32_t> levels = levels_of(*graph_);
  for (const Channel& channel : graph_->channels) {  // 1 up, 0 down
    const auto key = [&](std::int32_t router) {
      return std::pair(levels[static_cast<std::size_t>(router)], router);
    };
    coordinates_.push_back(key(channel.target) < key(channel.source) ? 1 : 0);
  }
  const auto in = channels_by(*graph_, &Channel::target);
  table_.assign(2 * routers * routers, kUnreached);
  for (std::size_t goal = 0; goal < routers; ++goal) {
    up_down_to(static_cast<std::uint32_t>(goal), *graph_, in, coordinates_, table_);
  }
  return all_reached(table_);
}

}  // namespace orrery::flit
