// SPDX-License-Identifier: Apache-2.0
/// Activation recompute (Chen et al. 2016; selective: Korthikanti et al. 2022, section 5).
///
///   full       every layer's whole forward again before its backward, its collectives included, as
///              torch.utils.checkpoint runs it; embedding and head are kept
///   selective  the attention core again before its own backward
#include <algorithm>

#include "workload/parallel/passes.h"

namespace orrery {
namespace {

Step again(Step step) {
  step.node.phase = Phase::recompute;
  step.node.name += "_again";
  return step;
}

void recompute_layer(BlockSteps& steps) {
  std::transform(steps.forward.begin(), steps.forward.end(), std::back_inserter(steps.recompute),
                 again);
}

void recompute_selected(BlockSteps& steps, const std::vector<ModelOperator>& operators) {
  const auto selected = [&](const Step& step) {
    return operators[static_cast<std::size_t>(step.source)].recompute == RecomputeGroup::selective;
  };
  std::vector<Step> core;
  for (const Step& step : steps.forward) {
    if (selected(step)) {
      core.push_back(again(step));
    }
  }
  const auto where = std::find_if(steps.backward.begin(), steps.backward.end(), selected);
  steps.backward.insert(where, core.begin(), core.end());
}

}  // namespace

void passes::recompute(Draft& draft, const Context& context) {
  for (BlockKind kind = kFirstLayerBlock; kind < draft.steps.size(); ++kind) {
    if (context.plan.recompute == Recompute::full) {
      recompute_layer(draft.steps[kind]);
    } else if (context.plan.recompute == Recompute::selective) {
      recompute_selected(draft.steps[kind], draft.operators[kind]);
    }
  }
}

}  // namespace orrery
