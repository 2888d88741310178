// SPDX-License-Identifier: Apache-2.0
/// Searches that answer one question of many: how far they go.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "base/result.h"
#include "planner/full/search.h"

namespace orrery::advice {

/// Called with the share done.
using Progress = std::function<void(double)>;

/// Returns `options` for one plan, of at most so many estimates and simulations.
full::Options limited(full::Options options, std::size_t estimates, std::size_t simulations);

/// Returns whether some plan fits: the most promising one.
std::optional<full::Found> any_plan(const full::Task& task, const full::Options& options);

/// Returns limits that are enough for a good plan: 100 estimates and 12 simulations.
full::Options good_limits(const full::Options& options);

/// Returns the best within good_limits(). Mistakes: those of the search; no plan fits.
Result<full::Found> good_plan(const full::Task& task, const full::Options& options);

/// Returns the bytes of a device's first memory tier that plans may use.
Bytes usable_memory(const full::Task& task, const full::Options& options);

/// Gives every device exactly so much memory for plans; `options` have no reserve then. Of several
/// sorts of devices none may use more than it could before.
void use_memory(full::Task& task, full::Options& options, Bytes usable);

/// Returns the task with every field fixed: a search finds this plan.
full::Task of_plan(full::Task task, const plan::Plan& plan);

/// Returns the number of devices that are lost with one host: those of the innermost dimension of
/// the network, of one with a granule that many; where it is the only dimension, one.
std::int64_t devices_of_node(const machine::Machine& machine);

}  // namespace orrery::advice
