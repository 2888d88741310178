// SPDX-License-Identifier: Apache-2.0
/// A comparison (study/compare.h) in the forms in which people and programs read it.
#pragma once

#include <string>

#include "study/compare.h"

namespace orrery::report {

/// Runs A, B, C ...: what they are, what their networks do otherwise, plan fields that differ, then
/// every figure that is not 0 in all of them in its unit, the best run's marked, with B - A and
/// B / A (of more than two runs: the ratio of each to A).
std::string comparison_table(const study::Comparison& comparison);

/// One JSON object: {runs: [{source, model, machine, devices, network}], plan: [{field, values}],
/// groups: {group: {figure: {values, differences, ratios}}}}; lists in the order of the runs, null
/// where a run does not have the figure (or the first one's is 0, of ratios).
std::string comparison_json(const study::Comparison& comparison);

}  // namespace orrery::report
