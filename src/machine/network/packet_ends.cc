// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "machine/network/packet_network.h"

namespace orrery::network::packets {

void PacketNetwork::add_path(std::size_t flow, const std::vector<std::int32_t>& links) {
  streams_[flow].routes.push_back(static_cast<std::uint32_t>(routes_.size()));
  streams_[flow].hops.push_back(static_cast<std::uint16_t>(links.size()));
  routes_.insert(routes_.end(), links.begin(), links.end());
}

void PacketNetwork::prepare(std::uint32_t f) {
  Stream& stream = streams_[f];
  const std::int64_t bytes = stream.bytes.value();
  stream.count =
      static_cast<std::uint32_t>(std::max<std::int64_t>(1, (bytes + payload() - 1) / payload()));
  if (is(Protocol::swift) && !by_message_) {
    ++stream.count;  // as csg-htsim counts
  }
  const std::int64_t rest = bytes - (std::int64_t{stream.count} - 1) * payload();
  stream.last_wire = static_cast<std::uint32_t>(is(Protocol::eqds) ? rest + options_.header.value()
                                                                   : options_.wire.value());
  if (stream.hops.front() == 0) {
    return;
  }
  stream.nic = static_cast<std::uint32_t>(routes_[stream.routes.front()]);
  stream.line = line_of(stream);
  stream.unsolicited = trims() ? window(stream) : is(Protocol::roce) ? stream.count : 0;
  stream.random = topology::mixed(options_.seed ^ topology::mixed(f));
  stream.order.resize(stream.routes.size());
  stream.avoided.resize(stream.routes.size());
  std::iota(stream.order.begin(), stream.order.end(), 0U);
  shuffle(stream);
  for (std::uint16_t h = 0; h < stream.hops.front(); ++h) {
    const std::int32_t over = routes_[stream.routes.front() + h];
    stream.reverse += serialisation(options_.header, over) + link(over).latency +
                      (h > 0 ? options_.switch_delay : Time(0));
  }
  if (!trims()) {
    lay_return_route(stream);
  }
  if (is(Protocol::hpcc)) {
    make_room_for_reports(stream.hops.front());
  }
}

Bandwidth PacketNetwork::line_of(const Stream& stream) const {
  std::vector<std::int32_t> first;
  first.reserve(stream.routes.size());
  for (const std::uint32_t route : stream.routes) {
    first.push_back(routes_[route]);
  }
  std::ranges::sort(first);
  const auto twice = std::ranges::unique(first);
  first.erase(twice.begin(), twice.end());
  return std::accumulate(
      first.begin(), first.end(), Bandwidth(0),
      [this](Bandwidth sum, std::int32_t number) { return sum + link(number).bandwidth; });
}

void PacketNetwork::add_return_route(std::size_t flow, const std::vector<std::int32_t>& links) {
  streams_[flow].back = static_cast<std::uint32_t>(routes_.size());
  streams_[flow].back_hops = static_cast<std::uint16_t>(links.size());
  routes_.insert(routes_.end(), links.begin(), links.end());
}

void PacketNetwork::lay_return_route(Stream& stream) {
  if (stream.back != kNone) {
    return;
  }
  const auto first = static_cast<std::uint32_t>(routes_.size());
  for (std::uint16_t h = stream.hops.front(); h-- > 0;) {
    routes_.push_back(reverse(routes_[stream.routes.front() + h]));
  }
  const bool all = std::find(routes_.begin() + first, routes_.end(), -1) == routes_.end();
  stream.back = all ? first : kNone;
  stream.back_hops = all ? stream.hops.front() : 0;
}

void PacketNetwork::shuffle(Stream& stream) {
  for (std::size_t i = stream.order.size(); i > 1; --i) {
    stream.random = topology::mixed(stream.random);
    std::swap(stream.order[i - 1], stream.order[stream.random % i]);
  }
}

void PacketNetwork::begin(std::uint32_t f) {
  if (streams_[f].hops.front() == 0) {
    end(f);
    return;
  }
  if (is_paced()) {
    begin_paced(f);
  } else if (is(Protocol::swift)) {
    begin_delayed(f);
  } else {
    offer(f);
  }
}

void PacketNetwork::offer(std::uint32_t f) {
  Stream& stream = streams_[f];
  if (!stream.listed && may_send(stream)) {
    stream.listed = true;
    ports_[stream.nic].flows.push_back(f);
  }
  send_next(stream.nic);
}

void PacketNetwork::take_from_host(std::uint32_t port_number) {
  Port& port = ports_[port_number];
  while (!port.flows.empty()) {
    port.turn = port.turn < port.flows.size() ? port.turn : 0;
    const std::uint32_t f = port.flows[port.turn];
    Stream& stream = streams_[f];
    if (!may_send(stream)) {
      stream.listed = false;
      port.flows.erase(port.flows.begin() + static_cast<std::ptrdiff_t>(port.turn));
      continue;
    }
    ++port.turn;
    // One that goes over another port of the host's makes no turn of this one.
    if (const std::uint32_t over = make_packet(f, stream); over != port_number) {
      send_next(over);
    } else {
      return;
    }
  }
}

std::uint32_t PacketNetwork::make_packet(std::uint32_t f, Stream& stream) {
  std::uint32_t number = stream.fresh;
  bool asks = false;
  if (stream.unsolicited > 0 && stream.fresh < stream.count && stream.credit <= 0) {
    --stream.unsolicited;
    ++stream.fresh;
  } else {
    if (!stream.again.empty()) {
      number = stream.again.front();
      stream.again.pop_front();
      run_.resent += is(Protocol::swift) ? 0 : 1;
      asks = true;
    } else {
      ++stream.fresh;
    }
    stream.credit -= wire_of(stream, number);
    asks = asks || stream.credit < 0;
  }
  const std::uint32_t id = allocate();
  const std::uint32_t path = next_path(stream);
  packets_[id] = {.flow = f,
                  .number = number,
                  .wire = wire_of(stream, number),
                  .route = stream.routes[path],
                  .hops = stream.hops[path],
                  .path = path,
                  .asks = asks || number + 1 == stream.count};
  ++run_.packets;
  enqueue(id);
  return static_cast<std::uint32_t>(routes_[stream.routes[path]]);
}

std::uint32_t PacketNetwork::allocate() {
  if (free_.empty()) {
    packets_.emplace_back();
    return static_cast<std::uint32_t>(packets_.size()) - 1;
  }
  const std::uint32_t id = free_.back();
  free_.pop_back();
  return id;
}

std::uint32_t PacketNetwork::next_path(Stream& stream) {
  for (std::size_t tries = 0; tries <= stream.order.size(); ++tries) {
    if (stream.next_path == stream.order.size()) {
      stream.next_path = 0;
      shuffle(stream);
    }
    const std::uint32_t path = stream.order[stream.next_path++];
    if (!stream.avoided[path]) {
      return path;
    }
    stream.avoided[path] = false;  // skipped once
  }
  return stream.order.front();
}

void PacketNetwork::deliver(std::uint32_t id) {
  const Packet packet = packets_[id];
  const std::uint32_t f = packet.flow;
  if (is_gone(f)) {  // a packet that was sent again without need, or its acknowledgement
    free_.push_back(id);
    return;
  }
  Stream& stream = streams_[f];
  if (packet.ack) {
    if (is(Protocol::hpcc)) {
      adapt(id);
    } else if (is(Protocol::swift)) {
      hear(f, packet.number, left_at_[id]);
    } else {
      acknowledge(f);
    }
    free_.push_back(id);
    return;
  }
  stream.heard = queue_.now();
  if (is(Protocol::swift)) {
    packets_[id].number = receive(f, packet.number);
    came_whole(f);
    send_ack(id);
    return;
  }
  ++stream.received;
  came_whole(f);
  if (packet.marked) {
    notify(f);
  }
  if (!trims() && stream.back != kNone) {
    send_ack(id);
    return;
  }
  free_.push_back(id);
  if (is(Protocol::eqds)) {
    learn(f, packet.number, false);
    stream.untold += packet.wire;
    if (stream.received > 1 && stream.received < stream.count && !packet.asks &&
        stream.untold <= kUntold) {
      return;
    }
    stream.untold = 0;
  } else if (is(Protocol::ndp)) {
    ask(f);
  }
  control(f, Event::acknowledged, 0);
}

void PacketNetwork::send_ack(std::uint32_t id) {
  Packet& packet = packets_[id];
  const Stream& stream = streams_[packet.flow];
  packet = {.flow = packet.flow,
            .number = packet.number,
            .wire = static_cast<std::uint32_t>(options_.header.value()),
            .route = stream.back,
            .hops = stream.back_hops,
            .ack = true};
  enqueue(id);
  send_next(static_cast<std::uint32_t>(routes_[stream.back]));
}

void PacketNetwork::control(std::uint32_t f, Event event, std::uint32_t number) {
  Stream& stream = streams_[f];
  const std::size_t path = stream.next_path % stream.routes.size();
  Time waits{0};
  for (std::uint16_t h = 0; h < stream.hops[path]; ++h) {
    waits += charge(reverse(routes_[stream.routes[path] + h]));
  }
  if (event == Event::acknowledged && !is(Protocol::ndp) && stream.received < stream.count) {
    return;  // tells the sender nothing that it acts on
  }
  queue_.push(queue_.now() + stream.reverse + waits, event, f, number);
}

void PacketNetwork::send_pull(std::uint32_t f) {
  const Stream& stream = streams_[f];
  const std::size_t path = stream.next_path % stream.routes.size();
  const std::uint32_t id = allocate();
  packets_[id] = {
      .flow = f, .route = stream.routes[path], .hop = stream.hops[path], .hops = stream.hops[path]};
  carry_pull(id);
}

void PacketNetwork::carry_pull(std::uint32_t id) {
  Packet& packet = packets_[id];
  if (packet.hop == 0) {
    free_.push_back(id);
    if (!is_gone(packet.flow)) {
      take_credit(packet.flow);
    }
    return;
  }
  const std::int32_t over = routes_[packet.route + --packet.hop];
  const Time passes = serialisation(options_.header, over) + link(over).latency +
                      (packet.hop > 0 ? options_.switch_delay : Time(0));
  queue_.push(queue_.now() + charge(reverse(over)) + passes, Event::carried, id);
}

void PacketNetwork::acknowledge(std::uint32_t f) {
  Stream& stream = streams_[f];
  stream.acknowledged += is(Protocol::ndp) || stream.back != kNone ? 1 : stream.count;
  if (stream.acknowledged == stream.count) {
    end(f);
  }
}

void PacketNetwork::take_credit(std::uint32_t f) {
  Stream& stream = streams_[f];
  if (is(Protocol::ndp)) {
    stream.credit += options_.wire.value();
    offer(f);
    return;
  }
  const std::uint32_t left = std::min(stream.unsolicited, stream.count - stream.fresh);
  stream.unreported += std::int64_t{left} * options_.wire.value();
  stream.unsolicited = 0;
  stream.credit += kPull.value();
  offer(f);
}

void PacketNetwork::refuse(std::uint32_t f, std::uint32_t number) {
  streams_[f].again.push_back(number);
  offer(f);
}

void PacketNetwork::learn(std::uint32_t f, std::uint32_t number, bool trimmed) {
  Stream& stream = streams_[f];
  // Sent when all before it had been: what it says is wanted ends a window later.
  const std::uint32_t told = std::min(stream.count, number + 1 + window(stream));
  stream.told = std::max(stream.told, std::min(stream.count, window(stream)));
  if (told > stream.told) {
    stream.wanted += std::int64_t{told - stream.told} * options_.wire.value();
    stream.told = told;
  }
  stream.wanted += stream.unreported;
  stream.unreported = 0;
  if (trimmed) {
    stream.wanted += options_.wire.value();
    stream.urgent = true;
  }
  want(f);
}

void PacketNetwork::ask(std::uint32_t f) {
  Stream& stream = streams_[f];
  if (stream.received == stream.count) {
    stream.wanted = 0;
  } else {
    stream.wanted += options_.wire.value();
    want(f);
  }
}

void PacketNetwork::want(std::uint32_t f) {
  Stream& stream = streams_[f];
  Receiver& receiver = receivers_[static_cast<std::size_t>(stream.target)];
  if (stream.wanted > 0 && !stream.waiting) {
    stream.waiting = true;
    (stream.urgent ? receiver.urgent : receiver.flows).push_back(f);
  }
  if (!receiver.ticking && !(receiver.flows.empty() && receiver.urgent.empty())) {
    receiver.ticking = true;
    queue_.push(std::max(queue_.now(), receiver.next), Event::tick,
                static_cast<std::uint32_t>(stream.target));
  }
}

void PacketNetwork::pull(std::uint32_t host) {
  Receiver& receiver = receivers_[host];
  std::deque<std::uint32_t>& list = receiver.urgent.empty() ? receiver.flows : receiver.urgent;
  while (!list.empty() && streams_[list.front()].wanted <= 0) {  // all has come meanwhile
    streams_[list.front()].waiting = false;
    list.pop_front();
  }
  if (list.empty()) {
    receiver.ticking = false;
    return;
  }
  const std::uint32_t f = list.front();
  list.pop_front();
  Stream& stream = streams_[f];
  const bool one = is(Protocol::ndp);
  stream.wanted -= one ? options_.wire.value() : kPull.value();
  stream.urgent = false;
  stream.waiting = stream.wanted > 0;
  if (stream.waiting) {
    receiver.flows.push_back(f);
  }
  if (one) {
    send_pull(f);
  } else {
    control(f, Event::pulled, 0);
  }
  const Time interval = one ? options_.wire / stream.line / kPacerShare
                            : (options_.wire + kFraming) / stream.line * kPacerShare;
  receiver.next = queue_.now() + interval;
  queue_.push(receiver.next, Event::tick, host);
}

}  // namespace orrery::network::packets
