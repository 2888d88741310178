// SPDX-License-Identifier: Apache-2.0
/// What nodes send.
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
  packet = {};
  packet.route.target = offer.target;
  packet.route.via = offer.way;
  packet.source = source;
  packet.flits = packet.missing = offer.flits;
  packet.tag = offer.tag;
  packet.created = offer.created;
  Source& from = sources_[source];
  from.packet = id;
  from.left = offer.flits;
  from.vc = kNone;
  from.interval = offer.interval;
  from.wire = offer.wire;
  if (const Cycle longest = longest_delay_ + cycle_of(offer.slowest); longest > calendar_.reach()) {
    calendar_.grow(2 * longest, now_);
  }
  sending_.add(source);
  ++under_way_;
  flits_under_way_ += offer.flits;
  created_under_way_ += offer.created * offer.flits;
}

/// At the source: the next VC with room, round robin, whatever classes the route has.
std::uint32_t Engine::injection_vc(std::uint32_t source) const {
  const Source& from = sources_[source];
  const std::int32_t room =
      settings_.flow_control == FlowControl::cut_through ? static_cast<std::int32_t>(from.left) : 1;
  const auto vcs = static_cast<std::uint32_t>(settings_.vcs);
  for (std::uint32_t i = 1; i <= vcs; ++i) {
    const std::uint32_t vc = (from.last_vc + i) % vcs;
    if (out_vcs_[in_vc(ports_ + source, vc)].credits >= room) {
      return vc;
    }
  }
  return kNone;
}

/// False if the node has nothing to send or no room for it.
bool Engine::inject_flit(std::uint32_t source) {
  Source& from = sources_[source];
  if (cycle_of(from.next) > now_) {
    return false;  // calendar.sources brings it back
  }
  if (from.vc == kNone) {
    from.vc = injection_vc(source);
    if (from.vc == kNone) {
      return false;
    }
    from.last_vc = from.vc;
  }
  OutVc& out = out_vcs_[in_vc(ports_ + source, from.vc)];
  if (out.credits == 0) {
    return false;
  }
  --out.credits;
  Packet& packet = packets_[from.packet];
  const bool begins = from.left == packet.flits;
  if (begins) {
    packet.injected = now_;
    packet.route = routing_.start(source, packet.route.target, packet.route.via, random_);
    if (looks_ahead_) {
      look_ahead(packet, graph_.nodes[source].inject);
    }
  }
  packet.flits_injected += now_;
  ++flits_injected_;
  calendar_.at(now_ + from.delay + from.wire)
      .flits.push_back(
          {downstream(in_vc(ports_ + source, from.vc)), from.packet | (begins ? kHead : 0)});
  bool goes_on = true;
  if (from.interval > kEveryCycle) {
    from.next = next_time(from.next, now_, from.interval);
    if (cycle_of(from.next) > now_ + 1) {
      calendar_.at(within_reach(from.next)).sources.push_back(source);
      goes_on = false;
    }
  }
  if (--from.left > 0) {
    return goes_on;
  }
  freed_sources_.push_back(source);
  return false;
}

void Engine::inject() {
  sending_.for_each([&](std::uint32_t source) {
    if (!inject_flit(source)) {
      sending_.remove(source);
    }
  });
}

}  // namespace orrery::flit
