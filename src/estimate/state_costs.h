// SPDX-License-Identifier: Apache-2.0
/// State costs are what the optimizer, reductions of gradients and gathers of parameters take at
/// the least.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "estimate/block_costs.h"
#include "estimate/placement.h"
#include "estimate/prices.h"
#include "machine/machine.h"
#include "workload/memory/block_memory.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::estimate {

/// StageState is what the state of one stage costs over the step at the least.
struct StageState {
  Time finish{0};          ///< the optimizer's kernels, and copies
  Time reduced{0};         ///< gradients, once a step: behind the last backward or beside it
  Time reduced_always{0};  ///< the same for every microbatch
  Time updated{0};         ///< the gather of what the optimizer updated, which ends the step
  Time gathered{0};        ///< parameters, once a step
  Time gathered_always{0};
  Time gathered_apart{0};  ///< of gathered_always, what another axis carries beside it at the least
  Time kernels_always{0};  ///< that quantise and copy what travels, every microbatch
  Time outer{0};           ///< kernels at the end of a round (plan/rounds.h)
  Time averaged{0};        ///< the all-reduce of a round, or its reduce-scatter
  Time shared_outer{0};    ///< the gather after it, with shard_outer
  PortTimes once{};        ///< reductions of a step, and gathers ahead of it
  PortTimes always{};      ///< of every microbatch

  /// Returns the time of gradients over the step: what is added every microbatch and what is once
  /// run beside each other, on different axes.
  Time reduction(std::int64_t microbatches) const {
    return std::max(reduced, reduced_always * microbatches);
  }
  Time lane(std::int64_t microbatches) const {
    return reduction(microbatches) + gathered + (gathered_always - gathered_apart) * microbatches;
  }
};

using StageParts = std::vector<std::vector<plan::ModelPart>>;

/// Says where transfers run, what they cost there, and whether they share it.
struct StatePrices {
  Placement& placement;
  Prices& prices;
  Sharing sharing = Sharing::alone;
};

/// Returns the costs of states by stage. They are zero for parameters that are elsewhere or not
/// trained (offload_params, LoRA).
std::vector<StageState> state_costs(const zoo::Model& model, const plan::Plan& plan,
                                    const footprint::BlockMemories& memories,
                                    const StageParts& parts, const StatePrices& prices);

/// Returns the bytes of parameters, gradients and optimizer states on a device, mean over the
/// stages.
Bytes mean_states(const zoo::Model& model, const plan::Plan& plan,
                  const footprint::BlockMemories& memories, const StageParts& parts);

}  // namespace orrery::estimate
