// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/head_routes.h"

namespace orrery::flit {
namespace {

/// Comparison says when a packet goes the minimal way: if queue x weight there is at most queue x
/// weight of the other way and the bias (BookSim 2, ugal_flatfly and ugal_dragonflynew).
struct Comparison {
  bool by_hops = true;    ///< false: the minimal way weighs 1, the other 2
  std::int64_t bias = 0;  ///< flits
};
Comparison comparison_of(Shape shape) {
  return shape == Shape::dragonfly             ? Comparison{false, 30}
         : shape == Shape::flattened_butterfly ? Comparison{true, 2}
                                               : Comparison{};
}

}  // namespace

HeadRoutes::HeadRoutes(const Routing& routing, const std::vector<PacketKind>& kinds,
                       Routers& routers, Packets& packets, std::uint64_t seed)
    : routing_(routing),
      kinds_(kinds),
      routers_(routers),
      packets_(packets),
      random_(seed),
      looks_ahead_(routers.settings.routing_delay == 0 && !routing.traits().is_adaptive()),
      depends_on_vc_(routing.traits().depends_on_vc()),
      draws_at_routers_(routers.settings.routing_delay > 0 &&
                        (routing.traits().draws_en_route() || routing.traits().draws_at_start())) {
  const RouterGraph& graph = routing.graph();
  if (const std::size_t ports = static_cast<std::size_t>(graph.routers) * graph.nodes.size();
      routing.traits().is_fixed() && kinds_.empty() && ports <= kMostNextPorts) {
    next_port_.assign(ports, kNone);
  }
}

void HeadRoutes::leave(Packet& packet) {
  if (!draws_at_routers_) {
    start(packet);
  }
  if (looks_ahead_) {
    look_ahead(packet, static_cast<std::uint32_t>(routing_.graph().nodes[packet.source].inject));
  }
}

void HeadRoutes::start(Packet& packet) {
  packet.route =
      kind_of(packet).routing->start(packet.source, packet.route.target, packet.route.via, random_);
  const auto router = static_cast<std::uint32_t>(routing_.graph().nodes[packet.source].inject);
  if (routing_.compares_orders(packet.route, router)) {
    RouteState last_first = packet.route;
    last_first.phase = 1;
    const std::int64_t more =
        wait_ahead(packet.route, router) - wait_ahead(last_first, router);  // as many hops
    packet.route.phase = more > 0 || (more == 0 && random_.below(2) == 0) ? 1 : 0;
  }
  if (!routing_.traits().compares() || packet.route.via == router) {
    return;
  }
  const Comparison rule = comparison_of(routing_.graph().shape);
  const std::int64_t bias = routers_.settings.ugal_bias.value_or(rule.bias);
  const RouteState minimal = Routing::minimal(packet.route, router);
  const std::int64_t direct = wait_ahead(minimal, router);
  const std::int64_t around = wait_ahead(packet.route, router) * (rule.by_hops ? 1 : 2);
  if (direct <= around + bias) {
    packet.route = minimal;
  }
}

/// The output at `router` (several, where routing is adaptive), in the VCs of the packet's kind.
void HeadRoutes::next_hop(RouteState& route, const PacketKind& kind, std::uint32_t router) {
  kind.routing->next(route, router, random_, candidates_);
  for (int i = 0; i < candidates_.count; ++i) {
    candidates_.list[static_cast<std::size_t>(i)].vcs <<= kind.first_vc;
  }
}

/// Flits that have left for a port's next buffers and may still be there, times the hops ahead
/// where these count.
std::int64_t HeadRoutes::wait_ahead(RouteState route, std::uint32_t router) {
  const std::int64_t hops =
      comparison_of(routing_.graph().shape).by_hops ? routing_.channels_ahead(route, router) : 1;
  next_hop(route, {&routing_}, router);
  const std::uint32_t port = candidates_.list[0].port;
  const auto vcs = static_cast<std::uint32_t>(routers_.settings.vcs);
  std::int64_t queue = 0;
  for (std::uint32_t vc = 0; port < routers_.channels && vc < vcs; ++vc) {
    queue += routers_.settings.buffer - routers_.out_vcs[routers_.vc(port, vc)].credits;
  }
  const bool later = before_ && port < routers_.channels && routers_.out[port].sent_step == before_;
  return (queue - (later ? routers_.out[port].sent : 0)) * hops;
}

void HeadRoutes::look_ahead(Packet& packet, std::uint32_t router) {
  if (next_port_.empty()) {
    next_hop(packet.route, kind_of(packet), router);
    packet.ahead = candidates_.list[0];
    packet.escape = candidates_.count > 1 ? candidates_.list[1] : Candidate{};
    return;
  }
  std::uint32_t& port = next_port_[router * routing_.graph().nodes.size() + packet.route.target];
  if (port == kNone) {
    next_hop(packet.route, kind_of(packet), router);
    port = candidates_.list[0].port;
  }
  packet.ahead = {port, routing_.all_vcs()};
}

void HeadRoutes::route(std::uint32_t vc, std::optional<Cycle> before) {
  before_ = before;
  InVc& in = routers_.in_vcs[vc];
  Packet& packet = packets_[in.front];
  const std::uint32_t router = routers_.router_of(vc);
  if (draws_at_routers_ && packet.hops == 0) {
    start(packet);
  }
  if (routing_.traits().is_adaptive()) {
    return;
  }
  if (!looks_ahead_) {
    look_ahead(packet, router);
  }
  in.port = packet.ahead.port;
  in.vcs = packet.ahead.vcs;
  in.interval = packet.ahead.interval;
  in.wire = cycle_of(in.interval) - 1;
}

Candidate HeadRoutes::open_output(std::uint32_t vc) {
  const InVc& in = routers_.in_vcs[vc];
  Packet& packet = packets_[in.front];
  if (!routing_.traits().is_adaptive()) {
    return {in.port, routers_.open_vcs({in.port, in.vcs}, packet.flits)};
  }
  next_hop(packet.route, kind_of(packet), routers_.router_of(vc));
  Candidate best{candidates_.list[0].port, 0};
  std::int32_t most_room = -1;
  for (int i = 0; i < candidates_.count; ++i) {
    if (i == candidates_.preferred && best.vcs != 0) {
      break;
    }
    const Candidate& output = candidates_.list[static_cast<std::size_t>(i)];
    const VcMask open = routers_.open_vcs(output, packet.flits);
    std::int32_t room = 0;
    for_each_bit(open, [&](std::uint32_t v) {
      room += routers_.out_vcs[routers_.vc(output.port, v)].credits;
    });
    if (open != 0 && room > most_room) {
      most_room = room;
      best = {output.port, open};
    }
  }
  return best;
}

void HeadRoutes::outputs_of(std::uint32_t vc, Candidates& into) const {
  const InVc& in = routers_.in_vcs[vc];
  if (!routing_.traits().is_adaptive()) {
    into.add(in.port, in.vcs);
    if (const Candidate& escape = packets_[in.front].escape; escape.vcs != 0) {
      into.add(escape.port, escape.vcs);
    }
    return;
  }
  Random unused(0);
  RouteState state = packets_[in.front].route;
  const PacketKind kind = kind_of(packets_[in.front]);
  kind.routing->next(state, routers_.router_of(vc), unused, into);
  for (Candidate& output : into.list) {
    output.vcs <<= kind.first_vc;
  }
}

}  // namespace orrery::flit
