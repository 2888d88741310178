// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compat/calculon/execution.h"
#include "workload/plan/plan.h"

namespace orrery::calculon {

/// Returns the execution as a plan of ours, so that `simulate` runs it. Products in tiles beside
/// their communication become tp_chunks; p2p_rs_ag sends a part to every rank of the next stage.
/// Mistakes: weights in the lower memory, gathering again instead of keeping, numbers of 8 bits: no
/// plan has them. Ignores which networks it names: the machine's order of axes decides.
Result<plan::Plan> to_plan(const Application& application, const Execution& execution);

}  // namespace orrery::calculon
