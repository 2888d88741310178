// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/engine.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace orrery::flit {

Engine::Engine(const RouterGraph& graph, const Routing& routing, const RouterSettings& settings,
               std::uint64_t seed, const Classes& classes)
    : graph_(graph),
      routers_(graph, settings, routing.all_vcs()),
      packets_(classes.count, classes.counts_flit_latency),
      routes_(routing, classes.kinds, routers_, packets_, seed),
      sources_(graph, classes.count, routers_, packets_, routes_, calendar_),
      vcs_(routers_, routes_),
      by_turns_(TurnSwitch::suffices(routers_)),
      turns_(routers_),
      switch_(routers_),
      orders_grants_(routes_.draws_in_passing() || routes_.draws_at_routers() ||
                     settings.output_speedup > 1) {
  calendar_.set_reach(std::max<Cycle>(routers_.longest_delay, 1000));
}

void Engine::step() {
  packets_.arrived().clear();
  sources_.freed().clear();
  take_events();
  grants_ = 0;
  sources_.send();
  const auto up_to = [&](Cycle cycle) {  // allocations: the whole part of cycles x speed-up
    return std::floor(static_cast<double>(cycle) * routers_.settings.internal_speedup);
  };
  const int steps = routers_.has_speedup ? static_cast<int>(up_to(now() + 1) - up_to(now())) : 1;
  by_router_ = steps == 2 && (routes_.draws_at_routers() || routes_.draws_in_passing());
  for (int step = 1; step <= steps; ++step) {
    is_last_step_ = step == steps;
    if (!by_router_) {
      route_heads();
    }
    allocate();
  }
  pass_by_router();
  calendar_.move_to(now() + 1);
}

Cycle Engine::quiet_until(Cycle limit) const {
  if (is_busy()) {
    return now();
  }
  const Cycle next = calendar_.empty() ? limit : calendar_.next();
  return std::max(now(), std::min(next, limit));
}

void Engine::take_events() {
  Calendar::Slot& slot = calendar_.present();
  for (const std::uint32_t vc : slot.credits) {
    take_credit(vc);
  }
  for (const std::uint32_t vc : slot.rested) {
    routers_.in_vcs[vc].rests = false;
    routers_.update_ready(vc);
  }
  for (const Calendar::Flit& flit : slot.flits) {
    arrive(flit.where, flit.packet);
  }
  for (const std::uint32_t packet : slot.flits_to_nodes) {
    packets_.take_flit(packet, now());
  }
  next_heads_.insert(next_heads_.end(), slot.routed.begin(), slot.routed.end());
  for (const std::uint32_t port : slot.opened) {
    close_or_open(port);
  }
  for (const std::uint32_t source : slot.sources) {
    sources_.wake(source);
  }
  calendar_.done();
}

void Engine::take_credit(std::uint32_t vc) {
  OutVc& out = routers_.out_vcs[vc];
  ++out.credits;
  if (routers_.port_of(vc) >= routers_.ports) {
    sources_.take_credit(vc);
    return;
  }
  if (out.closing && out.credits == routers_.settings.buffer) {
    out.closing = false;
    vcs_.free(vc);
  }
  if (out.owner != kNone && out.credits == 1) {
    routers_.update_ready(out.owner);
  }
  if (routers_.needs_room) {
    vcs_.wake(routers_.port_of(vc));
  }
}

/// A port is closed until its link is free, whatever interval the packet after has.
void Engine::close_or_open(std::uint32_t port) {
  OutPort& out = routers_.out[port];
  out.closed = cycle_of(out.next) > now();
  if (out.closed) {
    calendar_.towards(out.next).opened.push_back(port);
  }
  for (std::uint32_t v = 0; v < static_cast<std::uint32_t>(routers_.settings.vcs); ++v) {
    if (const std::uint32_t owner = routers_.out_vcs[routers_.vc(port, v)].owner; owner != kNone) {
      routers_.update_ready(owner);
    }
  }
}

void Engine::arrive(std::uint32_t vc, std::uint32_t packet) {
  InVc& in = routers_.in_vcs[vc];
  ++in.count;
  const bool speculates = routers_.settings.speculation != Speculation::none;
  if (orders_grants_ && in.count == 1 && (speculates || in.out != kNone)) {
    in.turn = {step_, 0, routers_.port_of(vc)};
  }
  if ((packet & kHead) == 0) {
    if (in.count == 1) {
      routers_.update_ready(vc);
    }
    return;
  }
  if (const Priority by = routers_.settings.priority;
      by == Priority::local_age || by == Priority::network_age) {
    Packet& head = packets_[packet & ~kHead];
    head.priority = kHighestPriority - (by == Priority::local_age ? now() : head.injected);
  }
  if (in.front == kNone) {
    in.front = packet & ~kHead;
    show_head(vc, false);
    return;
  }
  (in.second == kNone ? in.second : packets_[in.last].behind) = packet & ~kHead;
  in.last = packet & ~kHead;
}

/// Routing of the front packet of a VC begins with this allocation, or the next one if it was
/// `behind` a tail that leaves in this one. It ends with the first allocation of routing_delay - 1
/// cycles later, and the head asks for an output VC in the allocation after; without a delay in the
/// one with which it would begin.
void Engine::show_head(std::uint32_t vc, bool behind) {
  InVc& in = routers_.in_vcs[vc];
  Packet& packet = packets_[in.front];
  in.left = packet.flits;
  in.begins = true;
  in.priority = routers_.settings.priority == Priority::hop_count ? packet.hops : packet.priority;
  if (orders_grants_ && routers_.settings.speculation == Speculation::none) {
    in.turn.asked = 2 * step_ + (behind ? 1 : 0);
    in.turn.place = behind ? grants_++ : routers_.port_of(vc);
  }
  const int delay = routers_.settings.routing_delay;
  const Cycle routed = now() + (behind && is_last_step_ ? 1 : 0) + delay - 1;
  if (routes_.draws_at_routers()) {
    unrouted_.push_back({routed, step_ + (behind ? 1 : 0), vc});
  } else {
    routes_.route(vc);
  }
  if (delay > 1) {
    calendar_.at(routed).routed.push_back(vc);
  } else if (delay == 0 && !behind) {
    vcs_.add(vc);
  } else {
    (delay == 1 && behind ? later_heads_ : next_heads_).push_back(vc);
  }
}

/// Routes the heads whose routing_delay ends now, router by router in the order in which they
/// became the first of their VCs. They come before those that were routed earlier and have no VC
/// yet. By router, those of both allocations of a cycle are routed in the first, once its flits
/// have left: which they are depends on nothing that is drawn, and none asks before.
void Engine::route_heads() {
  const auto due =
      std::ranges::find_if(unrouted_, [&](const Unrouted& head) { return head.end > now(); });
  const auto step_of = [&](const Unrouted& head) {
    return by_router_ ? std::max(head.step, step_) : step_;
  };
  const auto order = [&](const Unrouted& head) {
    const InVc& in = routers_.in_vcs[head.vc];
    return std::tuple(routers_.router_of(head.vc), step_of(head), in.turn.asked, in.turn.place);
  };
  std::sort(unrouted_.begin(), due,
            [&](const Unrouted& a, const Unrouted& b) { return order(a) < order(b); });
  std::uint32_t place = 0;
  for (auto head = unrouted_.begin(); head != due; ++head) {
    const Cycle step = step_of(*head);
    routes_.route(head->vc, by_router_ && step == step_ ? std::optional(step_) : std::nullopt);
    if (routers_.settings.speculation == Speculation::none) {
      routers_.in_vcs[head->vc].turn.asked = -2 * step;
      routers_.in_vcs[head->vc].turn.place = place++;
    }
  }
  unrouted_.erase(unrouted_.begin(), due);
}

/// Draws where heads go that have passed a switch in this cycle, router by router.
void Engine::pass_by_router() {
  std::ranges::stable_sort(passed_, {}, &Passed::router);
  for (const Passed& head : passed_) {
    routes_.pass(packets_[head.packet], head.to, head.vc);
  }
  passed_.clear();
}

/// A flit granted now that passes the switch within the cycle is at the output a cycle earlier;
/// there it waits for those before it.
Cycle Engine::arrival_after(OutPort& port) const {
  if (!routers_.has_speedup) {
    return now() + port.delay;
  }
  const Cycle arrival = std::max(now() + port.delay - (is_last_step_ ? 0 : 1), port.next_arrival);
  port.next_arrival = arrival + 1;
  return arrival;
}

/// Returns when credits come back: those of one allocation are one message, and one leaves a cycle.
Cycle Engine::credit_after(InPort& port) const {
  if (!routers_.has_speedup) {
    return now() + port.credit_delay;
  }
  if (port.credit_step != step_) {
    port.last_credit = std::max(now() + port.credit_delay, port.last_credit + 1);
    port.credit_step = step_;
  }
  return port.last_credit;
}

void Engine::allocate() {
  if (!by_turns_) {
    allocate_in_general();
  } else {
    if (routers_.ready.any()) {
      allocate_switch();
    }
    if (vcs_.heads().any()) {
      for (const VcAllocation::Win& won : vcs_.match()) {
        win(won);
      }
    }
  }
  if (by_router_ && !is_last_step_) {
    route_heads();
  }
  for (const std::uint32_t vc : freed_vcs_) {
    vcs_.free(vc);
  }
  freed_vcs_.clear();
  for (const std::uint32_t vc : next_heads_) {
    vcs_.add(vc);
  }
  next_heads_.clear();
  std::swap(next_heads_, later_heads_);
  ++step_;
}

void Engine::allocate_switch() {
  std::vector<std::uint32_t>& granted = turns_.match();
  order_grants(granted);
  for (const std::uint32_t vc : granted) {
    send(vc);
  }
}

void Engine::order_grants(std::vector<std::uint32_t>& granted) const {
  if (orders_grants_) {
    std::sort(granted.begin(), granted.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tie(routers_.in[routers_.port_of(a)].router, routers_.in_vcs[a].turn) <
             std::tie(routers_.in[routers_.port_of(b)].router, routers_.in_vcs[b].turn);
    });
  }
}

/// Runs both allocations on the state before; then VCs are taken, then flits leave.
void Engine::allocate_in_general() {
  const std::vector<VcAllocation::Win>& wins = vcs_.match();
  std::vector<std::uint32_t>& granted = switch_.match(vcs_.heads(), wins, random());
  for (const VcAllocation::Win& won : wins) {
    win(won);
  }
  switch_.pass_kept([&](std::uint32_t vc, bool can, bool goes_on) {
    if (can) {
      send(vc);
    }
    if (!goes_on) {
      routers_.in_vcs[vc].turn = {-step_ - 1, 2 * step_ + 2, grants_++};  // before others
    }
  });
  order_grants(granted);
  for (const std::uint32_t vc : granted) {
    const bool goes_on = switch_.goes_on(vc);
    send(vc);
    if (goes_on) {
      switch_.keep(vc);
    }
  }
}

/// Hands the first flit of a VC to the switch.
void Engine::send(std::uint32_t vc) {
  InVc& in = routers_.in_vcs[vc];
  OutPort& port = routers_.out[in.port];
  const std::uint32_t id = in.front;
  const std::uint32_t begins = in.begins ? kHead : 0;
  if (in.begins) {
    ++packets_[id].hops;
    in.begins = false;
    if (in.port < routers_.channels) {
      const std::uint32_t to = routers_.in[port.to].router;
      if (by_router_) {
        passed_.push_back({port.router, id, to, routers_.vc_of(in.out)});
      } else {
        routes_.pass(packets_[id], to, routers_.vc_of(in.out));
      }
    }
  }
  --in.count;
  ++port.flits;
  ++flit_hops_;
  if (by_router_) {
    port.sent = port.sent_step == step_ ? port.sent + 1 : 1;
    port.sent_step = step_;
  }
  const std::uint32_t out = in.out;
  routers_.out_vcs[out].credits -= port.counts_credits ? 1 : 0;
  const Cycle arrival = arrival_after(port) + in.wire;
  Calendar::Slot& there = calendar_.at(arrival);
  if (in.port < routers_.channels) {
    there.flits.push_back({routers_.downstream(out), id | begins});
  } else {
    there.flits_to_nodes.push_back(id);
    if (port.counts_credits) {
      calendar_.at(arrival + port.node_credit_delay - port.delay).credits.push_back(out);
    }
  }
  if (in.interval > kEveryCycle) {
    port.next = next_time(port.next, now(), in.interval);
    if (cycle_of(port.next) > now() + 1) {
      close_or_open(in.port);
    }
  }
  calendar_.at(credit_after(routers_.in[routers_.port_of(vc)]))
      .credits.push_back(routers_.upstream(vc));
  if (--in.left == 0) {
    leave(in, vc);
  } else if (routers_.settings.sw_alloc_delay > 1) {
    in.rests = true;
    calendar_.at(now() + routers_.settings.sw_alloc_delay).rested.push_back(vc);
  }
  routers_.update_ready(vc);
}

/// A tail has left: its output VC is free for the next allocation, and the next head asks.
void Engine::leave(InVc& in, std::uint32_t vc) {
  OutVc& left = routers_.out_vcs[in.out];
  left.owner = kNone;
  left.closing = routers_.settings.wait_for_tail_credit && left.credits < routers_.settings.buffer;
  if (!left.closing) {
    freed_vcs_.push_back(in.out);
  }
  in.out = kNone;
  in.front = in.second;
  if (in.second != kNone) {
    in.second = in.second == in.last ? kNone : packets_[in.second].behind;
    show_head(vc, true);
  }
}

void Engine::win(const VcAllocation::Win& win) {
  vcs_.take(win);
  InVc& in = routers_.in_vcs[win.vc];
  if (routers_.settings.speculation == Speculation::none) {
    in.turn.since = -step_ - 1;
  }
  if (routers_.settings.vc_alloc_delay > 1) {
    in.rests = true;
    calendar_.at(now() + routers_.settings.vc_alloc_delay).rested.push_back(win.vc);
  }
  routers_.update_ready(win.vc);
}

}  // namespace orrery::flit
