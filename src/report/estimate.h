// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "study/estimate_step.h"

namespace orrery::report {

/// Step time, its parts, the interval around it and the memory, for a terminal.
std::string estimate_table(const std::string& title, const study::StepEstimate& estimate);

/// Keys: devices, step_time_s, lower_bound_s, upper_bound_s, interval80 and trust (trust.h),
/// compute_s, exposed_s, bubble_s, tail_s
/// (parts of step_time_s), memory_bytes, capacity_bytes, fits.
std::string estimate_json(const study::StepEstimate& estimate);

}  // namespace orrery::report
