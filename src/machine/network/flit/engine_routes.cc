// SPDX-License-Identifier: Apache-2.0
/// This part of the engine asks the routing where heads go.
#include <algorithm>
#include <tuple>
#include <utility>

#include "machine/network/flit/engine.h"

namespace orrery::flit {

/// Flits that have left for a port's next buffers and may still be there, times the hops ahead.
std::int64_t Engine::wait_ahead(RouteState route, std::uint32_t router) {
  const std::int64_t hops = routing_.channels_ahead(route, router);
  routing_.next(route, router, random_, candidates_);
  const std::uint32_t port = candidates_.list[0].port;
  std::int64_t queue = 0;
  for (std::uint32_t vc = 0; port < channels_ && vc < static_cast<std::uint32_t>(settings_.vcs);
       ++vc) {
    queue += settings_.buffer - out_vcs_[in_vc(port, vc)].credits;
  }
  return queue * hops;
}

void Engine::choose_route(Packet& packet, std::uint32_t router) {
  const RouteState minimal = Routing::minimal(packet.route, router);
  if (wait_ahead(minimal, router) <= wait_ahead(packet.route, router)) {
    packet.route = minimal;
  }
}

void Engine::look_ahead(Packet& packet, std::int32_t router) {
  if (next_port_.empty()) {
    next_hop(packet, static_cast<std::uint32_t>(router));
    packet.ahead = candidates_.list[0];
    return;
  }
  std::uint32_t& port =
      next_port_[static_cast<std::size_t>(router) * graph_.nodes.size() + packet.route.target];
  if (port == kNone) {
    next_hop(packet, static_cast<std::uint32_t>(router));
    port = candidates_.list[0].port;
  }
  packet.ahead = {port, routing_.all_vcs()};
}

/// Says where the front packet of a VC goes next.
void Engine::route_head(std::uint32_t vc) {
  InVc& in = in_vcs_[vc];
  Packet& packet = packets_[in.front];
  const std::uint32_t router = in_[port_of(vc)].router;
  if (draws_at_routers_ && packet.hops == 0) {
    start(packet);
  }
  if (routing_.compares() && packet.hops == 0) {
    choose_route(packet, router);
  }
  if (routing_.is_adaptive()) {
    return;
  }
  if (!looks_ahead_) {
    look_ahead(packet, static_cast<std::int32_t>(router));
  }
  in.port = packet.ahead.port;
  in.vcs = packet.ahead.vcs;
  in.interval = packet.ahead.interval;
  in.wire = cycle_of(in.interval) - 1;
}

/// Routes the heads whose routing_delay ends now, router by router in the order in which they
/// became the first of their VCs. They come before those that were routed earlier and have no VC
/// yet.
void Engine::route_heads() {
  std::size_t due = 0;
  while (due < unrouted_.size() && unrouted_[due].first <= now_) {
    ++due;
  }
  const auto end = unrouted_.begin() + static_cast<std::ptrdiff_t>(due);
  const auto order = [&](const auto& head) {
    const InVc& in = in_vcs_[head.second];
    return std::tuple(in_[port_of(head.second)].router, in.turn.asked, in.turn.place);
  };
  std::sort(unrouted_.begin(), end,
            [&](const auto& a, const auto& b) { return order(a) < order(b); });
  std::uint32_t place = 0;
  for (auto head = unrouted_.begin(); head != end; ++head) {
    route_head(head->second);
    if (settings_.speculation == Speculation::none) {
      in_vcs_[head->second].turn.asked = -2 * step_;
      in_vcs_[head->second].turn.place = place++;
    }
  }
  unrouted_.erase(unrouted_.begin(), end);
}

}  // namespace orrery::flit
