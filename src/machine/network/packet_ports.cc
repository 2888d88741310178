// SPDX-License-Identifier: Apache-2.0
#include <cassert>

#include "machine/network/packet_network.h"

namespace orrery::network::packets {

PacketRun PacketNetwork::run() {
  for (std::uint32_t f = 0; f < flows_.size(); ++f) {
    streams_[f].bytes = flows_[f].bytes;
    streams_[f].target = flows_[f].target;
    prepare(f);
  }
  for (const std::vector<std::uint32_t>& part : parts()) {
    run_part(part);
  }
  run_.end = run_.finish.empty() ? Time(0) : *std::ranges::max_element(run_.finish);
  return std::move(run_);
}

void PacketNetwork::find_reverse() {
  const topology::Adjacency adjacency(graph_);
  reverse_.resize(graph_.links.size(), -1);
  for (std::size_t l = 0; l < reverse_.size(); ++l) {
    const topology::GraphLink& forward = graph_.links[l];
    const auto opposite = [&](std::int32_t other) {
      return link(other).source == forward.target && link(other).target == forward.source;
    };
    if (forward.source < 0) {
      continue;
    }
    const auto beside = static_cast<std::int32_t>(l ^ 1);
    if (static_cast<std::size_t>(beside) < reverse_.size() && opposite(beside)) {
      reverse_[l] = beside;
      continue;
    }
    for (const std::int32_t other : adjacency.out(forward.target)) {
      reverse_[l] = opposite(other) ? other : reverse_[l];
    }
  }
}

void PacketNetwork::handle(const engine::CalendarQueue::Event& event) {
  switch (event.kind) {
    case Event::start:
      if (event.generation == start_turn_) {
        begin_all();
      }
      break;
    case Event::started:
      moved_ = queue_.now();
      begin(event.subject);
      break;
    case Event::sent:
      finish_sending(event.subject);
      break;
    case Event::arrived:
      arrive(event.subject);
      break;
    case Event::acknowledged:
      acknowledge(event.subject);
      break;
    case Event::header:
      if (is(Protocol::ndp)) {
        ask(event.subject);
      } else {
        learn(event.subject, event.generation, true);
      }
      control(event.subject, Event::refused, event.generation);
      break;
    case Event::refused:
      refuse(event.subject, event.generation);
      break;
    case Event::pulled:
      take_credit(event.subject);
      break;
    case Event::carried:
      carry_pull(event.subject);
      break;
    case Event::tick:
      pull(event.subject);
      break;
    case Event::pause:
      ports_[event.subject].paused = true;
      break;
    case Event::go:
      ports_[event.subject].paused = false;
      send_next(event.subject);
      resume(event.subject);
      break;
    default:
      handle_timer(event);
  }
}

void PacketNetwork::handle_timer(const engine::CalendarQueue::Event& event) {
  switch (event.kind) {
    case Event::paced:
      if (is(Protocol::swift)) {
        if (delays_[event.subject].turn == event.generation) {
          send_spaced(event.subject);
        }
      } else if (paces_[event.subject].turn == event.generation) {
        pace(event.subject);
      }
      break;
    case Event::notified:
      cut(event.subject);
      break;
    case Event::scan:
      expire(event.subject);
      break;
    case Event::decay:
    case Event::increase:
      if (paces_[event.subject].cuts == event.generation) {
        recover(event.subject, event.kind == Event::increase);
      }
      break;
    case Event::watch:
      if (event.generation == steady_.turn) {
        watch();
      }
      break;
    default:
      assert(false && "every event is one of these");
  }
}

void PacketNetwork::enqueue(std::uint32_t id) {
  Packet& packet = packets_[id];
  const auto number = static_cast<std::uint32_t>(link_of(packet));
  Port& port = ports_[number];
  // First without the packet that is being sent, which is seldom in the cache.
  if (trims() && packet.hop > 0 && port.queued + packet.wire + options_.wire.value() > port.room &&
      holding(port) + packet.wire > port.room) {
    if (is(Protocol::eqds) || coin() || port.first == kNone) {
      trim(id);
      return;
    }
    trim(drop_last(port));
  }
  if (is(Protocol::swift) && packet.hop > 0 && overflows(port, packet)) {
    free_.push_back(id);
    return;
  }
  packet.next = kNone;
  (port.first == kNone ? port.first : packets_[port.last].next) = id;
  port.last = id;
  port.queued += packet.wire;
  if (is(Protocol::hpcc)) {
    port.just_came = packet.wire + (port.came == queue_.now() ? port.just_came : 0);
    port.came = queue_.now();
  }
  if (packet.hop > 0) {
    send_next(number);
  }
}

std::uint32_t PacketNetwork::drop_last(Port& port) {
  const std::uint32_t last = port.last;
  std::uint32_t before = kNone;
  for (std::uint32_t id = port.first; id != last; id = packets_[id].next) {
    before = id;
  }
  (before == kNone ? port.first : packets_[before].next) = kNone;
  port.last = before;
  port.queued -= packets_[last].wire;
  return last;
}

void PacketNetwork::trim(std::uint32_t id) {
  const Packet& packet = packets_[id];
  Time there{0};
  for (std::uint16_t h = packet.hop; h < packet.hops; ++h) {
    const std::int32_t over = routes_[packet.route + h];
    there += serialisation(options_.header, over) + link(over).latency;
    there += charge(over);
  }
  streams_[packet.flow].avoided[packet.path] = is(Protocol::eqds);
  queue_.push(queue_.now() + there, Event::header, packet.flow, packet.number);
  free_.push_back(id);
}

void PacketNetwork::send_next(std::uint32_t number) {
  Port& port = ports_[number];
  if (port.sending != kNone || port.paused) {
    return;
  }
  if (port.first == kNone && !port.flows.empty()) {
    take_from_host(number);
  }
  if (port.first == kNone) {
    return;
  }
  port.sending = port.first;
  const Packet& packet = packets_[port.first];
  port.first = packet.next;
  port.queued -= packet.wire;
  const auto over = static_cast<std::int32_t>(number);
  const Time takes =
      !rates_.empty() ? Bytes(packet.wire) / Bandwidth(rates_[packet.route + packet.hop])
      : packet.wire == options_.wire.value() ? port.full
                                             : serialisation(Bytes(packet.wire), over);
  port.until = queue_.now() + takes + port.debt;
  queue_.push(port.until, Event::sent, number);
  port.debt = Time(0);
  if (is(Protocol::swift) && packet.hop == 0 && !packet.ack) {
    left_at_.resize(packets_.capacity());
    left_at_[port.sending] = queue_.now();
  }
}

void PacketNetwork::finish_sending(std::uint32_t number) {
  Port& port = ports_[number];
  const std::uint32_t id = port.sending;
  Packet& packet = packets_[id];
  port.sending = kNone;
  moved_ = queue_.now();
  run_.load[number] += packet.ack ? 0 : packet.wire;
  if (is(Protocol::hpcc)) {
    report(id, port);
  } else if (is(Protocol::dcqcn)) {
    mark(packet, port, static_cast<std::int32_t>(number));
  }
  const auto over = static_cast<std::int32_t>(number);
  const bool to_switch = packet.hop + 1 < packet.hops;
  queue_.push(queue_.now() + link(over).latency + (to_switch ? options_.switch_delay : Time(0)),
              Event::arrived, id);
  if (pauses() && packet.hop > 0) {
    leave(static_cast<std::uint32_t>(routes_[packet.route + packet.hop - 1]), packet.wire);
  }
  const bool of_window = is(Protocol::swift) && packet.hop == 0 && !packet.ack;
  const std::uint32_t f = packet.flow;
  send_next(number);
  if (of_window && !is_gone(f)) {
    --delays_[f].in_nic;
    fill_window(f);
  }
}

void PacketNetwork::leave(std::uint32_t number, std::uint32_t wire) {
  Port& port = ports_[number];
  port.ingress -= wire;
  if (port.stopping && port.ingress < options_.resume * payload()) {
    port.stopping = false;
    queue_.push(queue_.now() + link(static_cast<std::int32_t>(number)).latency, Event::go, number);
  }
}

void PacketNetwork::arrive(std::uint32_t id) {
  Packet& packet = packets_[id];
  if (packet.hop + 1 == packet.hops) {
    deliver(id);
    return;
  }
  if (pauses()) {
    const auto number = static_cast<std::uint32_t>(link_of(packet));
    Port& port = ports_[number];
    port.ingress += packet.wire;
    if (!port.stopping && port.ingress > options_.pause * payload()) {
      port.stopping = true;
      ++run_.pauses;
      queue_.push(queue_.now() + link(static_cast<std::int32_t>(number)).latency, Event::pause,
                  number);
    }
  }
  ++packet.hop;
  enqueue(id);
}

Time PacketNetwork::charge(std::int32_t over) {
  if (over < 0) {
    return Time(0);
  }
  Port& port = ports_[static_cast<std::size_t>(over)];
  if (port.sending == kNone) {
    return Time(0);
  }
  port.debt += port.control;
  return trims() ? port.until - queue_.now() : Time(0);
}

}  // namespace orrery::network::packets
