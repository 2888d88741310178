// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/hop_table.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>

namespace orrery::flit {
namespace {

constexpr std::uint32_t kUnreached = UINT32_MAX;

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

}  // namespace

HopTable HopTable::shortest(const RouterGraph& graph) {
  HopTable hops;
  hops.routers_ = static_cast<std::size_t>(graph.routers);
  const auto out = channels_by(graph, &Channel::source);
  hops.table_.assign(hops.routers_ * hops.routers_, kUnreached);
  for (std::size_t source = 0; source < hops.routers_; ++source) {
    shortest_from(static_cast<std::uint32_t>(source), graph, out,
                  std::span(hops.table_).subspan(source * hops.routers_, hops.routers_));
  }
  return hops;
}

/// Backwards from every destination: the shortest route with all ups first.
HopTable HopTable::up_down(const RouterGraph& graph) {
  HopTable hops;
  hops.routers_ = static_cast<std::size_t>(graph.routers);
  const std::vector<std::int32_t> levels = levels_of(graph);
  for (const Channel& channel : graph.channels) {
    const auto key = [&](std::int32_t router) {
      return std::pair(levels[static_cast<std::size_t>(router)], router);
    };
    hops.is_up_.push_back(key(channel.target) < key(channel.source) ? 1 : 0);
  }
  const auto in = channels_by(graph, &Channel::target);
  hops.table_.assign(2 * hops.routers_ * hops.routers_, kUnreached);
  for (std::size_t goal = 0; goal < hops.routers_; ++goal) {
    up_down_to(static_cast<std::uint32_t>(goal), graph, in, hops.is_up_, hops.table_);
  }
  return hops;
}

std::optional<std::pair<std::int32_t, std::int32_t>> HopTable::cut_off(
    const RouterGraph& graph) const {
  for (const Node& from : graph.nodes) {
    for (const Node& to : graph.nodes) {
      if (from.inject != to.eject && channel(0, static_cast<std::uint32_t>(from.inject),
                                             static_cast<std::uint32_t>(to.eject)) == kUnreached) {
        return std::pair(from.inject, to.eject);
      }
    }
  }
  return std::nullopt;
}

NearerChannels::NearerChannels(const RouterGraph& graph)
    : routers_(static_cast<std::size_t>(graph.routers)), begin_{0} {
  const auto in = channels_by(graph, &Channel::target);
  const auto out = channels_by(graph, &Channel::source);
  std::vector<std::uint32_t> steps(routers_ * routers_, kUnreached);  // by goal and router
  for (std::size_t goal = 0; goal < routers_; ++goal) {
    steps_to(goal, graph, in, std::span(steps).subspan(goal * routers_, routers_));
  }
  for (std::size_t router = 0; router < routers_; ++router) {
    for (std::size_t goal = 0; goal < routers_; ++goal) {
      const std::uint32_t* const to_goal = steps.data() + goal * routers_;
      std::ranges::copy_if(out[router], std::back_inserter(channels_), [&](std::uint32_t channel) {
        const auto target = static_cast<std::size_t>(graph.channels[channel].target);
        return to_goal[target] < to_goal[router];
      });
      begin_.push_back(channels_.size());
    }
  }
}

}  // namespace orrery::flit
