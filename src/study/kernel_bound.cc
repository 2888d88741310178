// SPDX-License-Identifier: Apache-2.0
#include "study/kernel_bound.h"

#include <algorithm>

#include "machine/compute/compute_model.h"

namespace orrery::study {
namespace {

constexpr double kStep = 1.01;

compute::Device faster(compute::Device device, Bound bound) {
  const auto speed_up = [](compute::MemoryTier& tier) { tier.bandwidth = tier.bandwidth * kStep; };
  if (bound == Bound::compute) {
    for (FlopRate& peak : device.peak) {
      peak = peak * kStep;
    }
  } else if (bound == Bound::memory) {
    speed_up(device.memory.front());
  } else {
    std::for_each(device.memory.begin() + 1, device.memory.end(), speed_up);
  }
  return device;
}

}  // namespace

std::array<Time, kBoundCount> bounds_of(const graph::Operator& op, const compute::Device& device) {
  const Time whole = compute::kernel_time(op, device).alone;
  std::array<Time, kBoundCount> times{};
  if (op.duration > Time(0)) {
    times[static_cast<std::size_t>(Bound::measured)] = whole;
    return times;
  }
  Time rest = whole;
  for (const Bound bound : {Bound::compute, Bound::memory, Bound::link}) {
    const Time gain = whole - compute::kernel_time(op, faster(device, bound)).alone;
    const Time share = std::clamp(gain * (kStep / (kStep - 1)), Time(0), rest);
    times[static_cast<std::size_t>(bound)] = share;
    rest -= share;
  }
  times[static_cast<std::size_t>(Bound::launch)] = rest;
  return times;
}

}  // namespace orrery::study
