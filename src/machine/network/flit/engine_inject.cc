// SPDX-License-Identifier: Apache-2.0
/// This part of the engine sends what nodes send.
#include <utility>

#include "machine/network/flit/engine.h"

namespace orrery::flit {

void Engine::offer(std::uint32_t source, const Offer& offer) {
  std::uint32_t id = static_cast<std::uint32_t>(packets_.size());
  if (free_packets_.empty()) {
    packets_.emplace_back();
  } else {
    id = free_packets_.back();
    free_packets_.pop_back();
  }
  Packet& packet = packets_[id];
  std::vector<Cycle> emptied = std::move(packet.left_at);  // keeps its memory
  emptied.clear();
  packet = {};
  packet.left_at = std::move(emptied);
  packet.route.target = offer.target;
  packet.route.via = offer.route;
  packet.source = node_of(source);
  packet.traffic_class = source - packet.source * class_count_;
  packet.kind = offer.kind;
  packet.flits = packet.missing = offer.flits;
  packet.tag = offer.tag;
  packet.created = offer.created;
  packet.priority = offer.priority;
  Source& from = sources_[source];
  from.packet = id;
  from.left = offer.flits;
  from.vc = kNone;
  from.interval = offer.interval;
  from.wire = offer.wire;
  if (const Cycle longest = longest_delay_ + cycle_of(offer.slowest); longest > calendar_.reach()) {
    calendar_.grow(2 * longest, now_);
  }
  sending_.add(packet.source);
  ++in_flight_;
  FlitCounts& counts = counts_[packet.traffic_class];
  counts.in_flight += offer.flits;
  counts.created_in_flight += offer.created * offer.flits;
}

/// Draws what a packet decides at its source.
void Engine::start(Packet& packet) {
  const Routing& routing = kinds_.empty() ? routing_ : *kinds_[packet.kind].routing;
  packet.route = routing.start(packet.source, packet.route.target, packet.route.via, random_);
}

/// The output at `router` (several, where routing is adaptive), in the VCs of the packet's kind.
void Engine::next_hop(Packet& packet, std::uint32_t router) {
  if (kinds_.empty()) {
    routing_.next(packet.route, router, random_, candidates_);
    return;
  }
  const PacketKind& kind = kinds_[packet.kind];
  kind.routing->next(packet.route, router, random_, candidates_);
  for (int i = 0; i < candidates_.count; ++i) {
    candidates_.list[static_cast<std::size_t>(i)].vcs <<= kind.first_vc;
  }
}

/// At the source: the next VC with room that no other packet has, round robin, whatever classes the
/// route has. False if there is none.
bool Engine::find_vc(std::uint32_t source) {
  Source& from = sources_[source];
  if (from.vc != kNone) {
    return true;
  }
  const std::int32_t room =
      settings_.flow_control == FlowControl::cut_through ? static_cast<std::int32_t>(from.left) : 1;
  std::uint32_t first = 0;
  auto vcs = static_cast<std::uint32_t>(settings_.vcs);
  if (!kinds_.empty()) {
    first = kinds_[packets_[from.packet].kind].first_vc;
    vcs = kinds_[packets_[from.packet].kind].vcs;
  }
  const std::uint32_t port = ports_ + node_of(source);
  if (draws_first_vc_) {
    first += random_.below(vcs);
    vcs = 1;
  }
  const bool is_in = from.last_vc >= first && from.last_vc < first + vcs;
  for (std::uint32_t i = 1; i <= (is_in ? vcs : 1); ++i) {  // else only the first, as there
    const std::uint32_t vc = is_in ? first + (from.last_vc - first + i) % vcs : first;
    if (((out_[port].free >> vc) & 1U) != 0 && out_vcs_[in_vc(port, vc)].credits >= room) {
      from.vc = vc;
      return true;
    }
  }
  return false;
}

/// The next flit leaves. Requires a VC with a credit.
void Engine::send_from(std::uint32_t source) {
  Source& from = sources_[source];
  const std::uint32_t port = ports_ + node_of(source);
  OutVc& out = out_vcs_[in_vc(port, from.vc)];
  --out.credits;
  Packet& packet = packets_[from.packet];
  const bool begins = from.left == packet.flits;
  if (begins) {
    packet.injected = now_;
    if (!draws_at_routers_) {
      start(packet);
    }
    if (looks_ahead_) {
      look_ahead(packet, graph_.nodes[packet.source].inject);
    }
    out_[port].free &= ~(VcMask{1} << from.vc);
    from.last_vc = from.vc;
  }
  if (counts_flit_latency_) {
    packet.left_at.push_back(now_);
  }
  ++counts_[packet.traffic_class].injected;
  calendar_.at(now_ + from.delay + from.wire)
      .flits.push_back({downstream(in_vc(port, from.vc)), from.packet | (begins ? kHead : 0)});
  if (--from.left > 0) {
    return;
  }
  if (settings_.wait_for_tail_credit) {
    out.closing = true;
  } else {
    out_[port].free |= VcMask{1} << from.vc;
  }
  freed_sources_.push_back(source);
}

/// False if the node has nothing to send or no room for it.
bool Engine::inject_flit(std::uint32_t source) {
  Source& from = sources_[source];
  if (cycle_of(from.next) > now_) {
    return false;  // calendar.sources brings it back
  }
  if (!find_vc(source) || out_vcs_[in_vc(ports_ + source, from.vc)].credits == 0) {
    return draws_first_vc_ && from.vc == kNone;
  }
  send_from(source);
  if (from.interval > kEveryCycle) {
    from.next = next_time(from.next, now_, from.interval);
    if (cycle_of(from.next) > now_ + 1) {
      calendar_.at(within_reach(from.next)).sources.push_back(source);
      return false;
    }
  }
  return from.left > 0;
}

/// One flit of the class in turn that can send: of the highest priority, from behind the class
/// that sent last (it first, with hold_switch_for_packet, where its packet has begun).
void Engine::inject_of_classes(std::uint32_t node) {
  const std::uint32_t port = ports_ + node;
  const auto can_send = [&](std::uint32_t source) {
    const Source& from = sources_[source];
    if (from.left == 0 || !find_vc(source)) {
      return false;
    }
    const bool begins = from.left == packets_[from.packet].flits;
    return out_vcs_[in_vc(port, from.vc)].credits > 0 &&
           (!begins || ((out_[port].free >> from.vc) & 1U) != 0);
  };
  std::uint32_t chosen = kNone;
  std::uint32_t limit = class_count_;
  const std::uint32_t last = node * class_count_ + last_class_[node];
  if (settings_.hold_switch_for_packet && sources_[last].left > 0 &&
      sources_[last].left < packets_[sources_[last].packet].flits && can_send(last)) {
    chosen = last;
    --limit;
  }
  for (std::uint32_t i = 1; i <= limit; ++i) {
    const std::uint32_t source = node * class_count_ + (last_class_[node] + i) % class_count_;
    const auto priority = [&](std::uint32_t of) { return packets_[sources_[of].packet].priority; };
    if (sources_[source].left > 0 && (chosen == kNone || priority(source) > priority(chosen)) &&
        can_send(source)) {
      chosen = source;
    }
  }
  if (chosen == kNone) {
    sending_.remove(node);  // a packet or a credit brings it back
    return;
  }
  last_class_[node] = chosen - node * class_count_;
  send_from(chosen);
}

void Engine::inject() {
  if (class_count_ > 1) {
    sending_.for_each([&](std::uint32_t node) { inject_of_classes(node); });
    return;
  }
  sending_.for_each([&](std::uint32_t source) {
    if (!inject_flit(source)) {
      sending_.remove(source);
    }
  });
}

}  // namespace orrery::flit
