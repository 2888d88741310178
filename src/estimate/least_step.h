// SPDX-License-Identifier: Apache-2.0
/// The closed form of the bound of quick_bound.h.
#pragma once

#include <cstdint>

#include "estimate/cost_tables.h"
#include "workload/plan/plan.h"

namespace orrery::estimate {

/// Returns the bound on the step, as quick_bound.h defines it. Requires costs of Sharing::alone.
Time least_step(const plan::Plan& plan, const PlanCosts& costs);

/// Returns the time of the copies of a chunk's activations, one way, of one microbatch: what a pass
/// cannot run ahead of, since a layer waits for the copy of the last but one before it.
Time least_copy(const plan::Plan& plan, std::int64_t layers, Bytes kept,
                const machine::Machine& machine);

}  // namespace orrery::estimate
