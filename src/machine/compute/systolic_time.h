// SPDX-License-Identifier: Apache-2.0
/// Kernels of a device of model systolic; see kernel_time.
#pragma once

#include <optional>

#include "machine/compute/device.h"
#include "machine/compute/rates.h"

namespace orrery::compute {

/// Returns the seconds of GEMMs and of attention with a shape; nothing: no product.
std::optional<double> systolic_seconds(const graph::Operator& op, const Rates& rates,
                                       const Device& device);

}  // namespace orrery::compute
