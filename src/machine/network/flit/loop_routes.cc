// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/loop_routes.h"

#include <algorithm>
#include <bit>

#include "machine/network/flit/fabric.h"

namespace orrery::flit {
namespace {

constexpr std::int64_t kPacketsOfRoom = 4;  // beyond a round trip, for the closed form

template <class At>
void add_place(std::vector<At>& front, const At& at) {
  const auto same = [&](const At& other) {
    return other.router == at.router && other.links == at.links &&
           other.state.phase == at.state.phase && other.state.via == at.state.via &&
           other.state.dimension == at.state.dimension && other.state.up == at.state.up &&
           other.state.ring == at.state.ring;
  };
  if (std::none_of(front.begin(), front.end(), same)) {
    front.push_back(at);
  }
}

}  // namespace

LoopRoutes::LoopRoutes(const Routing& routing, const RouterSettings& router,
                       const Packaging& packaging)
    : routing_(routing), graph_(routing.graph()) {
  Cycle longest = 1;
  for (const Channel& channel : graph_.channels) {
    longest = std::max(longest, channel.latency);
  }
  for (const Node& node : graph_.nodes) {
    longest = std::max(longest, node.latency);
  }
  const std::int64_t room = 2 * longest + router.credit_delay + router.routing_delay + 8 +
                            kPacketsOfRoom * packet_flits(packaging.packet, packaging.flit);
  possible_ =
      router.sw_alloc_delay == 1 && router.buffer >= room && !routing.traits().is_adaptive();
}

const LoopRoute& LoopRoutes::between(std::uint32_t source, std::uint32_t target) {
  const std::uint64_t key = (std::uint64_t{source} << 32U) | target;
  const auto [place, is_new] = known_.try_emplace(key);
  if (is_new && possible_) {
    place->second = walk(source, target);
  }
  return place->second;
}

/// All that routing may draw, hop by hop, together: each place after as many links of as many
/// cycles.
LoopRoute LoopRoutes::walk(std::uint32_t source, std::uint32_t target) const {
  const auto ports = static_cast<std::uint32_t>(graph_.channels.size() + graph_.nodes.size());
  LoopRoute route;
  route.ports.push_back(ports + source);
  const auto first = static_cast<std::uint32_t>(graph_.nodes[source].inject);
  std::vector<At> front;
  for (const RouteState& start : routing_.all_starts(source, target)) {
    front.push_back({start, first, graph_.nodes[source].latency});
  }
  while (!front.empty()) {
    ++route.routers;
    route.links = front.front().links + graph_.nodes[target].latency;
    std::vector<At> next;
    if (!step(front, next, route)) {
      return {};
    }
    front = std::move(next);
  }
  std::sort(route.ports.begin(), route.ports.end());
  route.ports.erase(std::unique(route.ports.begin(), route.ports.end()), route.ports.end());
  route.has_closed_form = true;
  return route;
}

/// False if some arrive and others do not, or links differ, or two VCs are not there for the
/// message.
bool LoopRoutes::step(const std::vector<At>& front, std::vector<At>& next, LoopRoute& route) const {
  const auto channels = static_cast<std::uint32_t>(graph_.channels.size());
  std::vector<Routing::Choice> choices;
  bool arrives = false;
  for (const At& at : front) {
    routing_.all_choices(at.state, at.router, choices);
    for (const auto& [state, output, holds] : choices) {
      if (std::popcount(output.vcs) < 2) {
        return false;
      }
      route.ports.push_back(output.port);
      if (output.port >= channels) {
        arrives = true;
        continue;
      }
      const Channel& channel = graph_.channels[output.port];
      add_place(next,
                {state, static_cast<std::uint32_t>(channel.target), at.links + channel.latency});
    }
  }
  return arrives == next.empty() && std::all_of(next.begin(), next.end(), [&](const At& at) {
           return at.links == next.front().links;
         });
}

}  // namespace orrery::flit
