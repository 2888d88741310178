// SPDX-License-Identifier: Apache-2.0
/// Shares of the memory bandwidth that kernels take which stream their operands.
#pragma once

#include "graph/operator.h"
#include "machine/compute/device.h"

namespace orrery::compute {

/// Returns the share of a kernel by its kind, pass and type; the formula stands in compute_model.h.
double stream_share(const graph::Operator& op, const KernelCoefficients& c);

}  // namespace orrery::compute
