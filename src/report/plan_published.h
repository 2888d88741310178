// SPDX-License-Identifier: Apache-2.0
/// Published plans beside the planner's (planner/full/published.h).
#pragma once

#include <string>
#include <vector>

#include "planner/full/published.h"

namespace orrery::report {

/// A line for each row: both plans and their simulated steps; then how many rows there are of each
/// kind.
std::string published_plans_table(const std::string& title,
                                  const std::vector<full::PublishedComparison>& rows);

/// Keys: table, rows [{key, machine, plan, published_s, published_mfu, fits, problem, refused,
/// best_s, best_mfu, gain, bound_s, best, wall_s}]; best_s to wall_s are null where nothing is
/// compared.
std::string published_plans_json(const std::string& table,
                                 const std::vector<full::PublishedComparison>& rows);

}  // namespace orrery::report
