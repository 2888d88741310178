// SPDX-License-Identifier: Apache-2.0
/// What a search over plans found (planner/full/search.h).
#pragma once

#include <string>

#include "planner/full/search.h"

namespace orrery::report {

/// The best plan, what bounds it, the runners-up and why they lost, what was left out and why.
std::string plan_search_table(const full::Task& task, const full::Answer& answer);

/// Keys: model, machine, devices, best {plan, step_time_s, estimate_s, memory_bytes, mfu,
/// tokens_per_s}, bound_s, gap, proved, complete, stopped, estimate_error, candidates {all,
/// by_bound, by_memory, by_family, invalid, estimated, left, simulated}, top (as best, with lost),
/// wall_s. Where nothing fits, best is null, and least_memory {bytes, plan} says what the most
/// frugal plan needs at the least, and
/// enough_devices how many would do (0: not even 64 times as many).
std::string plan_search_json(const full::Task& task, const full::Answer& answer);

}  // namespace orrery::report
