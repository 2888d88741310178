// SPDX-License-Identifier: Apache-2.0
#include "machine/network/packets/paced.h"

#include <algorithm>

namespace orrery::packets {
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

Paced::Paced(Fabric& fabric, std::size_t flows) : fabric_(fabric), rules_(fabric.rules()) {
  if (rules_.is_paced()) {
    paces_.resize(flows);
    by_port_.resize(fabric.routes().graph().links.size());
  }
}

void Paced::begin(std::uint32_t f) {
  Pace& pace = paces_[f];
  const Stream& stream = fabric_.stream(f);
  pace.rate = stream.line.value();
  pace.target = pace.rate;
  pace.use = kTargetUse;
  pace.window = static_cast<std::int64_t>(pace.rate * to_seconds(kBaseRoundTrip));
  pace.spacing = rules_.options().wire / stream.line;
  pace.last = fabric_.now() - pace.spacing;
  by_port_[stream.nic].push_back(f);
  this->pace(f);
}

void Paced::pace(std::uint32_t f) {
  Stream& stream = fabric_.stream(f);
  Pace& pace = paces_[f];
  if (pace.granted == stream.count || fabric_.port(stream.nic).paused) {
    return;
  }
  if (fabric_.now() - pace.last >= pace.spacing) {
    pace.last = fabric_.now();
    if (!rules_.is(network::Protocol::hpcc) || pace.flight + rules_.payload() <= pace.window) {
      pace.flight += rules_.payload();
      ++pace.granted;
      stream.credit += rules_.wire();
      fabric_.offer(f);
      pace.sent += pace.cut ? rules_.wire() : 0;
    }
  }
  if (pace.sent >= kCountedBytes) {
    pace.sent -= kCountedBytes;
    raise(f, false);
  }
  fabric_.queue().push(pace.last + pace.spacing, Event::paced, f, ++pace.turn);
}

void Paced::resume(std::uint32_t port) {
  for (const std::uint32_t f : by_port_[port]) {
    pace(f);
  }
}

void Paced::tick(std::uint32_t f, std::uint32_t generation) {
  if (paces_[f].turn == generation) {
    pace(f);
  }
}

/// Reports of packets in flight keep their places.
void Paced::make_room_for_reports(std::size_t hops) {
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

void Paced::report(std::uint32_t id, Port& port) {
  const Packet& packet = fabric_.packet(id);
  port.passed += packet.wire;
  if (packet.hop == 0 || packet.ack) {
    return;
  }
  reports_.resize(std::max(reports_.size(), (id + 1) * report_stride_));
  const std::int64_t just = port.came == fabric_.now() ? port.just_came : 0;
  reports_[id * report_stride_ + packet.hop - 1] = {port.queued + packet.wire - just,
                                                    port.passed - packet.wire, fabric_.now()};
}

double Paced::use_of(const Pace& pace, const Stream& stream, const Report* now) const {
  const Routes& routes = fabric_.routes();
  double use = 0;
  Time since{0};
  for (std::size_t h = 0; h < pace.first.size(); ++h) {
    const Report& then = pace.first[h];
    const Time elapsed = now[h].at - then.at;
    if (elapsed <= Time(0)) {
      continue;
    }
    const double rate = routes.link(routes.at(stream.routes.front() + h + 1)).bandwidth.value();
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

bool Paced::adapt(std::uint32_t id) {
  const std::uint32_t f = fabric_.packet(id).flow;
  Stream& stream = fabric_.stream(f);
  Pace& pace = paces_[f];
  ++stream.acknowledged;
  pace.flight -= rules_.payload();
  const std::size_t switches = stream.hops.front() - 1U;
  const Report* const now = switches == 0 ? nullptr : &reports_[id * report_stride_];
  if (pace.first.empty()) {
    pace.first.assign(now, now + switches);
  } else {
    pace.use = use_of(pace, stream, now);
  }
  count_window(f);
  return stream.acknowledged == stream.count;
}

void Paced::count_window(std::uint32_t f) {
  const Stream& stream = fabric_.stream(f);
  Pace& pace = paces_[f];
  const bool counts = stream.acknowledged * rules_.payload() > pace.updated;
  if (pace.use >= kTargetUse || pace.stage >= kMostStages) {
    pace.window =
        static_cast<std::int64_t>(static_cast<double>(pace.window) / (pace.use / kTargetUse)) +
        rules_.payload();
    pace.stage = counts ? 0 : pace.stage;
  } else {
    pace.window += rules_.payload();
    pace.stage += counts ? 1 : 0;
  }
  if (counts) {
    pace.updated = pace.granted * rules_.payload();
  }
  const double share = static_cast<double>(rules_.wire()) / static_cast<double>(pace.window);
  pace.spacing = std::max(Time(1), kBaseRoundTrip * share);
}

void Paced::mark(Packet& packet, const Port& port, Bandwidth rate) {
  if (packet.hop == 0 || packet.ack) {
    return;
  }
  const double scale = rate.value() / kCalibratedRate;
  const double queued = static_cast<double>(port.queued) / scale;
  if (queued <= kLeastQueue) {
    return;
  }
  const double chance =
      queued >= kMostQueue ? 1 : kMostChance * (queued - kLeastQueue) / (kMostQueue - kLeastQueue);
  if (fabric_.chance() < chance && !packet.marked) {
    packet.marked = true;
    ++fabric_.counted().marks;
  }
}

void Paced::notify(std::uint32_t f) {
  Pace& pace = paces_[f];
  if (fabric_.now() - pace.told >= kTellsEvery) {
    pace.told = fabric_.now();
    fabric_.control(f, Event::notified, 0);
  }
}

void Paced::set_rate(std::uint32_t f, double rate) {
  Pace& pace = paces_[f];
  pace.rate = std::clamp(rate, kLeastRate, fabric_.stream(f).line.value());
  pace.spacing = rules_.options().wire / Bandwidth(pace.rate);
}

void Paced::cut(std::uint32_t f) {
  Pace& pace = paces_[f];
  pace.target = pace.rate;
  set_rate(f, pace.rate * (1 - pace.alpha / 2));
  pace.alpha = (1 - kGain) * pace.alpha + kGain;
  pace.timed = 0;
  pace.counted = 0;
  pace.sent = 0;
  pace.cut = true;
  ++pace.cuts;
  fabric_.push_in(kTimer, Event::decay, f, pace.cuts);
  fabric_.push_in(kTimer, Event::increase, f, pace.cuts);
}

void Paced::recover(std::uint32_t f, std::uint32_t generation, bool increases) {
  Pace& pace = paces_[f];
  if (pace.cuts != generation || pace.granted == fabric_.stream(f).count) {
    return;
  }
  if (increases) {
    raise(f, true);
  } else {
    pace.alpha *= 1 - kGain;
  }
  fabric_.push_in(kTimer, increases ? Event::increase : Event::decay, f, pace.cuts);
}

void Paced::raise(std::uint32_t f, bool by_time) {
  Pace& pace = paces_[f];
  ++(by_time ? pace.timed : pace.counted);
  if (std::min(pace.timed, pace.counted) > kFastRecovery) {
    pace.target += kLargeStep;
  } else if (std::max(pace.timed, pace.counted) > kFastRecovery) {
    pace.target += kStep;
  }
  pace.target = std::min(pace.target, fabric_.stream(f).line.value());
  set_rate(f, (pace.rate + pace.target) / 2);
}

}  // namespace orrery::packets
