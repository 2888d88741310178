// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "simulate/bind.h"

namespace orrery::simulate {

/// The compute node that runs. Its kernels take `remaining` at full speed; it cannot end before the
/// host has issued the last one. Only kernels are slowed down by communication, not the host.
struct Job {
  double remaining = 0;  ///< picoseconds of work left at `since`
  double slowdown = 1;
  Time since{0};
  Time begin{0};
  Time host_end{0};  ///< the earliest end that the host allows
  Time stretch{0};   ///< time beyond the work that slowness, not the host, has cost so far
  Time work{0};
  Contention contention;
  std::uint32_t generation = 0;
  bool running = false;

  /// Both return when the node will be done.
  Time start(Time now, Time host_limit, const BoundNode& node, double initial_slowdown) {
    work = node.work;
    remaining = static_cast<double>(work.value());
    slowdown = initial_slowdown;
    since = begin = now;
    host_end = host_limit;
    stretch = Time(0);
    contention = node.contention;
    running = true;
    ++generation;
    return std::max(host_end, now + (slowdown > 1 ? left() : work));
  }
  Time change_speed(Time now, double new_slowdown) {
    const Time elapsed = std::min(now - since, left());
    const double done = static_cast<double>(elapsed.value()) / slowdown;
    stretch += elapsed - Time::from_double(done);
    remaining = std::max(0.0, remaining - done);
    since = now;
    slowdown = new_slowdown;
    ++generation;
    return std::max(host_end, now + left());
  }
  /// Part of [begin, now] in which no kernel ran. Requires that the node is done.
  Time stall(Time now) const {
    const Time last = slowdown > 1 ? left() - Time::from_double(remaining) : Time(0);
    return std::max(Time(0), now - begin - work - stretch - last);
  }

 private:
  Time left() const { return Time::from_double(remaining * slowdown); }
};

}  // namespace orrery::simulate
