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

Time Ports::receive(Time begin, const std::vector<PortPhase>& phases, std::size_t number) {
  return start({.lane = kIncoming, .node = number, .message = true}, begin, phases);
}

Time Ports::start(const Sender& sender, Time begin, const std::vector<PortPhase>& phases) {
  moved_.clear();
  moved_messages_.clear();
  const std::size_t number = lane_of(sender.lane);
  Lane& lane = lanes_[number];
  if (lane.empty()) {
    lane.bits = 0;
  }
  Time done = begin;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const std::uint64_t bits =
        bits_of(sender.lane == kIncoming ? phases[i].arrival : phases[i].ports);
    const Time end = done + share(number, done, phases[i], bits);
    lane.flights.push_back({.lane = sender.lane,
                            .node = sender.node,
                            .begin = done,
                            .end = end,
                            .done = end + phases[i].latency,
                            .message = sender.message,
                            .last = i + 1 == phases.size(),
                            .bits = bits,
                            .phase = &phases[i]});
    lane.bits |= bits;
    live_ |= bit_of(number);
    ++size_;
    done = lane.flights.back().done;
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

bool Ports::meets_others(std::size_t lane, Time begin, std::uint64_t bits) const {
  bool meets = false;
  each_other(lane, [&](std::size_t l) {
    const Lane& other = lanes_[l];
    if (meets || (other.bits & bits) == 0) {
      return;
    }
    for (std::size_t i = other.flights.size(); i-- > other.first && !meets;) {
      const Flight& flight = other.flights[i];
      meets = flight.end > begin && (flight.bits & bits) != 0;
      if (flight.end <= begin && l != kInbound) {
        break;  // those before ended earlier
      }
    }
  });
  return meets;
}

/// Port time of a phase from `begin` on; the others' share of it delays them. Between two moments
/// at which one begins or ends, all speeds hold; one that loses speed by a factor r ends r times as
/// far away.
Time Ports::share(std::size_t lane, Time begin, const PortPhase& phase, std::uint64_t bits) {
  const PortLoads& ports = lane == kInbound ? phase.arrival : phase.ports;
  if (!meets_others(lane, begin, bits)) {
    double slower = 1;
    for (const PortLoad& port : ports) {
      slower = std::max(slower, port.load);
    }
    return phase.serialisation * slower;
  }
  meet(lane, begin);
  Time now = begin;
  auto left = static_cast<double>(phase.serialisation.value());
  for (bool over = false; !over;) {
    Time until = meet_until(lane, now);
    find_load(now, ports);
    until = std::min(until, lose_speed(now, ports));
    const double slower = slowdown(load_, ports);
    const Time needed = Time::from_double(left * slower);
    over = until.is_overflow() || now + needed <= until;
    const Time part = over ? needed : until - now;
    for (Met& met : met_) {
      if (is_active(met, now)) {
        met.delay += part * (1 - 1 / met.lost_speed);
      }
    }
    left = std::max(0.0, left - static_cast<double>(part.value()) / slower);
    now += part;
  }
  for (const Met& met : met_) {
    if (met.delay > Time(0)) {
      delay(met);
    }
  }
  return now - begin;
}

/// Messages that come in are met at once, since they are in no order.
void Ports::meet(std::size_t lane, Time begin) {
  met_.clear();
  each_other(lane, [&](std::size_t l) {
    const std::vector<Flight>& flights = lanes_[l].flights;
    std::size_t next = lanes_[l].first;
    for (; next < flights.size(); ++next) {
      if (l == kInbound && flights[next].end > begin) {
        met_.push_back({.lane = l, .flight = next});
      } else if (l != kInbound && flights[next].end > begin) {
        break;
      }
    }
    next_[l] = next;
  });
}

/// Meets what has begun by now; returns when the next one begins.
Time Ports::meet_until(std::size_t lane, Time now) {
  Time until = Time::max();
  each_other(lane, [&](std::size_t l) {
    const std::vector<Flight>& flights = lanes_[l].flights;
    for (; next_[l] < flights.size() && flights[next_[l]].begin <= now; ++next_[l]) {
      met_.push_back({.lane = l, .flight = next_[l]});
    }
    if (next_[l] < flights.size()) {
      until = std::min(until, flights[next_[l]].begin);
    }
  });
  return until;
}

/// What every port is wanted for, with a new phase.
void Ports::find_load(Time now, const PortLoads& ports) {
  std::fill(load_.begin(), load_.end(), 0);
  add(load_, ports, 1);
  for (const Met& met : met_) {
    if (is_active(met, now)) {
      add(load_, flight_of(met).ports(), 1);
    }
  }
}

/// Of those that move beside it; returns when the first of them ends, or the next comes in.
Time Ports::lose_speed(Time now, const PortLoads& ports) {
  Time until = Time::max();
  for (Met& met : met_) {
    const Flight& other = flight_of(met);
    if (other.begin > now) {
      until = std::min(until, other.begin);
    } else if (is_active(met, now)) {
      met.lost_speed = estimate::lost_speed(load_, ports, other.ports());
      until = std::min(until, now + (other.end + met.delay - now) * met.lost_speed);
    }
  }
  return until;
}

/// Notes that a transfer that ends with this phase ends later.
void Ports::move(const Flight& flight) {
  if (flight.last) {
    moved_.push_back({flight.lane, flight.node, flight.done});
    if (flight.message) {
      moved_messages_.push_back(moved_.back());
    }
  }
}

void Ports::delay(const Met& met) {
  std::vector<Flight>& flights = lanes_[met.lane].flights;
  Flight& late = flights[met.flight];
  late.end += met.delay;
  late.done += met.delay;
  Time free = late.done;
  move(late);
  for (std::size_t i = met.flight + 1; i < flights.size(); ++i) {
    Flight& next = flights[i];
    if (next.begin >= free || (met.lane == kInbound && flights[i - 1].last)) {
      break;  // so do those after it, or they are other messages
    }
    const Time shift = free - next.begin;
    next.begin += shift;
    next.end += shift;
    next.done += shift;
    free = next.done;
    move(next);
  }
}

std::vector<Ports::Flight> Ports::flights() const {
  std::vector<Flight> all;
  all.reserve(size_);
  for (const Lane& lane : lanes_) {
    all.insert(all.end(), lane.flights.begin() + static_cast<std::ptrdiff_t>(lane.first),
               lane.flights.end());
  }
  return all;
}

bool Ports::busy_after(Time when) const {
  if (size_ == 0) {
    return false;
  }
  return std::any_of(lanes_.begin(), lanes_.begin() + kInbound, [&](const Lane& lane) {
    for (std::size_t i = lane.flights.size(); i-- > lane.first;) {
      if (lane.flights[i].end <= when || !lane.flights[i].message) {
        return lane.flights[i].end > when;
      }
    }
    return false;
  });
}

void Ports::Lane::forget(Time before) {
  while (first < flights.size() && flights[first].done <= before) {
    ++first;
  }
  settled = std::max(settled, first);
  compact();
}

void Ports::Lane::compact() {
  if (first == flights.size()) {
    flights.clear();
    first = settled = 0;
  } else if (first > kStale && 2 * first > flights.size()) {
    flights.erase(flights.begin(), flights.begin() + static_cast<std::ptrdiff_t>(first));
    settled -= first;
    first = 0;
  }
}

void Ports::forget(Time before) {
  each_other(kLanes, [&](std::size_t l) {
    Lane& lane = lanes_[l];
    const std::size_t had = lane.flights.size() - lane.first;
    if (l == kInbound) {
      std::erase_if(lane.flights, [&](const Flight& flight) { return flight.done <= before; });
      lane.settled = 0;
    } else {
      lane.forget(before);
    }
    size_ -= had - (lane.flights.size() - lane.first);
    live_ &= lane.empty() ? ~bit_of(l) : ~std::uint32_t{0};
  });
}

void Ports::settle(Time when, std::size_t kept) {
  forget(when);
  each_other(kLanes, [&](std::size_t l) {
    Lane& lane = lanes_[l];
    for (; l != kInbound && lane.settled < lane.flights.size(); ++lane.settled) {
      std::size_t& node = lane.flights[lane.settled].node;
      if (kept != kNoNode && node - kept < kSecondRun) {
        break;  // so are those after it
      }
      node = kNoNode;
    }
  });
}

void Ports::prolong(int lane, Time by) {
  Lane& late = lanes_[lane_of(lane)];
  if (!late.empty()) {
    late.flights.back().end += by;
    late.flights.back().done += by;
  }
}

void Ports::move(Time later, std::size_t nodes) {
  for (Lane& lane : lanes_) {
    for (Flight& flight : lane.flights) {
      flight.node += flight.node == kNoNode || flight.lane == kIncoming ? 0 : nodes;
      flight.begin += later;
      flight.end += later;
      flight.done += later;
    }
  }
}

}  // namespace orrery::estimate
