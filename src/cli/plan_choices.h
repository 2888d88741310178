// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "planner/full/space.h"

namespace orrery::cli {

/// --fix and --only of `orrery plan`, each "field=value", into the task. Mistakes: unknown fields,
/// bad values, a field that is said twice.
void read_choices(const std::vector<std::string>& fix, const std::vector<std::string>& only,
                  full::Task& task, Error& mistakes);

}  // namespace orrery::cli
