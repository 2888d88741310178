// SPDX-License-Identifier: Apache-2.0
/// Ports and what passes them; hosts' side of it is in hosts.cc.
#include "machine/network/packets/fabric.h"

namespace orrery::packets {
namespace {

// Queues of htsim (RandomQueue): within three packets of the end one packet of ten is dropped.
constexpr std::int64_t kNearlyFull = 3;
constexpr double kDropChance = 0.1;

/// The slots of the calendar span the longest way there and back of eight links.
Time slot_width(const topology::LinkGraph& graph) {
  Time longest = 1_us;
  for (const topology::GraphLink& link : graph.links) {
    longest = std::max(longest, link.latency);
  }
  return longest / (static_cast<std::int64_t>(engine::CalendarQueue::kSlots) / 16);
}

}  // namespace

Fabric::Fabric(const topology::LinkGraph& graph, const network::PacketOptions& options,
               std::size_t flows)
    : rules_(options), routes_(graph), queue_(slot_width(graph)), ports_(graph.links.size()) {
  streams_.resize(flows);
  counted_.load.resize(graph.links.size());
  for (std::size_t l = 0; l < ports_.size(); ++l) {
    const auto number = static_cast<std::int32_t>(l);
    ports_[l].room = rules_.room(routes_.link(number).bandwidth);
    ports_[l].full = routes_.serialisation(rules_.options().wire, number);
    ports_[l].control = routes_.serialisation(rules_.options().header, number);
  }
}

void Fabric::restart() {
  queue_ = engine::CalendarQueue(slot_width(routes_.graph()));
  random_ = 0;
}

std::uint32_t Fabric::allocate() {
  if (free_.empty()) {
    packets_.emplace_back();
    return static_cast<std::uint32_t>(packets_.size()) - 1;
  }
  const std::uint32_t id = free_.back();
  free_.pop_back();
  return id;
}

bool Fabric::overflows(const Port& port, const Packet& packet) {
  const std::int64_t holds = holding(port) + packet.wire;
  if (holds > port.room) {
    return true;
  }
  return holds > port.room - kNearlyFull * rules_.wire() && chance() < kDropChance;
}

void Fabric::enqueue(std::uint32_t id) {
  Packet& packet = packets_[id];
  const std::uint32_t number = link_of(packet);
  Port& port = ports_[number];
  // First without the packet that is being sent, which is seldom in the cache.
  if (rules_.trims() && packet.hop > 0 && port.queued + packet.wire + rules_.wire() > port.room &&
      holding(port) + packet.wire > port.room) {
    if (rules_.is(network::Protocol::eqds) || (next_random() & 1U) != 0 || port.first == kNone) {
      trim(id);
      return;
    }
    trim(drop_last(port));
  }
  if (rules_.is(network::Protocol::swift) && packet.hop > 0 && overflows(port, packet)) {
    release(id);
    return;
  }
  packet.next = kNone;
  (port.first == kNone ? port.first : packets_[port.last].next) = id;
  port.last = id;
  port.queued += packet.wire;
  if (rules_.is(network::Protocol::hpcc)) {
    port.just_came = packet.wire + (port.came == now() ? port.just_came : 0);
    port.came = now();
  }
  if (packet.hop > 0) {
    send_next(number);
  }
}

std::uint32_t Fabric::drop_last(Port& port) {
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

void Fabric::trim(std::uint32_t id) {
  const Packet& packet = packets_[id];
  Time there{0};
  for (std::uint16_t h = packet.hop; h < packet.hops; ++h) {
    const std::int32_t over = routes_.at(packet.route + h);
    there += routes_.serialisation(rules_.options().header, over) + routes_.link(over).latency;
    there += charge(over);
  }
  streams_[packet.flow].avoided[packet.path] = rules_.is(network::Protocol::eqds);
  push_in(there, Event::header, packet.flow, packet.number);
  release(id);
}

void Fabric::send_next(std::uint32_t number) {
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
  const Time takes =
      routes_.have_rates() ? Bytes(packet.wire) / routes_.rate(packet.route + packet.hop)
      : packet.wire == rules_.wire()
          ? port.full
          : routes_.serialisation(Bytes(packet.wire), static_cast<std::int32_t>(number));
  port.until = now() + takes + port.debt;
  queue_.push(port.until, Event::sent, number);
  port.debt = Time(0);
  if (rules_.is(network::Protocol::swift) && packet.hop == 0 && !packet.ack) {
    left_at_.resize(packets_.capacity());
    left_at_[port.sending] = now();
  }
}

std::uint32_t Fabric::end_sending(std::uint32_t number) {
  Port& port = ports_[number];
  const std::uint32_t id = port.sending;
  port.sending = kNone;
  counted_.load[number] += packets_[id].ack ? 0 : packets_[id].wire;
  return id;
}

void Fabric::pass_on(std::uint32_t id, std::uint32_t number) {
  const Packet& packet = packets_[id];
  const bool to_switch = packet.hop + 1 < packet.hops;
  push_in(routes_.link(static_cast<std::int32_t>(number)).latency +
              (to_switch ? rules_.options().switch_delay : Time(0)),
          Event::arrived, id);
  if (rules_.pauses() && packet.hop > 0) {
    leave(static_cast<std::uint32_t>(routes_.at(packet.route + packet.hop - 1)), packet.wire);
  }
  send_next(number);
}

void Fabric::leave(std::uint32_t number, std::uint32_t wire) {
  Port& port = ports_[number];
  port.ingress -= wire;
  if (port.stopping && port.ingress < rules_.options().resume * rules_.payload()) {
    port.stopping = false;
    push_in(routes_.link(static_cast<std::int32_t>(number)).latency, Event::go, number);
  }
}

bool Fabric::arrive(std::uint32_t id) {
  Packet& packet = packets_[id];
  if (packet.hop + 1 == packet.hops) {
    return true;
  }
  if (rules_.pauses()) {
    const std::uint32_t number = link_of(packet);
    Port& port = ports_[number];
    port.ingress += packet.wire;
    if (!port.stopping && port.ingress > rules_.options().pause * rules_.payload()) {
      port.stopping = true;
      ++counted_.pauses;
      push_in(routes_.link(static_cast<std::int32_t>(number)).latency, Event::pause, number);
    }
  }
  ++packet.hop;
  enqueue(id);
  return false;
}

void Fabric::send_ack(std::uint32_t id) {
  Packet& packet = packets_[id];
  const Stream& stream = streams_[packet.flow];
  packet = {.flow = packet.flow,
            .number = packet.number,
            .wire = static_cast<std::uint32_t>(rules_.options().header.value()),
            .route = stream.back,
            .hops = stream.back_hops,
            .ack = true};
  enqueue(id);
  send_next(static_cast<std::uint32_t>(routes_.at(stream.back)));
}

Time Fabric::charge_way_back(std::uint32_t f) {
  const Stream& stream = streams_[f];
  const std::size_t path = stream.next_path % stream.routes.size();
  Time waits{0};
  for (std::uint16_t h = 0; h < stream.hops[path]; ++h) {
    waits += charge(routes_.reverse(routes_.at(stream.routes[path] + h)));
  }
  return stream.reverse + waits;
}

Time Fabric::charge(std::int32_t over) {
  if (over < 0) {
    return Time(0);
  }
  Port& port = ports_[static_cast<std::size_t>(over)];
  if (port.sending == kNone) {
    return Time(0);
  }
  port.debt += port.control;
  return rules_.trims() ? port.until - now() : Time(0);
}

}  // namespace orrery::packets
