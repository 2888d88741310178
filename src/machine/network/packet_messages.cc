// SPDX-License-Identifier: Apache-2.0
/// Messages that come one by one (packet_links.h).
#include <utility>

#include "machine/network/packet_network.h"

namespace orrery::network::packets {
namespace {

/// Longer than any timer waits.
constexpr Time kStillForEver = 100'000'000_us;
/// Messages that are gone before their places are given back.
constexpr std::size_t kGoneTogether = 256;

}  // namespace

void PacketNetwork::add_link(std::int32_t number, Bandwidth rate) {
  if (rates_.empty() && rate != link(number).bandwidth) {
    for (const std::int32_t before : routes_) {
      rates_.push_back(before < 0 ? 0 : link(before).bandwidth.value());
    }
  }
  const bool differ = !rates_.empty() || rate != link(number).bandwidth;
  routes_.push_back(number);
  if (differ) {
    rates_.push_back(rate.value());
  }
}

std::uint32_t PacketNetwork::lay(std::span<const topology::Hop> hops) {
  const auto first = static_cast<std::uint32_t>(routes_.size());
  for (const topology::Hop& hop : hops) {
    add_link(static_cast<std::int32_t>(hop.link), hop.bandwidth);
  }
  return first;
}

std::uint32_t PacketNetwork::send(Time when, Bytes bytes, std::int32_t target,
                                  const Course& course) {
  by_message_ = true;
  std::size_t first = streams_.first();
  while (first < streams_.end() && streams_[first].ended) {
    ++first;
  }
  if (const std::size_t gone = first - streams_.first();
      gone >= kGoneTogether && 2 * gone >= streams_.end() - streams_.first()) {
    streams_.forget_before(first);
    if (is_paced()) {
      paces_.forget_before(first);
    }
    if (is(Protocol::swift)) {
      delays_.forget_before(first);
    }
  }
  const auto f = static_cast<std::uint32_t>(streams_.end());
  streams_.add();
  if (is_paced()) {
    paces_.add();
  }
  if (is(Protocol::swift)) {
    delays_.add();
  }
  Stream& stream = streams_[f];
  stream.bytes = bytes;
  stream.target = target;
  stream.routes = course.routes;
  stream.hops = course.hops;
  stream.back = course.back;
  stream.back_hops = course.back_hops;
  prepare(f);
  queue_.push(when, Event::started, f);
  return f;
}

bool PacketNetwork::concerns_gone(const engine::CalendarQueue::Event& event) const {
  switch (event.kind) {
    case Event::acknowledged:
    case Event::refused:
    case Event::header:
    case Event::pulled:
    case Event::paced:
    case Event::notified:
    case Event::decay:
    case Event::increase:
    case Event::scan:
      return is_gone(event.subject);
    default:
      return false;
  }
}

std::optional<std::uint32_t> PacketNetwork::advance(Time until) {
  whole_.reset();
  while (!whole_ && !stuck_ && !queue_.empty() && queue_.next_time() < until) {
    const engine::CalendarQueue::Event event = queue_.pop();
    ++run_.events;
    if (concerns_gone(event)) {
      continue;
    }
    handle(event);
    stuck_ = queue_.now() - moved_ > kStillForEver;
  }
  return std::exchange(whole_, std::nullopt);
}

void PacketNetwork::came_whole(std::uint32_t f) {
  if (Stream& stream = streams_[f];
      by_message_ && !stream.whole && stream.received == stream.count) {
    stream.whole = true;
    whole_ = f;
  }
}

/// Out of all lists; events that are still to come find it gone.
void PacketNetwork::forget(std::uint32_t f) {
  Stream& stream = streams_[f];
  if (stream.listed) {
    std::erase(ports_[stream.nic].flows, f);
  }
  if (stream.waiting) {
    Receiver& receiver = receivers_[static_cast<std::size_t>(stream.target)];
    std::erase(receiver.flows, f);
    std::erase(receiver.urgent, f);
  }
  if (is_paced()) {
    std::erase(paced_[stream.nic], f);
  }
  stream = {};
  stream.ended = true;
}

}  // namespace orrery::network::packets
