// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "study/step_times.h"

namespace orrery::cli {

/// Reads what devices did: Kineto traces (.json), a rank each, or Nsight Systems' databases
/// (`nsys export --type sqlite`), of which every device is a rank. `pattern`: a file, or several by
/// * and ?. Mistakes: no such file; those of each file.
Result<std::vector<study::RankActivities>> read_measured(const std::string& pattern);

}  // namespace orrery::cli
