// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "study/jobs.h"

namespace orrery::report {

/// `orrery simulate --jobs`.
std::string jobs_table(const study::JobsRun& run);
std::string jobs_json(const study::JobsRun& run);

}  // namespace orrery::report
