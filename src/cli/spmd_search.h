// SPDX-License-Identifier: Apache-2.0
/// The searches of `orrery spmd`: each fills in the strategy, its cost and memory, and those of the
/// well-known strategies.
#pragma once

#include <string>

#include "planner/spmd/noise.h"
#include "report/spmd.h"

namespace orrery::cli {

/// Searches on equal devices; a strategy that was given is not searched.
Result<void> solve_spmd(report::SpmdRun& run, const spmd::Prices& prices);
/// The search believes noisy inputs; everything that is reported is true.
Result<void> solve_noisy_spmd(report::SpmdRun& run, const spmd::Prices& truth,
                              const std::string& profile_name, const spmd::Noise& noise);
/// Searches shares and program together, then everything else at those shares; well-known
/// strategies at their own.
Result<void> solve_mixed_spmd(report::SpmdRun& run);
/// Adds the frontier of time against memory.
Result<void> add_spmd_frontier(report::SpmdRun& run, const spmd::Prices& prices);

}  // namespace orrery::cli
