// SPDX-License-Identifier: Apache-2.0
/// Time against memory: which plans no other beats in both.
///
/// The limit of memory goes from what the best plan takes down to the least with which any plan
/// fits (to 5 %), in seven equal ratios; the best plan under each limit is searched for and
/// simulated. Of all plans simulated on the way those stay that no other beats in score and in
/// memory. Between two limits there may be more.
#pragma once

#include <vector>

#include "planner/advice/probe.h"

namespace orrery::advice {

/// Returns plans, that of least memory first; the last is the answer's best plan or as good a one.
/// Requires an answer with a plan.
std::vector<full::Found> memory_frontier(const full::Task& task, const full::Options& options,
                                         const full::Answer& answer, const Progress& progress);

/// Returns the plan with the most memory free of those that take at most 5 % more than the fastest.
/// Requires a plan.
full::Found most_free(const std::vector<full::Found>& frontier);

}  // namespace orrery::advice
