// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "planner/advice/probe.h"

namespace orrery::advice {

/// Returns the plan that needs about the least memory of a device of all plans of the task: a plan
/// fits with more memory if it fits with less, so the amount is bisected, from `too_little`, with
/// which none fits, until less than `near` times is between. Nothing: none fits with four times
/// `enough` either, or the user ended it. Requires a machine whose devices have memory, 0 <=
/// too_little < enough, near > 1.
std::optional<full::Found> least_memory(const full::Task& task, const full::Options& options,
                                        Bytes too_little, Bytes enough, double near);

}  // namespace orrery::advice
