// SPDX-License-Identifier: Apache-2.0
/// A measured step beside the simulated one (study/step_times.h).
#pragma once

#include <string>

#include "report/fields.h"
#include "study/step_times.h"

namespace orrery::report {

std::string measured_table(const study::MeasuredComparison& comparison);

/// Declares docs/schema/compare-measured.json.
void declare(const study::MeasuredComparison& comparison, Fields& fields);

}  // namespace orrery::report
