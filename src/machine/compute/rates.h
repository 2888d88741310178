// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/operator.h"
#include "machine/compute/device.h"

namespace orrery::compute {

/// Rates hold what a kernel finds of its device, in doubles of SI units: the hot inner part of the
/// models.
struct Rates {
  double flops = 0;  ///< FLOP/s of the whole device
  double units = 1;
  double bandwidth = 1;  ///< bytes/s
};

/// Returns the share of its kernel tables' rate that the operator has on the device.
inline double clock_of(const graph::Operator& op, const Device& device) {
  return op.kind == graph::OperatorKind::attention ? device.attention_clock : device.clock;
}

/// Returns the rates at which a kernel runs. `clock`: share of the kernel tables' rate.
inline Rates rates_of(const graph::Operator& op, const Device& device, double clock) {
  const FlopRate peak = device.peak[static_cast<std::size_t>(op.type)];
  return {.flops = peak.value() * clock,
          .units = static_cast<double>(device.units),
          .bandwidth = device.memory.front().bandwidth.value()};
}

}  // namespace orrery::compute
