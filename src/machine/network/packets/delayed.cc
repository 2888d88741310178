// SPDX-License-Identifier: Apache-2.0
#include "machine/network/packets/delayed.h"

#include <algorithm>
#include <cmath>

namespace orrery::packets {
namespace {

// Swift, Kumar et al., SIGCOMM 2020: algorithms 1 and 2, equations of section 3.1, with the
// constants of csg-htsim's runs.
constexpr Time kBaseTarget = 20_us;
constexpr Time kScalingRange = kBaseTarget * 5;
// 1 / sqrt(W) of windows of 0.1 and 100 packets, between which the target changes.
constexpr double kSmallest = 3.1622776601683795;
constexpr double kLargest = 0.1;
constexpr double kDecrease = 0.8;
constexpr double kMostDecrease = 0.5;
constexpr std::int64_t kLeastWindow = 10;     // bytes
constexpr std::int64_t kMostWindow = 1000;    // packets
constexpr std::uint32_t kMostInNic = 2;       // packets of a flow before another is handed over
constexpr std::uint32_t kFirstLoss = 3;       // acknowledgements of nothing new
constexpr std::uint32_t kExpiredToLeast = 5;  // time-outs
constexpr Time kLeastPatience = 100_us;
constexpr Time kFirstPatience = 1_ms;
constexpr Time kScan = 10_ms;  // when time-outs are looked at

}  // namespace

Delayed::Delayed(Fabric& fabric, std::size_t flows) : fabric_(fabric), rules_(fabric.rules()) {
  if (rules_.is(network::Protocol::swift)) {
    delays_.resize(flows);
  }
}

void Delayed::begin(std::uint32_t f) {
  Delay& delay = delays_[f];
  delay.window = std::int64_t{rules_.window(fabric_.stream(f).line)} * rules_.payload();
  delay.patience = kFirstPatience;
  delay.last_sent = fabric_.now();
  fabric_.queue().push((fabric_.now() / kScan + 1) * kScan, Event::scan, f);
  fill_window(f);
}

std::uint32_t Delayed::receive(std::uint32_t f, std::uint32_t number) {
  Stream& stream = fabric_.stream(f);
  std::vector<bool>& ahead = delays_[f].ahead;
  if (number > stream.received) {
    ahead.resize(stream.count + 1);
    ahead[number] = true;
  } else if (number == stream.received) {
    ++stream.received;
    while (stream.received < ahead.size() && ahead[stream.received]) {
      ++stream.received;
    }
  }
  return stream.received;
}

Time Delayed::target_of(const Delay& delay) const {
  const std::int64_t packets = delay.window / rules_.payload();
  if (packets == 0) {
    return kBaseTarget + kScalingRange;
  }
  const double share =
      (1 / std::sqrt(static_cast<double>(packets)) - kLargest) / (kSmallest - kLargest);
  return kBaseTarget + kScalingRange * std::clamp(share, 0.0, 1.0);
}

void Delayed::set_window(std::uint32_t f, std::uint32_t number, Time found) {
  Delay& delay = delays_[f];
  const bool may_cut = fabric_.now() - delay.last_cut >= delay.trip;
  if (delay.trip == Time(0)) {
    delay.trip = found;
    delay.deviation = found / 2;
  } else {
    const Time off = std::max(found, delay.trip) - std::min(found, delay.trip);
    delay.deviation = delay.deviation * 3 / 4 + off / 4;
    delay.trip = delay.trip * 7 / 8 + found / 8;
  }
  delay.patience = std::max(kLeastPatience, delay.trip + delay.deviation * 4);
  delay.expired = 0;
  delay.before = delay.window;
  const Time target = target_of(delay);
  const std::int64_t fresh =
      std::int64_t{number - std::min(number, delay.acknowledged)} * rules_.payload();
  if (found < target) {
    delay.window +=
        delay.window >= rules_.payload() ? rules_.payload() * fresh / delay.window : fresh;
  } else if (may_cut) {
    const double excess = to_seconds(found - target) / to_seconds(found);
    delay.window = static_cast<std::int64_t>(static_cast<double>(delay.window) *
                                             std::max(1 - kDecrease * excess, 1 - kMostDecrease));
  }
}

void Delayed::limit_window(Delay& delay) const {
  delay.window = std::clamp(delay.window, kLeastWindow, kMostWindow * rules_.payload());
  if (delay.window < delay.before) {
    delay.last_cut = fabric_.now();
  }
  delay.spacing =
      delay.window < rules_.payload() ? delay.trip * rules_.payload() / delay.window : Time(0);
}

bool Delayed::hear(std::uint32_t f, std::uint32_t number, Time sent) {
  Delay& delay = delays_[f];
  Stream& stream = fabric_.stream(f);
  if (number < delay.acknowledged || delay.acknowledged == stream.count) {
    return false;
  }
  set_window(f, number, fabric_.now() - sent);
  const bool again = number > delay.acknowledged ? advance(f, number) : repeat(f);
  if (delay.acknowledged == stream.count) {
    return true;
  }
  if (again) {
    ++fabric_.counted().resent;
    hand_over(f, delay.acknowledged);
  }
  limit_window(delay);
  fill_window(f);
  return false;
}

bool Delayed::advance(std::uint32_t f, std::uint32_t number) {
  Delay& delay = delays_[f];
  Stream& stream = fabric_.stream(f);
  const std::int64_t fresh = std::int64_t{number - delay.acknowledged} * rules_.payload();
  const bool may_cut = fabric_.now() - delay.last_cut >= delay.trip;
  delay.acknowledged = number;
  delay.repeated = 0;
  stream.fresh = std::max(stream.fresh, number);
  delay.expires = number == stream.fresh ? Time(0) : fabric_.now() + delay.patience;
  if (!delay.recovering) {
    return false;
  }
  if (number < delay.recover) {
    delay.inflate = std::max<std::int64_t>(0, delay.inflate - fresh) + rules_.payload();
    return true;
  }
  delay.recovering = false;
  delay.inflate = 0;
  if (may_cut) {
    delay.window =
        static_cast<std::int64_t>(static_cast<double>(delay.window) * (1 - kMostDecrease));
    delay.last_cut = fabric_.now();
  }
  return false;
}

bool Delayed::repeat(std::uint32_t f) {
  Delay& delay = delays_[f];
  if (delay.recovering) {
    delay.inflate = std::min(delay.inflate + rules_.payload(), delay.window);
    return false;
  }
  if (++delay.repeated != kFirstLoss || delay.acknowledged < delay.recover) {
    return false;
  }
  delay.recovering = true;
  delay.recover = fabric_.stream(f).fresh;
  return true;
}

void Delayed::fill_window(std::uint32_t f) {
  Delay& delay = delays_[f];
  Stream& stream = fabric_.stream(f);
  const std::int64_t room = delay.window + delay.inflate;
  if (room < rules_.payload()) {
    if (!delay.pacing) {
      space(f);
    }
    return;
  }
  while (stream.fresh < stream.count &&
         std::int64_t{stream.fresh + 1 - delay.acknowledged} * rules_.payload() <= room) {
    if (delay.pacing) {
      delay.pacing = false;
      ++delay.turn;
    }
    if (delay.in_nic > kMostInNic) {
      return;
    }
    hand_over(f, stream.fresh++);
  }
}

void Delayed::left(std::uint32_t f) {
  --delays_[f].in_nic;
  fill_window(f);
}

void Delayed::hand_over(std::uint32_t f, std::uint32_t number) {
  Delay& delay = delays_[f];
  Stream& stream = fabric_.stream(f);
  ++delay.in_nic;
  delay.last_sent = fabric_.now();
  if (delay.expires == Time(0)) {
    delay.expires = fabric_.now() + delay.patience;
  }
  stream.again.push_back(number);
  stream.credit += rules_.wire();
  fabric_.offer(f);
}

void Delayed::space(std::uint32_t f) {
  Delay& delay = delays_[f];
  delay.pacing = true;
  fabric_.queue().push(std::max(fabric_.now(), delay.last_sent + delay.spacing), Event::paced, f,
                       ++delay.turn);
}

void Delayed::tick(std::uint32_t f, std::uint32_t generation) {
  Delay& delay = delays_[f];
  if (delay.turn != generation) {
    return;
  }
  Stream& stream = fabric_.stream(f);
  delay.pacing = false;
  if (stream.fresh == stream.count) {
    return;
  }
  if (delay.in_nic <= kMostInNic) {
    hand_over(f, stream.fresh++);
  }
  delay.last_sent = fabric_.now();
  if (delay.spacing > Time(0)) {
    space(f);
  }
}

void Delayed::expire(std::uint32_t f) {
  Delay& delay = delays_[f];
  Stream& stream = fabric_.stream(f);
  if (delay.acknowledged == stream.count) {
    return;
  }
  fabric_.push_in(kScan, Event::scan, f);
  if (delay.expires == Time(0) || fabric_.now() <= delay.expires) {
    return;
  }
  delay.patience = delay.patience * 2;
  delay.expires = fabric_.now() + delay.patience;
  delay.recovering = false;
  delay.recover = stream.fresh;
  delay.repeated = 0;
  stream.fresh = delay.acknowledged + 1;
  if (++delay.expired >= kExpiredToLeast) {
    delay.window = kLeastWindow;
  } else if (fabric_.now() - delay.last_cut >= delay.trip) {
    delay.window =
        static_cast<std::int64_t>(static_cast<double>(delay.window) * (1 - kMostDecrease));
  }
  ++fabric_.counted().resent;
  hand_over(f, delay.acknowledged);
}

}  // namespace orrery::packets
