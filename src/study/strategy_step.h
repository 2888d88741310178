// SPDX-License-Identifier: Apache-2.0
/// A step of which a program of `orrery spmd` says what every device does (Plan::strategy).
#pragma once

#include "base/result.h"
#include "graph/workload.h"
#include "machine/machine.h"
#include "workload/memory/footprint.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::study {

struct StrategyStep {
  graph::Workload workload;
  footprint::StageMemory memory;  ///< everything kept until backward, and the framework's
};

/// Returns the mistakes of fields that contradict a strategy, which decides all but dp (its
/// devices), global_batch, sequence, compute_type and clocks. Requires a strategy.
Error strategy_mistakes(const plan::Plan& plan);

/// Returns the program (planner/spmd/saved.h) of the model's operators on a machine of plan.dp
/// devices; of one axis overlapped in both directions. Mistakes: models that are no such graphs, a
/// strategy of another graph or another number of devices, a batch that has no two halves for one
/// of one axis; machines that the prices do not know, of mixed devices, or that compute in another
/// type. Requires a plan without strategy_mistakes().
Result<StrategyStep> strategy_step(const zoo::Model& model, const plan::Plan& plan,
                                   const machine::Machine& machine);

}  // namespace orrery::study
