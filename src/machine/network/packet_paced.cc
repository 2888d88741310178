// SPDX-License-Identifier: Apache-2.0
/// Senders with clocks of their own: hpcc and dcqcn of packet.h.
#include "machine/network/packet_network.h"

namespace orrery::network::packets {
namespace {

// HPCC, Li et al., SIGCOMM 2019, with the constants of csg-htsim's runs.
constexpr Time kBaseRoundTrip = 12_us;
constexpr double kTargetUse = 0.95;
constexpr int kMostStages = 5;

// DCQCN, Zhu et al., SIGCOMM 2015: figures 6 and 7, parameters of section 5.
constexpr Time kTimer = 55_us;
constexpr Time kTellsEvery = 50_us;
constexpr double kGain = 1.0 / 256;
constexpr int kFastRecovery = 5;
constexpr std::int64_t kCountedBytes = 10'000'000;
constexpr double kStep = 5e6;        // 40 Mbit/s
constexpr double kLargeStep = 50e6;  // 400 Mbit/s
constexpr double kLeastRate = 12.5e6;
// Marking thresholds of 100 Gbit/s in common configurations of ns-3's RDMA model.
constexpr double kLeastQueue = 400e3;
constexpr double kMostQueue = 1600e3;
constexpr double kMostChance = 0.2;

}  // namespace

void PacketNetwork::begin_paced(std::uint32_t f) {
  Pace& pace = paces_[f];
  const Stream& stream = streams_[f];
  pace.rate = stream.line.value();
  pace.target = pace.rate;
  pace.use = kTargetUse;
  pace.window = static_cast<std::int64_t>(pace.rate * to_seconds(kBaseRoundTrip));
  pace.spacing = options_.wire / stream.line;
  pace.last = queue_.now() - pace.spacing;
  paced_[stream.nic].push_back(f);
  this->pace(f);
}

void PacketNetwork::pace(std::uint32_t f) {
  Stream& stream = streams_[f];
  Pace& pace = paces_[f];
  if (pace.granted == stream.count || ports_[stream.nic].paused) {
    return;
  }
  if (queue_.now() - pace.last >= pace.spacing) {
    pace.last = queue_.now();
    if (!is(Protocol::hpcc) || pace.flight + payload() <= pace.window) {
      pace.flight += payload();
      ++pace.granted;
      stream.credit += options_.wire.value();
      offer(f);
      pace.sent += pace.cut ? options_.wire.value() : 0;
    }
  }
  if (pace.sent >= kCountedBytes) {
    pace.sent -= kCountedBytes;
    raise(f, false);
  }
  queue_.push(pace.last + pace.spacing, Event::paced, f, ++pace.turn);
}

void PacketNetwork::resume(std::uint32_t number) {
  if (is_paced()) {
    for (const std::uint32_t f : paced_[number]) {
      pace(f);
    }
  }
}

/// Reports of packets in flight keep their places.
void PacketNetwork::make_room_for_reports(std::size_t hops) {
  if (hops <= report_stride_) {
    return;
  }
  std::vector<Report> wider(report_stride_ == 0 ? 0 : reports_.size() / report_stride_ * hops);
  for (std::size_t i = 0; i < reports_.size(); ++i) {
    wider[i / report_stride_ * hops + i % report_stride_] = reports_[i];
  }
  reports_ = std::move(wider);
  report_stride_ = hops;
}

/// Writes the port's report into the packet; what comes at the instant at which a packet leaves is
/// not yet in the queue.
void PacketNetwork::report(std::uint32_t id, Port& port) {
  const Packet& packet = packets_[id];
  port.passed += packet.wire;
  if (packet.hop == 0 || packet.ack) {
    return;
  }
  if (reports_.size() < packets_.size() * report_stride_) {
    reports_.resize(packets_.size() * report_stride_);
  }
  const std::int64_t just = port.came == queue_.now() ? port.just_came : 0;
  reports_[id * report_stride_ + packet.hop - 1] = {port.queued + packet.wire - just,
                                                    port.passed - packet.wire, queue_.now()};
}

double PacketNetwork::use_of(const Pace& pace, const Stream& stream, const Report* now) const {
  double use = 0;
  Time since{0};
  for (std::size_t h = 0; h < pace.first.size(); ++h) {
    const Report& then = pace.first[h];
    const Time elapsed = now[h].at - then.at;
    if (elapsed <= Time(0)) {
      continue;
    }
    const double rate = link(routes_[stream.routes.front() + h + 1]).bandwidth.value();
    const auto queued = static_cast<double>(std::min(now[h].queued, then.queued));
    const auto passed = static_cast<double>(now[h].passed - then.passed);
    const double here =
        queued / (rate * to_seconds(kBaseRoundTrip)) + passed / (rate * to_seconds(elapsed));
    if (here > use) {
      use = here;
      since = elapsed;
    }
  }
  return since >= kBaseRoundTrip ? use : pace.use;
}

void PacketNetwork::adapt(std::uint32_t id) {
  const std::uint32_t f = packets_[id].flow;
  Stream& stream = streams_[f];
  Pace& pace = paces_[f];
  ++stream.acknowledged;
  pace.flight -= payload();
  const std::size_t switches = stream.hops.front() - 1U;
  const Report* const now = switches == 0 ? nullptr : &reports_[id * report_stride_];
  if (pace.first.empty()) {
    pace.first.assign(now, now + switches);
  } else {
    pace.use = use_of(pace, stream, now);
  }
  count_window(f);
  if (stream.acknowledged == stream.count) {
    end(f);
  }
}

void PacketNetwork::count_window(std::uint32_t f) {
  const Stream& stream = streams_[f];
  Pace& pace = paces_[f];
  const bool counts = stream.acknowledged * payload() > pace.updated;
  if (pace.use >= kTargetUse || pace.stage >= kMostStages) {
    pace.window =
        static_cast<std::int64_t>(static_cast<double>(pace.window) / (pace.use / kTargetUse)) +
        payload();
    pace.stage = counts ? 0 : pace.stage;
  } else {
    pace.window += payload();
    pace.stage += counts ? 1 : 0;
  }
  if (counts) {
    pace.updated = pace.granted * payload();
  }
  const double share =
      static_cast<double>(options_.wire.value()) / static_cast<double>(pace.window);
  pace.spacing = std::max(Time(1), kBaseRoundTrip * share);
}

void PacketNetwork::mark(Packet& packet, const Port& port, std::int32_t over) {
  if (packet.hop == 0 || packet.ack) {
    return;
  }
  const double scale = link(over).bandwidth.value() / kCalibratedRate;
  const double queued = static_cast<double>(port.queued) / scale;
  if (queued <= kLeastQueue) {
    return;
  }
  const double chance =
      queued >= kMostQueue ? 1 : kMostChance * (queued - kLeastQueue) / (kMostQueue - kLeastQueue);
  random_ = topology::mixed(random_);
  if (static_cast<double>(random_ >> 11U) * 0x1p-53 < chance && !packet.marked) {
    packet.marked = true;
    ++run_.marks;
  }
}

void PacketNetwork::notify(std::uint32_t f) {
  Pace& pace = paces_[f];
  if (queue_.now() - pace.told >= kTellsEvery) {
    pace.told = queue_.now();
    control(f, Event::notified, 0);
  }
}

void PacketNetwork::set_rate(std::uint32_t f, double rate) {
  Pace& pace = paces_[f];
  pace.rate = std::clamp(rate, kLeastRate, streams_[f].line.value());
  pace.spacing = options_.wire / Bandwidth(pace.rate);
}

void PacketNetwork::cut(std::uint32_t f) {
  Pace& pace = paces_[f];
  pace.target = pace.rate;
  set_rate(f, pace.rate * (1 - pace.alpha / 2));
  pace.alpha = (1 - kGain) * pace.alpha + kGain;
  pace.timed = 0;
  pace.counted = 0;
  pace.sent = 0;
  pace.cut = true;
  ++pace.cuts;
  queue_.push(queue_.now() + kTimer, Event::decay, f, pace.cuts);
  queue_.push(queue_.now() + kTimer, Event::increase, f, pace.cuts);
}

void PacketNetwork::recover(std::uint32_t f, bool increases) {
  Pace& pace = paces_[f];
  if (pace.granted == streams_[f].count) {
    return;
  }
  if (increases) {
    raise(f, true);
  } else {
    pace.alpha *= 1 - kGain;
  }
  queue_.push(queue_.now() + kTimer, increases ? Event::increase : Event::decay, f, pace.cuts);
}

void PacketNetwork::raise(std::uint32_t f, bool by_time) {
  Pace& pace = paces_[f];
  ++(by_time ? pace.timed : pace.counted);
  if (std::min(pace.timed, pace.counted) > kFastRecovery) {
    pace.target += kLargeStep;
  } else if (std::max(pace.timed, pace.counted) > kFastRecovery) {
    pace.target += kStep;
  }
  pace.target = std::min(pace.target, streams_[f].line.value());
  set_rate(f, (pace.rate + pace.target) / 2);
}

}  // namespace orrery::network::packets
