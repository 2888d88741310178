// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "planner/full/search.h"

namespace orrery::cli {

/// `orrery plan --table`: every row of a table of published runs beside the planner's answer, each
/// printed as soon as it is known. The result is the text after the rows.
Result<std::string> compare_published(const std::string& table, const full::Options& options,
                                      bool json);

}  // namespace orrery::cli
