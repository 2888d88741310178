// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/fields.h"
#include "study/jobs.h"

namespace orrery::report {

/// Returns the table of `orrery simulate --jobs`.
std::string jobs_table(const study::JobsRun& run);
/// Declares docs/schema/simulate-jobs.json.
void declare(const study::JobsRun& run, Fields& fields);

}  // namespace orrery::report
