// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/engine.h"

#include <fmt/format.h>

#include <bit>

namespace orrery::flit {

namespace {

/// A port that passed a flit at `now` passes the next at the first cycle not before this. A port
/// that was not idle keeps fractions, so that the mean is right.
Interval next_time(Interval before, Cycle now, Interval interval) {
  return std::max(before, ((now - 1) << kIntervalBits) + 1) + interval;
}

Cycle cycle_of(Interval time) {
  return (time + kEveryCycle - 1) >> kIntervalBits;
}

}  // namespace

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
  packet.route = routing_.start(source, offer.target, offer.way, random_);
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

void Engine::step() {
  arrived_.clear();
  freed_sources_.clear();
  take_events();
  if (ready_.any()) {
    if (plain_switch_) {
      allocate_switch();
    } else {
      allocate_switch_slowly();
    }
  }
  if (heads_.any()) {
    allocate_vcs();
  }
  if (sending_.any()) {
    inject();
  }
  end_cycle();
  ++now_;
}

void Engine::skip(Cycle limit) {
  if (!is_busy()) {
    const Cycle next = calendar_.empty() ? limit : calendar_.next_after(now_ - 1);
    now_ = std::max(now_, std::min(next, limit));
  }
}

void Engine::take_events() {
  Calendar::Slot& slot = calendar_.present(now_);
  for (const std::uint32_t vc : slot.credits) {
    take_credit(vc);
  }
  for (const std::uint32_t vc : slot.rested) {
    in_vcs_[vc].rests = false;
    update_ready(vc);
  }
  for (const Calendar::Flit& flit : slot.flits) {
    arrive(flit.where, flit.packet);
  }
  for (const Calendar::Flit& flit : slot.flits_to_nodes) {
    eject(flit.packet);
  }
  for (const std::uint32_t vc : slot.heads) {
    heads_.add(vc);
  }
  for (const std::uint32_t port : slot.opened) {
    open_port(port);
  }
  for (const std::uint32_t source : slot.sources) {
    if (cycle_of(sources_[source].next) > now_) {
      calendar_.at(within_reach(sources_[source].next)).sources.push_back(source);
    } else if (sources_[source].left > 0) {
      sending_.add(source);
    }
  }
  slot.opened.clear();
  slot.sources.clear();
  slot.credits.clear();
  slot.rested.clear();
  slot.flits.clear();
  slot.flits_to_nodes.clear();
  slot.heads.clear();
  slot.woken.clear();
  calendar_.done(now_);
}

void Engine::take_credit(std::uint32_t vc) {
  OutVc& out = out_vcs_[vc];
  ++out.credits;
  const std::uint32_t port = port_of(vc);
  if (port >= ports_) {
    if (sources_[port - ports_].left > 0) {
      sending_.add(port - ports_);
    }
    return;
  }
  if (out.closing && out.credits == settings_.buffer) {
    out.closing = false;
    free_vc(vc);
  }
  if (out.owner != kNone && out.credits == 1) {
    update_ready(out.owner);
  }
  if (settings_.flow_control == FlowControl::cut_through) {
    unpark(port);
  }
}

void Engine::unpark(std::uint32_t port) {
  for (const std::uint32_t head : parked_[port]) {
    heads_.add(head);
  }
  parked_[port].clear();
}

/// The cycle of a time, or an earlier one in which to look again.
Cycle Engine::within_reach(Interval time) const {
  return std::min(cycle_of(time), now_ + calendar_.reach());
}

/// Whatever interval the packet after has: the wire is taken until then.
void Engine::close_port(std::uint32_t port) {
  out_[port].closed = true;
  calendar_.at(within_reach(out_[port].next)).opened.push_back(port);
  for (std::uint32_t vc = 0; vc < static_cast<std::uint32_t>(settings_.vcs); ++vc) {
    if (const std::uint32_t owner = out_vcs_[in_vc(port, vc)].owner; owner != kNone) {
      update_ready(owner);
    }
  }
}

void Engine::open_port(std::uint32_t port) {
  if (cycle_of(out_[port].next) > now_) {
    calendar_.at(within_reach(out_[port].next)).opened.push_back(port);
    return;
  }
  out_[port].closed = false;
  for (std::uint32_t vc = 0; vc < static_cast<std::uint32_t>(settings_.vcs); ++vc) {
    if (const std::uint32_t owner = out_vcs_[in_vc(port, vc)].owner; owner != kNone) {
      update_ready(owner);
    }
  }
}

void Engine::arrive(std::uint32_t vc, std::uint32_t packet) {
  InVc& in = in_vcs_[vc];
  ++in.count;
  if ((packet & kHead) == 0) {
    if (in.count == 1) {
      update_ready(vc);
    }
    return;
  }
  if (in.front == kNone) {
    in.front = packet & ~kHead;
    show_head(vc, now_);
    return;
  }
  (in.second == kNone ? in.second : packets_[in.last].behind) = packet & ~kHead;
  in.last = packet & ~kHead;
}

void Engine::eject(std::uint32_t id) {
  Packet& packet = packets_[id];
  packet.flits_arrived += now_;
  ++flits_arrived_;
  if (--packet.missing > 0) {
    return;
  }
  arrived_.push_back({packet.source, packet.route.target, packet.flits, packet.tag, packet.hops,
                      packet.created, packet.injected, packet.flits_injected,
                      packet.flits_arrived});
  --under_way_;
  flits_under_way_ -= packet.flits;
  created_under_way_ -= packet.created * packet.flits;
  free_packets_.push_back(id);
}

/// The front packet of a VC asks for an output VC from `when` + routing_delay on; `when` is this
/// cycle or the next.
void Engine::show_head(std::uint32_t vc, Cycle when) {
  InVc& in = in_vcs_[vc];
  Packet& packet = packets_[in.front];
  in.left = packet.flits;
  in.begins = true;
  if (routing_.compares() && packet.hops == 0) {
    choose_way(packet, in_[port_of(vc)].router);
  }
  if (!routing_.is_adaptive()) {
    Candidates& outputs = candidates_;
    routing_.next(packet.route, in_[port_of(vc)].router, random_, outputs);
    in.port = outputs.list[0].port;
    in.vcs = outputs.list[0].vcs;
    in.interval = outputs.list[0].interval;
    in.wire = cycle_of(in.interval) - 1;
  }
  when += settings_.routing_delay;
  if (when == now_) {
    heads_.add(vc);
  } else if (when == now_ + 1) {
    next_heads_.push_back(vc);
  } else {
    calendar_.at(when).heads.push_back(vc);
  }
}

void Engine::update_ready(std::uint32_t vc) {
  const InVc& in = in_vcs_[vc];
  const std::uint32_t port = port_of(vc);
  const VcMask bit = VcMask{1} << vc_of(vc);
  if (in.count > 0 && in.out != kNone && !in.rests && out_vcs_[in.out].credits > 0 &&
      !out_[in.port].closed) {
    in_[port].ready |= bit;
    ready_.add(port);
  } else {
    in_[port].ready &= ~bit;
    if (in_[port].ready == 0) {
      ready_.remove(port);
    }
  }
}

/// Hands the first flit of a VC to the switch.
void Engine::send(std::uint32_t vc) {
  InVc& in = in_vcs_[vc];
  OutPort& port = out_[in.port];
  const std::uint32_t id = in.front;
  const std::uint32_t begins = in.begins ? kHead : 0;
  if (in.begins) {
    ++packets_[id].hops;
    in.begins = false;
  }
  --in.count;
  ++port.flits;
  ++flit_hops_;
  const std::uint32_t out = in.out;
  out_vcs_[out].credits -= port.counts_credits ? 1 : 0;
  Calendar::Slot& there = calendar_.at(now_ + port.delay + in.wire);
  if (in.port < channels_) {
    there.flits.push_back({out, id | begins});
  } else {
    there.flits_to_nodes.push_back({in.port, id});
    if (port.counts_credits) {
      calendar_.at(now_ + port.node_credit_delay).credits.push_back(out);
    }
  }
  if (in.interval > kEveryCycle) {
    port.next = next_time(port.next, now_, in.interval);
    if (cycle_of(port.next) > now_ + 1) {
      close_port(in.port);
    }
  }
  const std::uint32_t in_port = port_of(vc);
  const auto nodes = static_cast<std::uint32_t>(sources_.size());
  calendar_.at(now_ + in_[in_port].credit_delay)
      .credits.push_back(in_port < channels_ ? vc : vc + (nodes << shift_));
  if (--in.left == 0) {
    OutVc& left = out_vcs_[out];
    left.owner = kNone;
    left.closing = settings_.wait_for_tail_credit && left.credits < settings_.buffer;
    if (!left.closing) {
      freed_vcs_.push_back(out);
    }
    in.out = kNone;
    in.front = kNone;
    if (in.second != kNone) {
      in.front = in.second;
      in.second = in.second == in.last ? kNone : packets_[in.second].behind;
      show_head(vc, now_ + 1);
    }
  } else if (settings_.sw_alloc_delay > 1) {
    in.rests = true;
    calendar_.at(now_ + settings_.sw_alloc_delay).rested.push_back(vc);
  }
  update_ready(vc);
}

void Engine::win(std::uint32_t vc, std::uint32_t out) {
  InVc& in = in_vcs_[vc];
  OutVc& won = out_vcs_[out];
  in.out = out;
  in.port = port_of(out);
  in.pointer = out + 1;
  won.owner = vc;
  won.pointer = vc + 1;
  out_[in.port].free &= ~(VcMask{1} << vc_of(out));
  heads_.remove(vc);
  if (settings_.vc_alloc_delay > 1) {
    in.rests = true;
    calendar_.at(now_ + settings_.vc_alloc_delay).rested.push_back(vc);
  }
  update_ready(vc);
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
  }
  packet.flits_injected += now_;
  ++flits_injected_;
  calendar_.at(now_ + from.delay + from.wire)
      .flits.push_back({in_vc(channels_ + source, from.vc), from.packet | (begins ? kHead : 0)});
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

void Engine::free_vc(std::uint32_t vc) {
  OutPort& port = out_[port_of(vc)];
  port.free |= VcMask{1} << vc_of(vc);
  unpark(port_of(vc));
}

/// What was freed in this cycle can be asked for in the next.
void Engine::end_cycle() {
  for (const std::uint32_t vc : freed_vcs_) {
    free_vc(vc);
  }
  freed_vcs_.clear();
  for (const std::uint32_t vc : next_heads_) {
    heads_.add(vc);
  }
  next_heads_.clear();
}

}  // namespace orrery::flit
