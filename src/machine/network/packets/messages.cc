// SPDX-License-Identifier: Apache-2.0
/// Messages that come one by one (packet_links.h).
#include <utility>

#include "machine/network/packets/packet_network.h"

namespace orrery::packets {
namespace {

/// Longer than any timer waits.
constexpr Time kStillForEver = 100'000'000_us;
/// Messages that are gone before their places are given back.
constexpr std::size_t kGoneTogether = 256;

}  // namespace

void PacketNetwork::forget_gone() {
  ByFlow<Stream>& streams = fabric_.streams();
  std::size_t first = streams.first();
  while (first < streams.end() && streams[first].ended) {
    ++first;
  }
  const std::size_t gone = first - streams.first();
  if (gone < kGoneTogether || 2 * gone < streams.end() - streams.first()) {
    return;
  }
  streams.forget_before(first);
  if (rules().is_paced()) {
    paced_.forget_before(first);
  }
  if (rules().is(network::Protocol::swift)) {
    delayed_.forget_before(first);
  }
}

std::uint32_t PacketNetwork::send(Time when, Bytes bytes, std::int32_t target,
                                  const Course& course) {
  by_message_ = true;
  forget_gone();
  const auto f = static_cast<std::uint32_t>(fabric_.streams().end());
  fabric_.streams().add();
  if (rules().is_paced()) {
    paced_.add();
  }
  if (rules().is(network::Protocol::swift)) {
    delayed_.add();
  }
  Stream& stream = fabric_.stream(f);
  stream.bytes = bytes;
  stream.target = target;
  stream.routes = course.routes;
  stream.hops = course.hops;
  stream.back = course.back;
  stream.back_hops = course.back_hops;
  prepare(f);
  fabric_.queue().push(when, Event::started, f);
  return f;
}

bool PacketNetwork::concerns_flow(const engine::CalendarQueue::Event& event) {
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
      return true;
    default:
      return false;
  }
}

std::optional<std::uint32_t> PacketNetwork::advance(Time until) {
  engine::CalendarQueue& queue = fabric_.queue();
  whole_.reset();
  while (!whole_ && !stuck_ && !queue.empty() && queue.next_time() < until) {
    const engine::CalendarQueue::Event event = queue.pop();
    ++events_;
    if (concerns_flow(event) && fabric_.is_gone(event.subject)) {
      continue;
    }
    handle(event);
    stuck_ = queue.now() - moved_ > kStillForEver;
  }
  return std::exchange(whole_, std::nullopt);
}

void PacketNetwork::came_whole(std::uint32_t f) {
  if (Stream& stream = fabric_.stream(f);
      by_message_ && !stream.whole && stream.received == stream.count) {
    stream.whole = true;
    whole_ = f;
  }
}

/// Takes the flow out of all lists; events that are still to come find it gone.
void PacketNetwork::forget(std::uint32_t f) {
  if (const Stream& stream = fabric_.stream(f); stream.listed) {
    std::erase(fabric_.port(stream.nic).flows, f);
  }
  credits_.forget(f);
  if (rules().is_paced()) {
    paced_.forget(f);
  }
  fabric_.stream(f) = {};
  fabric_.stream(f).ended = true;
}

}  // namespace orrery::packets
