// SPDX-License-Identifier: Apache-2.0
/// A plan that a search found and simulated.
#pragma once

#include <string>

#include "planner/full/search.h"
#include "report/json_writer.h"

namespace orrery::report {

/// Returns the part of the step in which a plan loses most against the best, in shares of the best
/// one's step: "bubble +1.20 %"; "" where it loses in none.
std::string lost(const full::Found& plan, const full::Found& best);

/// Writes the keys plan, step_time_s, unfused_step_time_s, estimate_s, memory_bytes, mfu,
/// tokens_per_s, energy_per_step_j, cost_per_million_tokens; beside the `best` one also lost.
void write_found(JsonWriter& json, const full::Found& found, const full::Found* best = nullptr);

}  // namespace orrery::report
