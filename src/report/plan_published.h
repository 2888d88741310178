// SPDX-License-Identifier: Apache-2.0
/// Published plans beside the planner's (planner/full/published.h).
#pragma once

#include <string>
#include <vector>

#include "planner/full/published.h"
#include "report/json_writer.h"

namespace orrery::report {

/// Returns both plans of a row and their simulated steps, or why there is nothing to compare.
std::string published_plan_text(const full::PublishedComparison& row);

/// Returns how many rows there are of each kind.
std::string published_plans_summary(const std::vector<full::PublishedComparison>& rows);

/// Writes an object: {key, machine, plan, devices, published_s, published_mfu, fits, problem,
/// refused, best_s, best_mfu, gain, bound_s, best, again {published_s, best_s, gain},
/// again_problem, timing {wall_s}}; best_s to timing are null where nothing is compared, again
/// where the row was not simulated again.
void write_published_plan(JsonWriter& json, const full::PublishedComparison& row);

}  // namespace orrery::report
