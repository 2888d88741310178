// SPDX-License-Identifier: Apache-2.0
/// Activation recompute (Chen et al. 2016; selective: Korthikanti et al. 2022, section 5); what is
/// recomputed where: recompute.h.
///
///   full       every layer's whole forward again before its backward, its collectives included, as
///              torch.utils.checkpoint runs it; embedding and head are kept
///   otherwise  each run of neighbouring selected operators again, with its collectives: before its
///              own backward; a run that ends in a norm or an activation, whose result the next
///              operator keeps as its input, before that operator's backward
/// Weights that were quantised in the step's first forward stay so.
#include <algorithm>

#include "workload/parallel/passes.h"
#include "workload/plan/recompute.h"

namespace orrery::parallel {
namespace {

Step again(Step step) {
  step.node.phase = plan::StepPhase::recompute;
  step.node.name += "_again";
  return step;
}

/// Forward steps of the operators first .. last, once more.
std::vector<Step> repeated(const std::vector<Step>& forward, int first, int last) {
  std::vector<Step> steps;
  for (const Step& step : forward) {
    if (step.source >= first && step.source <= last && step.when == When::always) {
      steps.push_back(again(step));
    }
  }
  return steps;
}

bool result_is_next_input(const zoo::ModelOperator& op) {
  return op.recompute == zoo::RecomputeGroup::never &&
         (op.kind == graph::OperatorKind::norm || op.kind == graph::OperatorKind::elementwise);
}

void recompute_run(BlockSteps& steps, const std::vector<zoo::ModelOperator>& operators, int first,
                   int last) {
  const int needed_by =
      last + (result_is_next_input(operators[static_cast<std::size_t>(last)]) ? 1 : 0);
  const auto where = std::find_if(
      steps.backward.begin(), steps.backward.end(),
      [&](const Step& step) { return step.source >= first && step.source <= needed_by; });
  const std::vector<Step> more = repeated(steps.forward, first, last);
  steps.backward.insert(where, more.begin(), more.end());
}

void recompute_selected(BlockSteps& steps, const std::vector<zoo::ModelOperator>& operators,
                        const plan::Plan& plan) {
  const int count = static_cast<int>(operators.size());
  int first = -1;
  for (int i = 0; i <= count; ++i) {
    const bool selected =
        i < count && plan::recompute_selects(plan, operators[static_cast<std::size_t>(i)]);
    if (selected && first < 0) {
      first = i;
    } else if (!selected && first >= 0) {
      recompute_run(steps, operators, first, i - 1);
      first = -1;
    }
  }
}

void mark_layers(ChunkDraft& chunk, const plan::Plan& plan) {
  std::int64_t layer = 0;
  for (Block& block : chunk.blocks) {
    if (block.kind >= plan::kFirstLayerBlock) {
      block.recomputes = plan::recomputes_layer(plan, layer++);
    }
  }
}

}  // namespace

void passes::recompute(Draft& draft, const Context& context) {
  const plan::Plan& plan = context.plan;
  for (plan::BlockKind kind = plan::kFirstLayerBlock; kind < draft.steps.size(); ++kind) {
    BlockSteps& steps = draft.steps[kind];
    const int last = static_cast<int>(draft.operators[kind].size()) - 1;
    if (plan.recompute == plan::Recompute::full) {
      steps.recompute = repeated(steps.forward, 0, last);
    } else {
      recompute_selected(steps, draft.operators[kind], plan);
    }
  }
  for (RoleDraft& role : draft.roles) {
    for (ChunkDraft& chunk : role.chunks) {
      mark_layers(chunk, plan);
    }
  }
}

}  // namespace orrery::parallel
