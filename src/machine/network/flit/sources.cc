// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/sources.h"

namespace orrery::flit {

Sources::Sources(const RouterGraph& graph, std::uint32_t classes, Routers& routers,
                 Packets& packets, HeadRoutes& routes, Calendar& calendar)
    : classes_(classes),
      draws_first_vc_(routes.routing().traits().draws_first_vc()),
      routers_(routers),
      packets_(packets),
      routes_(routes),
      calendar_(calendar),
      sources_(graph.nodes.size() * classes),
      last_class_(graph.nodes.size()) {
  sending_.resize(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    delays_.push_back(node.latency + 1);
  }
}

void Sources::offer(std::uint32_t source, const Offer& offer) {
  const std::uint32_t node = node_of(source);
  Source& from = sources_[source];
  from.packet = packets_.add(node, source - node * classes_, offer);
  from.left = offer.flits;
  from.vc = kNone;
  from.interval = offer.interval;
  from.wire = offer.wire;
  if (const Cycle longest = routers_.longest_delay + cycle_of(offer.slowest);
      longest > calendar_.reach()) {
    calendar_.grow(2 * longest);
  }
  sending_.add(node);
}

/// The next VC with room that no other packet has, round robin, whatever classes the route has.
/// False if there is none.
bool Sources::find_vc(std::uint32_t source) {
  Source& from = sources_[source];
  if (from.vc != kNone) {
    return true;
  }
  const bool cuts_through = routers_.settings.flow_control == FlowControl::cut_through;
  const std::int32_t room = cuts_through ? static_cast<std::int32_t>(from.left) : 1;
  auto [routing, first, vcs] = routes_.kind_of(packets_[from.packet]);
  if (draws_first_vc_) {
    first += routes_.random().below(vcs);
    vcs = 1;
  }
  const std::uint32_t port = routers_.ports + node_of(source);
  const bool is_in = from.last_vc >= first && from.last_vc < first + vcs;
  for (std::uint32_t i = 1; i <= (is_in ? vcs : 1); ++i) {  // else only the first, as there
    const std::uint32_t vc = is_in ? first + (from.last_vc - first + i) % vcs : first;
    if (((routers_.out[port].free >> vc) & 1U) != 0 &&
        routers_.out_vcs[routers_.vc(port, vc)].credits >= room) {
      from.vc = vc;
      return true;
    }
  }
  return false;
}

/// The next flit leaves. Requires a VC with a credit.
void Sources::send_from(std::uint32_t source) {
  Source& from = sources_[source];
  const std::uint32_t node = node_of(source);
  const std::uint32_t vc = routers_.vc(routers_.ports + node, from.vc);
  VcMask& free = routers_.out[routers_.ports + node].free;
  Packet& packet = packets_[from.packet];
  const bool begins = from.left == packet.flits;
  if (begins) {
    packet.injected = calendar_.now();
    routes_.leave(packet);
    free &= ~routers_.bit_of(vc);
    from.last_vc = from.vc;
  }
  packets_.send_flit(packet, calendar_.now());
  calendar_.at(calendar_.now() + delays_[node] + from.wire)
      .flits.push_back({routers_.downstream(vc), from.packet | (begins ? kHead : 0)});
  --routers_.out_vcs[vc].credits;
  if (--from.left > 0) {
    return;
  }
  if (routers_.settings.wait_for_tail_credit) {
    routers_.out_vcs[vc].closing = true;
  } else {
    free |= routers_.bit_of(vc);
  }
  freed_.push_back(source);
}

/// False if the node has nothing to send or no room for it.
bool Sources::send_flit(std::uint32_t source) {
  Source& from = sources_[source];
  if (cycle_of(from.next) > calendar_.now()) {
    return false;  // calendar.sources brings it back
  }
  if (!find_vc(source) ||
      routers_.out_vcs[routers_.vc(routers_.ports + source, from.vc)].credits == 0) {
    return draws_first_vc_ && from.vc == kNone;
  }
  send_from(source);
  if (from.interval > kEveryCycle) {
    from.next = next_time(from.next, calendar_.now(), from.interval);
    if (cycle_of(from.next) > calendar_.now() + 1) {
      calendar_.towards(from.next).sources.push_back(source);
      return false;
    }
  }
  return from.left > 0;
}

/// One flit of the class in turn that can send: of the highest priority, from behind the class
/// that sent last (it first, with hold_switch_for_packet, where its packet has begun).
void Sources::send_of_classes(std::uint32_t node) {
  const std::uint32_t port = routers_.ports + node;
  const auto can_send = [&](std::uint32_t source) {
    const Source& from = sources_[source];
    if (from.left == 0 || !find_vc(source)) {
      return false;
    }
    const bool begins = from.left == packets_[from.packet].flits;
    return routers_.out_vcs[routers_.vc(port, from.vc)].credits > 0 &&
           (!begins || ((routers_.out[port].free >> from.vc) & 1U) != 0);
  };
  std::uint32_t chosen = kNone;
  std::uint32_t limit = classes_;
  const std::uint32_t last = node * classes_ + last_class_[node];
  if (routers_.settings.hold_switch_for_packet && sources_[last].left > 0 &&
      sources_[last].left < packets_[sources_[last].packet].flits && can_send(last)) {
    chosen = last;
    --limit;
  }
  for (std::uint32_t i = 1; i <= limit; ++i) {
    const std::uint32_t source = node * classes_ + (last_class_[node] + i) % classes_;
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
  last_class_[node] = chosen - node * classes_;
  send_from(chosen);
}

void Sources::send() {
  sending_.for_each([&](std::uint32_t node) {
    if (classes_ > 1) {
      send_of_classes(node);
    } else if (!send_flit(node)) {
      sending_.remove(node);
    }
  });
}

void Sources::take_credit(std::uint32_t out_vc) {
  OutVc& out = routers_.out_vcs[out_vc];
  const std::uint32_t port = routers_.port_of(out_vc);
  const std::uint32_t node = port - routers_.ports;
  if (out.closing && out.credits == routers_.settings.buffer) {
    out.closing = false;
    routers_.out[port].free |= routers_.bit_of(out_vc);
  }
  if (classes_ > 1 || sources_[node].left > 0) {
    sending_.add(node);
  }
}

void Sources::wake(std::uint32_t source) {
  if (cycle_of(sources_[source].next) > calendar_.now()) {
    calendar_.towards(sources_[source].next).sources.push_back(source);
  } else if (sources_[source].left > 0) {
    sending_.add(source);
  }
}

}  // namespace orrery::flit
