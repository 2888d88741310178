// SPDX-License-Identifier: Apache-2.0
/// Kernels of a device of model systolic; see kernel_time.
#pragma once

#include <optional>

#include "machine/compute/device.h"

namespace orrery::compute {

/// Doubles in SI units: the hot inner part of the models.
struct Rates {
  double flops = 0;  ///< FLOP/s of the whole device
  double units = 1;
  double bandwidth = 1;  ///< bytes/s
};

/// Of GEMMs and of attention with a shape; nothing: no product.
std::optional<double> systolic_seconds(const graph::Operator& op, const Rates& rates,
                                       const Device& device);

}  // namespace orrery::compute
