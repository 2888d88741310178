// SPDX-License-Identifier: Apache-2.0
/// Messages over time: alone by the closed form, else cycle by cycle.
#include <algorithm>
#include <cassert>

#include "machine/network/flit/network.h"

namespace orrery::flit {

network::TransferId FlitNetwork::start(Bytes bytes, std::span<const topology::Hop> route,
                                       engine::EventQueue& queue) {
  auto id = static_cast<network::TransferId>(announced_.size());
  if (free_.empty()) {
    announced_.push_back(0);
    by_id_.push_back(kNone);
  } else {
    id = free_.back();
    free_.pop_back();
  }
  by_id_[id] = kNone;
  if (route.empty()) {
    queue.push(queue.now(), kArrive, id, announced_[id]);
    return id;
  }
  const Cycle now = first_cycle_at(queue.now());
  if (in_flight_ == 0) {
    begin_epoch(now);
  }
  ++in_flight_;
  const std::uint32_t number = number_of(route);
  const LaidRoute& laid = routes_[number];
  const auto message = static_cast<std::uint32_t>(messages_.size());
  messages_.push_back({.route = number, .bytes = bytes, .left = bytes, .start = now, .id = id});
  by_id_[id] = message;
  if (simulating_) {
    while (origin_ + engine_->now() < now) {  // credits may be on their way, no flits
      step_engine(now - origin_, queue);
    }
    enqueue(message);
    return id;
  }
  if (!shortcuts_ || !has_closed_form_ || !laid.is_even || meets_another(laid, now)) {
    simulate_from_start(now, queue);
    return id;
  }
  const std::int64_t flits = message_flits(bytes, settings_.packet, settings_.flit);
  const Cycle end = now + alone(flits, laid.interval, laid.routers, laid.links, router_);
  for (const std::uint32_t port : laid.ports) {
    busy_until_[port] = end;
  }
  tell(message, end, queue);
  return id;
}

bool FlitNetwork::meets_another(const LaidRoute& laid, Cycle now) const {
  return std::any_of(laid.ports.begin(), laid.ports.end(),
                     [&](std::uint32_t port) { return busy_until_[port] > now; });
}

void FlitNetwork::tell(std::uint32_t message, Cycle cycle, engine::EventQueue& queue) {
  const Message& of = messages_[message];
  queue.push(cycle_ * cycle + routes_[of.route].after, kArrive, of.id, announced_[of.id]);
}

/// The network is idle: nothing that was before leaves a trace.
void FlitNetwork::begin_epoch(Cycle now) {
  messages_.clear();
  origin_ = now;
  simulating_ = false;
}

/// Simulates anew from the first message of the epoch up to the present cycle. Arrivals that were
/// told are not told again; those that were announced for later are announced anew.
void FlitNetwork::simulate_from_start(Cycle now, engine::EventQueue& queue) {
  simulating_ = true;
  engine_ = std::make_unique<Engine>(graph_, routing_, router_, 1);
  for (std::deque<std::uint32_t>& list : waiting_) {
    list.clear();
  }
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < messages_.size(); ++i) {
    if (!messages_[i].told) {
      ++announced_[messages_[i].id];
    }
  }
  const auto begin_due = [&](Cycle cycle) {
    while (next < messages_.size() && messages_[next].start <= cycle) {
      enqueue(next++);
    }
  };
  while (origin_ + engine_->now() < now) {
    begin_due(origin_ + engine_->now());
    const Cycle until = next < messages_.size() ? std::min(messages_[next].start, now) : now;
    step_engine(until - origin_, queue);
  }
  begin_due(now);
}

void FlitNetwork::enqueue(std::uint32_t message) {
  Message& of = messages_[message];
  const LaidRoute& laid = routes_[of.route];
  of.packets = std::max<std::int64_t>(
      1, (of.bytes.value() + settings_.packet.value() - 1) / settings_.packet.value());
  waiting_[laid.source].push_back(message);
  if (engine_->is_free(laid.source)) {
    offer_next(laid.source);
  }
}

void FlitNetwork::offer_next(std::uint32_t source) {
  std::deque<std::uint32_t>& list = waiting_[source];
  if (list.empty()) {
    return;
  }
  const std::uint32_t message = list.front();
  Message& of = messages_[message];
  const LaidRoute& laid = routes_[of.route];
  const Bytes part = std::min(of.left, settings_.packet);
  of.left -= part;
  if (of.left <= Bytes(0)) {
    list.pop_front();
  }
  engine_->offer(
      source,
      {.target = laid.target,
       .flits = static_cast<std::uint32_t>(message_flits(part, settings_.packet, settings_.flit)),
       .tag = message,
       .created = engine_->now(),
       .route = laid.first,
       .interval = laid.interval,
       .wire = laid.wire,
       .slowest = laid.interval});
}

/// One cycle, or an idle span up to `limit`, in the engine's cycles.
void FlitNetwork::step_engine(Cycle limit, engine::EventQueue& queue) {
  if (shortcuts_) {
    engine_->skip(limit);
    if (engine_->now() >= limit) {
      return;
    }
  }
  engine_->step();
  ++cycles_;
  for (const std::uint32_t source : engine_->freed_sources()) {
    offer_next(source);
  }
  for (const Arrived& packet : engine_->arrived()) {
    Message& message = messages_[packet.tag];
    if (--message.packets == 0 && !message.told) {
      tell(packet.tag, origin_ + engine_->now(), queue);
    }
  }
}

/// The instant is over. Cycles are simulated until something else is due: a cycle waits for all
/// that may begin in it.
void FlitNetwork::settle(engine::EventQueue& queue) {
  while (simulating_ && engine_->packets_in_flight() > 0) {
    const Time next = queue.empty() ? Time::max() : queue.next_time();
    if (shortcuts_) {
      engine_->skip(first_cycle_at(next) - origin_);
    }
    if (cycle_ * (origin_ + engine_->now()) >= next) {
      return;
    }
    assert(!engine_->is_stuck() && "classes of virtual channels keep the network free of deadlock");
    step_engine(engine_->now() + 1, queue);
  }
}

bool FlitNetwork::handle(const engine::EventQueue::Event& event, engine::EventQueue& /*queue*/) {
  if (event.kind != kArrive || event.generation != announced_[event.subject]) {
    return false;
  }
  ++announced_[event.subject];
  free_.push_back(event.subject);
  if (by_id_[event.subject] != kNone) {
    messages_[by_id_[event.subject]].told = true;
    --in_flight_;
  }
  return true;
}

}  // namespace orrery::flit
