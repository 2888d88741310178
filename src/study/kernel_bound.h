// SPDX-License-Identifier: Apache-2.0
/// A KernelBound says what the time of one kernel depends on.
#pragma once

#include <array>

#include "base/names.h"
#include "graph/operator.h"
#include "machine/compute/device.h"

namespace orrery::study {

enum class Bound : std::uint8_t { compute, memory, link, launch, measured };
inline constexpr int kBoundCount = 5;
constexpr auto named_values(Bound) {
  return std::to_array<Named<Bound>>({
      {Bound::compute, "compute", "peak rate"},
      {Bound::memory, "memory", "bandwidth of the first tier"},
      {Bound::link, "link", "bandwidth of lower tiers"},
      {Bound::launch, "launch", "start and drain"},
      {Bound::measured, "measured", "nothing known: the kernel has a measured time"},
  });
}

/// Returns times by Bound, which sum to kernel_time(op, device).alone exactly.
///
///   share of a resource = - d ln(time) / d ln(its rate), by a step of 1 %; the rest is `launch`
///
/// A GEMM whose waves are limited by the matrix units and whose rest by operands has both.
std::array<Time, kBoundCount> bounds_of(const graph::Operator& op, const compute::Device& device);

}  // namespace orrery::study
