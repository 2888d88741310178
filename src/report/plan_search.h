// SPDX-License-Identifier: Apache-2.0
/// A search over plans (planner/full/search.h) is told in these texts.
#pragma once

#include <string>

#include "planner/full/search.h"
#include "report/plan_details.h"

namespace orrery::report {

/// Returns the best plan, what bounds it, the runners-up and why they lost, what was left out and
/// why, and what was asked beside.
std::string plan_search_table(const full::Task& task, const full::Answer& answer,
                              const PlanDetails& details);

/// Returns JSON with the keys model, machine, devices, best {plan, step_time_s, estimate_s,
/// memory_bytes, mfu, tokens_per_s}, fastest (as best; null: best is), bound_s, gap, proved,
/// complete, stopped, estimate_error, candidates {all, by_bound, by_memory, by_family, invalid,
/// estimated, left, simulated}, top (as best, with lost), timing {wall_s}. Where nothing fits, best
/// is null, and least_memory {bytes, plan} says what the most frugal plan needs at the least; then
/// come the keys of write_plan_details(), and where more was asked for.
std::string plan_search_json(const full::Task& task, const full::Answer& answer,
                             const PlanDetails& details);

}  // namespace orrery::report
