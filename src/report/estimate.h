// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/fields.h"
#include "study/estimate_step.h"

namespace orrery::report {

/// Returns the step time, its parts, the interval around it and the memory, for a terminal.
std::string estimate_table(const std::string& title, const study::StepEstimate& estimate);

/// Declares docs/schema/estimate.json.
void declare(const study::StepEstimate& estimate, Fields& fields);

}  // namespace orrery::report
