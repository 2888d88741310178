// SPDX-License-Identifier: Apache-2.0
#include "machine/network/packets/steady.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace orrery::packets {
namespace {

constexpr std::uint32_t kLeastPackets = 32;  ///< of every flow in a window
constexpr int kLeastWindows = 3;             ///< alike before a skip
constexpr int kAhead = 4;                    ///< a skip is so many times what has been steady
constexpr int kTrips = 4;                    ///< one way: of the least window and of a flow's end

}  // namespace

void SteadyPhases::restart() {
  skipped_ = Time(0);
  flows_.clear();
  marks_.clear();
  window_ = Time(0);
  since_ = Time(0);
  windows_ = 0;
  turn_ = 0;
}

void SteadyPhases::remove(std::uint32_t f) {
  if (is_on()) {
    std::erase(flows_, f);
    watch_anew();
  }
}

void SteadyPhases::watch_anew() {
  if (!is_on() || flows_.empty()) {
    ++turn_;
    return;
  }
  window_ = Time(0);
  for (const std::uint32_t f : flows_) {
    window_ = std::max(window_, fabric_.stream(f).reverse * kTrips);
  }
  mark(0);
  fabric_.push_in(window_, Event::watch, 0, ++turn_);
}

void SteadyPhases::watch() {
  if (!fabric_.queue().empty()) {
    fabric_.push_in(window_, Event::watch, 0, turn_);
  }
}

void SteadyPhases::mark(int windows) {
  windows_ = windows;
  if (windows == 0) {
    since_ = now();
  }
  marks_.resize(flows_.size());
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const Stream& stream = fabric_.stream(flows_[i]);
    Mark& mark = marks_[i];
    mark.received = stream.received;
    mark.heard = stream.heard;
    if (windows == 0) {
      mark.sum = 0;
      mark.since = stream.received;
      mark.in_flight = in_flight(flows_[i]);
    }
  }
}

std::int64_t SteadyPhases::in_flight(std::uint32_t f) const {
  const Stream& stream = fabric_.stream(f);
  const std::uint32_t sent = fabric_.rules().is_paced() ? paced_.granted(f) : stream.fresh;
  return std::int64_t{sent} - stream.received;
}

bool SteadyPhases::is_full() const {
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    if (fabric_.stream(flows_[i]).received < marks_[i].received + kLeastPackets) {
      return false;
    }
  }
  return true;
}

bool SteadyPhases::is_alike() {
  const double steady = fabric_.rules().options().steady;
  bool alike = true;
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const Stream& stream = fabric_.stream(flows_[i]);
    Mark& mark = marks_[i];
    const double rate = static_cast<double>(stream.received - mark.received) /
                        to_seconds(stream.heard - mark.heard);
    if (windows_ == 0) {
      mark.first = rate;
    }
    mark.sum += rate;
    const auto grown = static_cast<double>(std::abs(in_flight(flows_[i]) - mark.in_flight));
    alike = alike && std::abs(rate / mark.first - 1) <= steady &&
            grown <= steady * (stream.received - mark.since);
  }
  return alike;
}

bool SteadyPhases::end_window(Time start) {
  assert(!fabric_.queue().empty() && "a flow that is under way has packets or timers under way");
  if (!is_full()) {
    return false;
  }
  if (!is_alike()) {
    window_ = window_ * 2;
    mark(0);
    return false;
  }
  mark(windows_ + 1);
  return windows_ >= kLeastWindows && skip(start);
}

std::int64_t SteadyPhases::to_skip(std::uint32_t f, double rate) const {
  const Stream& stream = fabric_.stream(f);
  std::int64_t left = std::int64_t{stream.count} - stream.received - in_flight(f);
  if (fabric_.rules().is(network::Protocol::eqds)) {
    left = std::min(left, stream.wanted / fabric_.rules().wire() + stream.count - stream.told);
  }
  return left - kLeastPackets -
         static_cast<std::int64_t>(rate * to_seconds(stream.reverse * kTrips));
}

bool SteadyPhases::skip(Time start) {
  Time by = std::min((now() - since_) * kAhead, start - now());
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const double rate = marks_[i].sum / windows_;
    const std::int64_t most = to_skip(flows_[i], rate);
    by = std::min(by, from_seconds(static_cast<double>(std::max<std::int64_t>(0, most)) / rate));
  }
  if (by < window_) {
    return false;
  }
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    Mark& mark = marks_[i];
    const double rate = mark.sum / windows_;
    take_out(flows_[i], std::llround(rate * to_seconds(by)));
    mark.sum = rate * (kLeastWindows - 1);
  }
  skipped_ += by;
  windows_ = kLeastWindows - 1;  // one more shows that it has stayed so
  return true;
}

/// Changes the flow as if it had so many packets less, which have passed meanwhile.
void SteadyPhases::take_out(std::uint32_t f, std::int64_t packets) {
  const Rules& rules = fabric_.rules();
  Stream& stream = fabric_.stream(f);
  const auto some = static_cast<std::uint32_t>(packets);
  stream.count -= some;
  if (rules.is(network::Protocol::roce)) {
    stream.unsolicited -= some;
  } else if (rules.is(network::Protocol::eqds) && stream.told > stream.count) {
    stream.wanted -= std::int64_t{stream.told - stream.count} * rules.wire();
    stream.told = stream.count;
  }
  PacketRun& run = fabric_.counted();
  run.packets += static_cast<std::uint64_t>(packets);
  run.skipped += static_cast<std::uint64_t>(packets);
  const double bytes =
      static_cast<double>(packets * rules.wire()) / static_cast<double>(stream.routes.size());
  for (std::size_t path = 0; path < stream.routes.size(); ++path) {
    for (std::uint32_t h = 0; h < stream.hops[path]; ++h) {
      run.load[static_cast<std::size_t>(fabric_.routes().at(stream.routes[path] + h))] += bytes;
    }
  }
}

}  // namespace orrery::packets
