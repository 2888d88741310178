// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "calibrate/collectives.h"

namespace orrery::report {

/// Errors before and after the fit, and every protocol beside its old values.
std::string collective_calibration_table(const calibrate::CollectiveFit& fit);

/// One JSON object: {machine, before, after, held_out: {points, median, mean, largest}, protocols:
/// [{list, name, launch, step_latency, efficiency, local_copy}], warnings: [text]}; times are in
/// seconds, protocols those after the fit.
std::string collective_calibration_json(const calibrate::CollectiveFit& fit);

}  // namespace orrery::report
