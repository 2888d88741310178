// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "planner/full/search.h"

namespace orrery::cli {

/// `orrery plan --table`: every row of a table of published runs beside the planner's answer. Where
/// a published plan is refused, or faster than the best found, the mistakes say which.
Result<std::string> compare_published(const std::string& table, const full::Options& options,
                                      bool json);

}  // namespace orrery::cli
