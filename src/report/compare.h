// SPDX-License-Identifier: Apache-2.0
/// A comparison (study/compare.h) in the forms in which people and programs read it.
#pragma once

#include <string>

#include "report/fields.h"
#include "study/compare.h"

namespace orrery::report {

/// Runs A, B, C ...: what they are, what their networks do otherwise, plan fields that differ, then
/// every figure that is not 0 in all of them in its unit, the best run's marked, with B - A and
/// B / A (of more than two runs: the ratio of each to A).
std::string comparison_table(const study::Comparison& comparison);

/// Declares docs/schema/compare.json; lists are in the order of the runs.
void declare(const study::Comparison& comparison, Fields& fields);

}  // namespace orrery::report
