// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/units.h"
#include "graph/operator.h"
#include "machine/compute/device.h"

namespace orrery {

/// Time of one operator alone on the device, and the same when a collective runs beside it
/// (compute-bound work gets 1 - overlap_units of the units, memory-bound work 1 - overlap_memory of
/// the bandwidth).
struct KernelTime {
  Time alone{0};
  Time overlapped{0};  ///< >= alone
};

KernelTime kernel_time(const Operator& op, const Device& device);

}  // namespace orrery
