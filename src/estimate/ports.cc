// SPDX-License-Identifier: Apache-2.0
#include "estimate/ports.h"

#include <algorithm>

namespace orrery::estimate {
namespace {

using Load = Ports::Load;
using PortLoads = std::vector<PortLoad>;

void add(Load& load, const PortLoads& ports, double sign) {
  for (const PortLoad& port : ports) {
    if (port.port >= load.size()) {
      load.resize(port.port + std::size_t{1}, 0);
    }
    load[port.port] += sign * port.load;
  }
}

double slowdown(const Load& load, const PortLoads& ports) {
  double slowest = 1;
  for (const PortLoad& port : ports) {
    slowest = std::max(slowest, load[port.port]);
  }
  return slowest;
}

/// How many times as long `other` takes with `ports` wanted as well as without.
double lost_speed(Load& load, const PortLoads& ports, const PortLoads& other) {
  const double with = slowdown(load, other);
  add(load, ports, -1);
  const double without = slowdown(load, other);
  add(load, ports, 1);
  return with / without;
}

}  // namespace

Time Ports::receive(Time begin, const std::vector<PortPhase>& phases) {
  return start({.lane = kIncoming, .node = kNoNode, .message = true}, begin, phases);
}

Time Ports::start(const Sender& sender, Time begin, const std::vector<PortPhase>& phases) {
  moved_.clear();
  Time done = begin;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const Time end = done + share(sender.lane, done, phases[i]);
    flights_.push_back(
        {.lane = sender.lane,
         .node = sender.node,
         .begin = done,
         .end = end,
         .done = end + phases[i].latency,
         .message = sender.message,
         .last = i + 1 == phases.size(),
         .bits = bits_of(sender.lane == kIncoming ? phases[i].arrival : phases[i].ports),
         .phase = &phases[i]});
    done = flights_.back().done;
  }
  return done;
}

/// A bit for every port, of several where there are many: phases without a common bit share none.
std::uint64_t Ports::bits_of(const std::vector<PortLoad>& ports) {
  std::uint64_t bits = 0;
  for (const PortLoad& port : ports) {
    bits |= std::uint64_t{1} << (port.port % 64U);
  }
  return bits;
}

bool Ports::meets_others(int lane, Time begin, std::uint64_t bits) const {
  return std::any_of(flights_.begin(), flights_.end(), [&](const Flight& other) {
    return other.lane != lane && other.end > begin && (other.bits & bits) != 0;
  });
}

/// Port time of a phase from `begin` on; the others' share of it delays them. Between two moments
/// at which one begins or ends, all speeds hold; one that loses speed by a factor r ends r times as
/// far away.
Time Ports::share(int lane, Time begin, const PortPhase& phase) {
  const PortLoads& ports = lane == kIncoming ? phase.arrival : phase.ports;
  if (!meets_others(lane, begin, bits_of(ports))) {
    double slower = 1;
    for (const PortLoad& port : ports) {
      slower = std::max(slower, port.load);
    }
    return phase.serialisation * slower;
  }
  delays_.assign(flights_.size(), Time(0));
  Time now = begin;
  auto left = static_cast<double>(phase.serialisation.value());
  for (bool over = false; !over;) {
    find_load(now, lane, ports);
    Time until = Time::max();
    for (std::size_t i = 0; i < flights_.size(); ++i) {
      const Flight& other = flights_[i];
      const Time end = other.end + delays_[i];
      if (other.lane != lane && end > now) {
        until = std::min(until, other.begin > now
                                    ? other.begin
                                    : now + (end - now) * lost_speed(load_, ports, other.ports()));
      }
    }
    const double slower = slowdown(load_, ports);
    const Time needed = Time::from_double(left * slower);
    over = until.is_overflow() || now + needed <= until;
    const Time part = over ? needed : until - now;
    for (std::size_t i = 0; i < flights_.size(); ++i) {
      const Flight& other = flights_[i];
      if (other.lane != lane && other.begin <= now && other.end + delays_[i] > now) {
        delays_[i] += part * (1 - 1 / lost_speed(load_, ports, other.ports()));
      }
    }
    left = std::max(0.0, left - static_cast<double>(part.value()) / slower);
    now += part;
  }
  for (std::size_t i = 0; i < delays_.size(); ++i) {
    if (delays_[i] > Time(0)) {
      delay(i, delays_[i]);
    }
  }
  return now - begin;
}

/// What every port is wanted for, with a new phase of `lane`.
void Ports::find_load(Time now, int lane, const PortLoads& ports) {
  std::fill(load_.begin(), load_.end(), 0);
  add(load_, ports, 1);
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    const Flight& other = flights_[i];
    if (other.lane != lane && other.begin <= now && other.end + delays_[i] > now) {
      add(load_, other.ports(), 1);
    }
  }
}

void Ports::delay(std::size_t flight, Time by) {
  Flight& late = flights_[flight];
  late.end += by;
  late.done += by;
  Time free = late.done;
  if (late.last) {
    moved_.push_back({late.lane, late.node, late.done});
  }
  for (std::size_t i = flight + 1; i < flights_.size(); ++i) {
    Flight& next = flights_[i];
    if (next.lane != late.lane || next.begin >= free) {
      continue;
    }
    const Time shift = free - next.begin;
    next.begin += shift;
    next.end += shift;
    next.done += shift;
    free = next.done;
    if (next.last) {
      moved_.push_back({next.lane, next.node, next.done});
    }
  }
}

bool Ports::busy_after(Time when) const {
  return std::any_of(flights_.begin(), flights_.end(),
                     [&](const Flight& flight) { return !flight.message && flight.end > when; });
}

void Ports::forget(Time before) {
  std::erase_if(flights_, [&](const Flight& flight) { return flight.done <= before; });
}

void Ports::settle(Time when) {
  forget(when);
  for (Flight& flight : flights_) {
    flight.node = kNoNode;
  }
}

void Ports::move(Time later) {
  for (Flight& flight : flights_) {
    flight.begin += later;
    flight.end += later;
    flight.done += later;
  }
}

}  // namespace orrery::estimate
