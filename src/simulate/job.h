// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "simulate/bind.h"

namespace orrery::simulate {

/// The compute node that runs, kernel by kernel, each as fast as what runs beside it lets it be: as
/// if every kernel were a node. It cannot end before the host has issued the last one; only kernels
/// are slowed down by communication, not the host.
struct Job {
  const BoundKernel* kernel = nullptr;  ///< that ran at `since`
  const BoundKernel* end = nullptr;     ///< behind the last
  double remaining = 0;                 ///< picoseconds of it left at `since`, at full speed
  Concurrent concurrent = Concurrent::nothing;
  double pace = 1;  ///< of the rank: its kernels take so many times as long; infinity: they stop
  Time since{0};
  Time begin{0};
  Time host_end{0};  ///< the earliest end that the host allows
  Time ran{0};       ///< of kernels, from `begin` to `since`
  std::uint32_t generation = 0;
  bool running = false;

  /// Starts the node; this and the next return when the node will be done.
  Time start(Time now, Time host_limit, const BoundTemplate& shape, const BoundNode& node,
             Concurrent now_concurrent) {
    kernel = shape.kernels.data() + node.first_kernel;
    end = kernel + node.kernel_count;
    remaining = kernel == end ? 0 : static_cast<double>(kernel->work.value());
    concurrent = now_concurrent;
    since = begin = now;
    host_end = host_limit;
    ran = Time(0);
    running = true;
    ++generation;
    return done();
  }
  Time change_speed(Time now, Concurrent now_concurrent) {
    run_to(now);
    if (kernel != end && kernel->slow(now_concurrent) != kernel->slow(concurrent)) {
      book(now);
    }
    concurrent = now_concurrent;
    return done();
  }
  Time change_pace(Time now, double now_pace) {
    run_to(now);
    if (kernel != end) {
      book(now);
    }
    pace = now_pace;
    return done();
  }
  Time done() const { return std::max(host_end, since + left()); }
  /// Part of [begin, now] in which no kernel ran. Requires that the node is done.
  Time stall(Time now) const { return std::max(Time(0), now - begin - ran - left()); }

 private:
  void run_to(Time now) {
    while (end - kernel > 1 && since + left_of_kernel() <= now) {
      ran += left_of_kernel();
      since += left_of_kernel();
      ++kernel;
      remaining = static_cast<double>(kernel->work.value());
    }
  }
  /// Books the running kernel's part up to now, which a stopped rank counts as its too.
  void book(Time now) {
    const Time elapsed = std::min(now - since, left_of_kernel());
    remaining = std::max(
        0.0, remaining - static_cast<double>(elapsed.value()) / (kernel->slow(concurrent) * pace));
    ran += elapsed;
    since = now;
  }
  Time left_of_kernel() const {
    return Time::from_double(remaining * (kernel->slow(concurrent) * pace));
  }
  Time left() const { return kernel == end ? Time(0) : left_of_kernel() + after(); }
  Time after() const {
    const Time alone = kernel->after[static_cast<std::size_t>(concurrent)];
    return pace == 1 || alone == Time(0)
               ? alone
               : Time::from_double(static_cast<double>(alone.value()) * pace);
  }
};

}  // namespace orrery::simulate
