// SPDX-License-Identifier: Apache-2.0
/// Sums of kernels of an engine step: their time, and what they ask of the device.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "machine/compute/clock.h"

namespace orrery::step {

/// Time at the rate of the kernel tables, and what the kernels ask of the device.
struct Timed {
  Time time{0};
  compute::Load load{};

  Timed() = default;
  Timed(Time taken, const compute::Load& asked) : time(taken), load(asked) {}
  /// Makes the time of a collective, or of what is measured: it runs.
  explicit Timed(Time taken) : time(taken), load{.busy = to_seconds(taken)} {}

  Timed& operator+=(const Timed& other) {
    time += other.time;
    load += other.load;
    return *this;
  }
  friend Timed operator+(Timed a, const Timed& b) { return a += b; }
  friend Timed operator*(const Timed& a, std::int64_t times) {
    return {a.time * times, a.load * static_cast<double>(times)};
  }
};
/// Time and number of kernels.
struct Part {
  Time time{0};
  std::int64_t kernels = 0;
  compute::Load load{};

  void add(const Timed& more, std::int64_t launches) {
    time += more.time;
    load += more.load;
    kernels += launches;
  }
  void add(Time more, std::int64_t launches) { add(Timed(more), launches); }
  void add(const Part& more, std::int64_t times = 1) {
    add(Timed(more.time, more.load) * times, more.kernels * times);
  }
};

}  // namespace orrery::step
