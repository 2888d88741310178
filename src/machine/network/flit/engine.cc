// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/engine.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace orrery::flit {

void Engine::step() {
  arrived_.clear();
  freed_sources_.clear();
  take_events();
  grants_ = 0;
  if (sending_.any()) {
    inject();
  }
  route_heads();
  const int steps = has_speedup_ ? steps_of_cycle() : 1;
  for (int step = 1; step <= steps; ++step) {
    is_last_step_ = step == steps;
    allocate();
  }
  ++now_;
}

/// Allocations up to the end of a cycle are the whole part of its number times the speed-up.
int Engine::steps_of_cycle() const {
  const auto up_to = [&](Cycle cycle) {
    return std::floor(static_cast<double>(cycle) * settings_.internal_speedup);
  };
  return static_cast<int>(up_to(now_ + 1) - up_to(now_));
}

void Engine::allocate() {
  if (!plain_switch_) {
    allocate_in_general();
  } else {
    if (ready_.any()) {
      allocate_switch();
    }
    if (heads_.any()) {
      match_vcs();
      for (const SparseAllocator::Request& won : wins_) {
        win(won.input, won.output);
      }
    }
  }
  end_step();
  ++step_;
}

/// A flit granted now that passes the switch within the cycle is at the output a cycle earlier;
/// there it waits for those before it.
Cycle Engine::arrival_after(OutPort& port) const {
  if (!has_speedup_) {
    return now_ + port.delay;
  }
  const Cycle arrival = std::max(now_ + port.delay - (is_last_step_ ? 0 : 1), port.next_arrival);
  port.next_arrival = arrival + 1;
  return arrival;
}

/// Returns when credits come back: those of one allocation are one message, and one leaves a cycle.
Cycle Engine::credit_after(InPort& port) const {
  if (!has_speedup_) {
    return now_ + port.credit_delay;
  }
  if (port.credit_step != step_) {
    port.last_credit = std::max(now_ + port.credit_delay, port.last_credit + 1);
    port.credit_step = step_;
  }
  return port.last_credit;
}

Cycle Engine::quiet_until(Cycle limit) const {
  if (is_busy()) {
    return now_;
  }
  const Cycle next = calendar_.empty() ? limit : calendar_.next_after(now_ - 1);
  return std::max(now_, std::min(next, limit));
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
  calendar_.done(now_);
}

void Engine::take_credit(std::uint32_t vc) {
  OutVc& out = out_vcs_[vc];
  ++out.credits;
  const std::uint32_t port = port_of(vc);
  if (port >= ports_) {
    const std::uint32_t node = port - ports_;
    if (out.closing && out.credits == settings_.buffer) {
      out.closing = false;
      out_[port].free |= VcMask{1} << vc_of(vc);
    }
    if (class_count_ > 1 || sources_[node].left > 0) {
      sending_.add(node);
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
  if (needs_room_) {
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
  const bool speculates = settings_.speculation != Speculation::none;
  if (orders_grants_ && in.count == 1 && (speculates || in.out != kNone)) {
    in.turn = {step_, 0, port_of(vc)};
  }
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
  FlitCounts& counts = counts_[packet.traffic_class];
  ++counts.arrived;
  if (counts_flit_latency_) {
    counts.flit_latency += now_ - packet.left_at[packet.flits - packet.missing];
  }
  if (--packet.missing > 0) {
    return;
  }
  arrived_.push_back({packet.source, packet.route.target, packet.flits, packet.tag,
                      packet.traffic_class, packet.kind, packet.hops, packet.created,
                      packet.injected});
  --in_flight_;
  counts.in_flight -= packet.flits;
  counts.created_in_flight -= packet.created * packet.flits;
  free_packets_.push_back(id);
}

/// The front packet of a VC asks for an output VC from `when` + routing_delay on; `when` is this
/// cycle or the next.
void Engine::show_head(std::uint32_t vc, Cycle when) {
  InVc& in = in_vcs_[vc];
  Packet& packet = packets_[in.front];
  in.left = packet.flits;
  in.begins = true;
  in.priority = settings_.priority == Priority::hop_count ? packet.hops : packet.priority;
  if (orders_grants_ && settings_.speculation == Speculation::none) {
    const bool behind = when > now_;
    in.turn.asked = 2 * step_ + (behind ? 1 : 0);
    in.turn.place = behind ? grants_++ : port_of(vc);
  }
  if (draws_at_routers_) {
    unrouted_.push_back({when + settings_.routing_delay - 1, vc});
  } else {
    route_head(vc);
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
    if (looks_ahead_ && in.port < channels_) {
      look_ahead(packets_[id], graph_.channels[in.port].target);
    }
  }
  --in.count;
  ++port.flits;
  ++flit_hops_;
  const std::uint32_t out = in.out;
  out_vcs_[out].credits -= port.counts_credits ? 1 : 0;
  const Cycle arrival = arrival_after(port) + in.wire;
  Calendar::Slot& there = calendar_.at(arrival);
  if (in.port < channels_) {
    there.flits.push_back({in_vc(port.to, vc_of(out)), id | begins});
  } else {
    there.flits_to_nodes.push_back({in.port, id});
    if (port.counts_credits) {
      calendar_.at(arrival + port.node_credit_delay - port.delay).credits.push_back(out);
    }
  }
  if (in.interval > kEveryCycle) {
    port.next = next_time(port.next, now_, in.interval);
    if (cycle_of(port.next) > now_ + 1) {
      close_port(in.port);
    }
  }
  calendar_.at(credit_after(in_[port_of(vc)])).credits.push_back(upstream(vc));
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
  if (settings_.speculation == Speculation::none) {
    in.turn.since = -step_ - 1;
  }
  out_[in.port].free &= ~(VcMask{1} << vc_of(out));
  heads_.remove(vc);
  if (settings_.vc_alloc_delay > 1) {
    in.rests = true;
    calendar_.at(now_ + settings_.vc_alloc_delay).rested.push_back(vc);
  }
  update_ready(vc);
}

void Engine::free_vc(std::uint32_t vc) {
  OutPort& port = out_[port_of(vc)];
  port.free |= VcMask{1} << vc_of(vc);
  unpark(port_of(vc));
}

/// Ends the step; what was freed in it can be asked for in the next.
void Engine::end_step() {
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
