// SPDX-License-Identifier: Apache-2.0
/// Parts of the network that share nothing, and their steady phases (packet.h).
#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>

#include "machine/network/packet_network.h"

namespace orrery::network::packets {
namespace {

constexpr std::uint64_t kTellEvery = 1U << 18U;  ///< events, between two calls of progress
constexpr std::uint32_t kLeastPackets = 32;      ///< of every flow in a window
constexpr int kLeastWindows = 3;                 ///< alike before a skip
constexpr int kAhead = 4;                        ///< a skip is so many times what has been steady
constexpr int kTrips = 4;  ///< one way: of the least window and of a flow's end

std::uint32_t root_of(std::vector<std::uint32_t>& parents, std::uint32_t of) {
  while (parents[of] != of) {
    of = parents[of] = parents[parents[of]];
  }
  return of;
}

}  // namespace

void PacketNetwork::join_ports(std::vector<std::uint32_t>& parents, const Stream& stream,
                               std::uint32_t anchor) const {
  const auto join = [&](std::int32_t link) {
    if (link >= 0) {
      parents[root_of(parents, static_cast<std::uint32_t>(link))] = root_of(parents, anchor);
    }
  };
  for (std::size_t path = 0; path < stream.routes.size(); ++path) {
    for (std::uint32_t h = 0; h < stream.hops[path]; ++h) {
      join(routes_[stream.routes[path] + h]);
      join(reverse(routes_[stream.routes[path] + h]));
    }
  }
  for (std::uint32_t h = 0; h < stream.back_hops; ++h) {
    join(routes_[stream.back + h]);
  }
}

std::vector<std::vector<std::uint32_t>> PacketNetwork::parts() const {
  const std::size_t links = graph_.links.size();
  std::vector<std::uint32_t> parents(links + static_cast<std::size_t>(graph_.hosts));
  std::iota(parents.begin(), parents.end(), 0U);
  std::vector<std::uint32_t> anchors;
  for (std::uint32_t f = 0; f < flows_.size(); ++f) {
    // The receiver's credits are of all its flows.
    anchors.push_back(static_cast<std::uint32_t>(links) +
                      static_cast<std::uint32_t>(flows_[f].target));
    join_ports(parents, streams_[f], anchors.back());
  }
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_root;
  for (std::uint32_t f = 0; f < flows_.size(); ++f) {
    by_root[root_of(parents, anchors[f])].push_back(f);
  }
  std::vector<std::vector<std::uint32_t>> parts;
  for (auto& [root, flows] : by_root) {
    std::ranges::stable_sort(flows, {}, [this](std::uint32_t f) { return flows_[f].start; });
    parts.push_back(std::move(flows));
  }
  return parts;
}

void PacketNetwork::run_part(const std::vector<std::uint32_t>& part) {
  queue_ = engine::CalendarQueue(slot_width(graph_));
  part_ = part;
  begun_ = 0;
  skipped_ = Time(0);
  random_ = 0;
  steady_ = {};
  push_start();
  while (!queue_.empty()) {
    handle(queue_.pop());
    if ((++run_.events & (kTellEvery - 1)) == 0 && progress_) {
      const double carried = std::accumulate(run_.load.begin(), run_.load.end(), 0.0);
      progress_(std::min(1.0, carried / bytes_), run_.events);
    }
  }
  assert(begun_ == part_.size() && "every flow of a part begins");
}

void PacketNetwork::push_start() {
  if (begun_ < part_.size()) {
    queue_.push(flows_[part_[begun_]].start - skipped_, Event::start, 0, ++start_turn_);
  }
}

void PacketNetwork::begin_all() {
  for (; begun_ < part_.size() && flows_[part_[begun_]].start == now(); ++begun_) {
    const std::uint32_t f = part_[begun_];
    steady_.flows.push_back(f);
    begin(f);
  }
  push_start();
  watch_anew();
}

void PacketNetwork::end(std::uint32_t f) {
  if (by_message_) {
    forget(f);
    return;
  }
  run_.finish[f] = now();
  ++ended_;
  if (options_.steady > 0) {
    std::erase(steady_.flows, f);
    watch_anew();
  }
}

void PacketNetwork::watch_anew() {
  if (options_.steady <= 0 || steady_.flows.empty()) {
    ++steady_.turn;
    return;
  }
  steady_.window = Time(0);
  for (const std::uint32_t f : steady_.flows) {
    steady_.window = std::max(steady_.window, streams_[f].reverse * kTrips);
  }
  mark(0);
  queue_.push(queue_.now() + steady_.window, Event::watch, 0, ++steady_.turn);
}

void PacketNetwork::mark(int windows) {
  steady_.windows = windows;
  if (windows == 0) {
    steady_.since = now();
  }
  steady_.marks.resize(steady_.flows.size());
  for (std::size_t i = 0; i < steady_.flows.size(); ++i) {
    const Stream& stream = streams_[steady_.flows[i]];
    Mark& mark = steady_.marks[i];
    mark.received = stream.received;
    mark.heard = stream.heard;
    if (windows == 0) {
      mark.sum = 0;
      mark.since = stream.received;
      mark.in_flight = in_flight(steady_.flows[i]);
    }
  }
}

void PacketNetwork::watch() {
  assert(!queue_.empty() && "a flow that is under way has packets or timers under way");
  const auto again = [this] {
    if (!queue_.empty()) {
      queue_.push(queue_.now() + steady_.window, Event::watch, 0, steady_.turn);
    }
  };
  bool alike = true;
  for (std::size_t i = 0; i < steady_.flows.size(); ++i) {
    const Stream& stream = streams_[steady_.flows[i]];
    const Mark& mark = steady_.marks[i];
    if (stream.received < mark.received + kLeastPackets) {
      return again();
    }
  }
  for (std::size_t i = 0; i < steady_.flows.size(); ++i) {
    const Stream& stream = streams_[steady_.flows[i]];
    Mark& mark = steady_.marks[i];
    const double rate = static_cast<double>(stream.received - mark.received) /
                        to_seconds(stream.heard - mark.heard);
    if (steady_.windows == 0) {
      mark.first = rate;
    }
    mark.sum += rate;
    const auto grown = static_cast<double>(std::abs(in_flight(steady_.flows[i]) - mark.in_flight));
    alike = alike && std::abs(rate / mark.first - 1) <= options_.steady &&
            grown <= options_.steady * (stream.received - mark.since);
  }
  if (!alike) {
    steady_.window = steady_.window * 2;
    mark(0);
    return again();
  }
  mark(steady_.windows + 1);
  if (steady_.windows >= kLeastWindows) {
    skip();
  }
  again();
}

std::int64_t PacketNetwork::to_skip(std::uint32_t f, double rate) const {
  const Stream& stream = streams_[f];
  std::int64_t left = std::int64_t{stream.count} - stream.received - in_flight(f);
  if (is(Protocol::eqds)) {
    left = std::min(left, stream.wanted / options_.wire.value() + stream.count - stream.told);
  }
  return left - kLeastPackets -
         static_cast<std::int64_t>(rate * to_seconds(stream.reverse * kTrips));
}

void PacketNetwork::skip() {
  Time by = (now() - steady_.since) * kAhead;
  if (begun_ < part_.size()) {
    by = std::min(by, flows_[part_[begun_]].start - now());
  }
  for (std::size_t i = 0; i < steady_.flows.size(); ++i) {
    const double rate = steady_.marks[i].sum / steady_.windows;
    const std::int64_t most = to_skip(steady_.flows[i], rate);
    by = std::min(by, from_seconds(static_cast<double>(std::max<std::int64_t>(0, most)) / rate));
  }
  if (by < steady_.window) {
    return;
  }
  for (std::size_t i = 0; i < steady_.flows.size(); ++i) {
    Mark& mark = steady_.marks[i];
    const double rate = mark.sum / steady_.windows;
    take_out(steady_.flows[i], std::llround(rate * to_seconds(by)));
    mark.sum = rate * (kLeastWindows - 1);
  }
  skipped_ += by;
  steady_.windows = kLeastWindows - 1;  // one more shows that it has stayed so
  push_start();
}

/// As if the flow had so many packets less, which have passed meanwhile.
void PacketNetwork::take_out(std::uint32_t f, std::int64_t packets) {
  Stream& stream = streams_[f];
  const auto some = static_cast<std::uint32_t>(packets);
  stream.count -= some;
  if (is(Protocol::roce)) {
    stream.unsolicited -= some;
  } else if (is(Protocol::eqds) && stream.told > stream.count) {
    stream.wanted -= std::int64_t{stream.told - stream.count} * options_.wire.value();
    stream.told = stream.count;
  }
  run_.packets += static_cast<std::uint64_t>(packets);
  run_.skipped += static_cast<std::uint64_t>(packets);
  const double bytes = static_cast<double>(packets * options_.wire.value()) /
                       static_cast<double>(stream.routes.size());
  for (std::size_t path = 0; path < stream.routes.size(); ++path) {
    for (std::uint32_t h = 0; h < stream.hops[path]; ++h) {
      run_.load[static_cast<std::size_t>(routes_[stream.routes[path] + h])] += bytes;
    }
  }
}

}  // namespace orrery::network::packets
