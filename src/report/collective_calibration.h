// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "calibrate/collectives.h"
#include "report/fields.h"

namespace orrery::report {

/// Errors before and after the fit, and every protocol beside its old values.
std::string collective_calibration_table(const calibrate::CollectiveFit& fit);

/// Declares docs/schema/calibrate-collectives.json; protocols are those after the fit.
void declare(const calibrate::CollectiveFit& fit, Fields& fields);

}  // namespace orrery::report
