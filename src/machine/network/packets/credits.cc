// SPDX-License-Identifier: Apache-2.0
#include "machine/network/packets/credits.h"

#include <algorithm>

namespace orrery::packets {
namespace {

constexpr Bytes kPull{4096};  // wire bytes of one credit
constexpr double kPacerShare = 0.99;
constexpr Bytes kFraming{38};            // preamble and gap, that only the pacer counts
constexpr std::int64_t kUntold = 16384;  // bytes that eqds acknowledges together

}  // namespace

bool Credits::receive(const Packet& packet) {
  if (rules_.is(network::Protocol::ndp)) {
    ask(packet.flow);
    return true;
  }
  learn(packet.flow, packet.number, false);
  Stream& stream = fabric_.stream(packet.flow);
  stream.untold += packet.wire;
  if (stream.received > 1 && stream.received < stream.count && !packet.asks &&
      stream.untold <= kUntold) {
    return false;
  }
  stream.untold = 0;
  return true;
}

void Credits::receive_header(std::uint32_t f, std::uint32_t number) {
  if (rules_.is(network::Protocol::ndp)) {
    ask(f);
  } else {
    learn(f, number, true);
  }
  fabric_.control(f, Event::refused, number);
}

void Credits::refuse(std::uint32_t f, std::uint32_t number) {
  fabric_.stream(f).again.push_back(number);
  fabric_.offer(f);
}

void Credits::take(std::uint32_t f) {
  Stream& stream = fabric_.stream(f);
  if (rules_.is(network::Protocol::ndp)) {
    stream.credit += rules_.wire();
  } else {
    const std::uint32_t left = std::min(stream.unsolicited, stream.count - stream.fresh);
    stream.unreported += std::int64_t{left} * rules_.wire();
    stream.unsolicited = 0;
    stream.credit += kPull.value();
  }
  fabric_.offer(f);
}

void Credits::send_pull(std::uint32_t f) {
  const Stream& stream = fabric_.stream(f);
  const std::size_t path = stream.next_path % stream.routes.size();
  const std::uint32_t id = fabric_.allocate();
  fabric_.packet(id) = {
      .flow = f, .route = stream.routes[path], .hop = stream.hops[path], .hops = stream.hops[path]};
  carry_pull(id);
}

void Credits::carry_pull(std::uint32_t id) {
  Packet& packet = fabric_.packet(id);
  if (packet.hop == 0) {
    fabric_.release(id);
    if (!fabric_.is_gone(packet.flow)) {
      take(packet.flow);
    }
    return;
  }
  const Routes& routes = fabric_.routes();
  const std::int32_t over = routes.at(packet.route + --packet.hop);
  const Time passes = routes.serialisation(rules_.options().header, over) +
                      routes.link(over).latency +
                      (packet.hop > 0 ? rules_.options().switch_delay : Time(0));
  fabric_.push_in(fabric_.charge(routes.reverse(over)) + passes, Event::carried, id);
}

void Credits::learn(std::uint32_t f, std::uint32_t number, bool trimmed) {
  Stream& stream = fabric_.stream(f);
  const std::uint32_t window = rules_.window(stream.line);
  // Sent when all before it had been: what it says is wanted ends a window later.
  const std::uint32_t told = std::min(stream.count, number + 1 + window);
  stream.told = std::max(stream.told, std::min(stream.count, window));
  if (told > stream.told) {
    stream.wanted += std::int64_t{told - stream.told} * rules_.wire();
    stream.told = told;
  }
  stream.wanted += stream.unreported;
  stream.unreported = 0;
  if (trimmed) {
    stream.wanted += rules_.wire();
    stream.urgent = true;
  }
  want(f);
}

void Credits::ask(std::uint32_t f) {
  Stream& stream = fabric_.stream(f);
  if (stream.received == stream.count) {
    stream.wanted = 0;
  } else {
    stream.wanted += rules_.wire();
    want(f);
  }
}

void Credits::want(std::uint32_t f) {
  Stream& stream = fabric_.stream(f);
  Receiver& receiver = receivers_[static_cast<std::size_t>(stream.target)];
  if (stream.wanted > 0 && !stream.waiting) {
    stream.waiting = true;
    (stream.urgent ? receiver.urgent : receiver.flows).push_back(f);
  }
  if (!receiver.ticking && !(receiver.flows.empty() && receiver.urgent.empty())) {
    receiver.ticking = true;
    fabric_.queue().push(std::max(fabric_.now(), receiver.next), Event::tick,
                         static_cast<std::uint32_t>(stream.target));
  }
}

void Credits::pull(std::uint32_t host) {
  Receiver& receiver = receivers_[host];
  std::deque<std::uint32_t>& list = receiver.urgent.empty() ? receiver.flows : receiver.urgent;
  // All has come meanwhile of some.
  while (!list.empty() && fabric_.stream(list.front()).wanted <= 0) {
    fabric_.stream(list.front()).waiting = false;
    list.pop_front();
  }
  if (list.empty()) {
    receiver.ticking = false;
    return;
  }
  const std::uint32_t f = list.front();
  list.pop_front();
  Stream& stream = fabric_.stream(f);
  const bool one = rules_.is(network::Protocol::ndp);
  stream.wanted -= one ? rules_.wire() : kPull.value();
  stream.urgent = false;
  stream.waiting = stream.wanted > 0;
  if (stream.waiting) {
    receiver.flows.push_back(f);
  }
  if (one) {
    send_pull(f);
  } else {
    fabric_.control(f, Event::pulled, 0);
  }
  const Bytes wire = rules_.options().wire;
  const Time interval =
      one ? wire / stream.line / kPacerShare : (wire + kFraming) / stream.line * kPacerShare;
  receiver.next = fabric_.now() + interval;
  fabric_.queue().push(receiver.next, Event::tick, host);
}

void Credits::forget(std::uint32_t f) {
  const Stream& stream = fabric_.stream(f);
  if (stream.waiting) {
    Receiver& receiver = receivers_[static_cast<std::size_t>(stream.target)];
    std::erase(receiver.flows, f);
    std::erase(receiver.urgent, f);
  }
}

}  // namespace orrery::packets
