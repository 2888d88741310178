// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/block_workload.h"

#include <algorithm>
#include <utility>

#include "workload/parallel/chunk_templates.h"
#include "workload/parallel/passes.h"
#include "workload/parallel/template_builder.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/schedule.h"

namespace orrery::parallel {
namespace {

class Blocks {
 public:
  Blocks(const Draft& draft, bool splits) : draft_(draft), splits_(splits) {
    result_.workload = plan::step_workload(draft.layout);
    result_.workload.host_dispatch = draft.host_dispatch;
    result_.workload.programs.resize(1);
    for (graph::Role& role : result_.workload.roles) {
      role.program = 0;
    }
  }

  BlockWorkload run() {
    for (plan::BlockKind kind = 0; kind < draft_.steps.size(); ++kind) {
      auto& passes = result_.templates.emplace_back();
      for (std::size_t i = 0; i < kBlockRuns.size(); ++i) {
        const bool layer = kind >= plan::kFirstLayerBlock;
        for (std::size_t pass = 0; pass < kBlockPasses; ++pass) {
          const bool again = static_cast<BlockPass>(pass) == BlockPass::plain && !recomputes(kind);
          if (again) {
            passes[pass][i] = passes[static_cast<std::size_t>(BlockPass::backward)][i];
            continue;
          }
          passes[pass][i] = layer || i == 0 ? append(kind, static_cast<BlockPass>(pass),
                                                     layer ? kBlockRuns[i] : 1)
                                            : passes[pass][0];
        }
      }
      if (splits_) {
        std::array<int, kBlockRuns.size()>& weights = result_.weights.emplace_back();
        for (std::size_t i = 0; i < kBlockRuns.size(); ++i) {
          const ChunkDraft chunk = run_of(kind, kind < plan::kFirstLayerBlock ? 1 : kBlockRuns[i]);
          weights[i] = append(backward_steps(draft_, chunk, BackwardPart::weight_gradients,
                                             "weights", When::always));
        }
      }
    }
    return std::move(result_);
  }

 private:
  bool recomputes(plan::BlockKind kind) const {
    const BlockSteps& steps = draft_.steps[kind];
    return !steps.recompute.empty() ||
           std::any_of(steps.backward.begin(), steps.backward.end(), [](const Step& step) {
             return step.node.phase == plan::StepPhase::recompute;
           });
  }

  int append(plan::BlockKind kind, BlockPass pass, int length) {
    const ChunkDraft chunk = run_of(kind, length, pass == BlockPass::backward);
    const BackwardPart part = splits_ ? BackwardPart::input_gradients : BackwardPart::whole;
    return append(pass == BlockPass::forward
                      ? forward_steps(draft_, chunk, "forward", When::always)
                      : backward_steps(draft_, chunk, part, "backward", When::always));
  }

  static ChunkDraft run_of(plan::BlockKind kind, int length, bool recomputes = false) {
    ChunkDraft chunk;
    chunk.blocks.assign(static_cast<std::size_t>(length), {.kind = kind, .recomputes = recomputes});
    return chunk;
  }

  int append(const StepList& list) {
    std::vector<graph::Template>& templates = result_.workload.programs.front().templates;
    templates.push_back(built(list, draft_, {}));
    return static_cast<int>(templates.size()) - 1;
  }

  const Draft& draft_;
  bool splits_;
  BlockWorkload result_;
};

Result<Draft> draft_blocks(const zoo::Model& model, const plan::Plan& plan) {
  auto parts = plan::split_model(model, plan);
  if (!parts) {
    return fail(std::move(parts.error()));
  }
  const Context context{.model = model, .plan = plan, .parts = std::move(*parts)};
  Draft draft;
  for (auto* pass :
       {passes::pipeline, passes::tensor, passes::expert, passes::context, passes::recompute}) {
    pass(draft, context);
  }
  return draft;
}

}  // namespace

Result<BlockWorkload> lower_blocks(const zoo::Model& model, const plan::Plan& plan) {
  const auto draft = draft_blocks(model, plan);
  return draft ? Result<BlockWorkload>(Blocks(*draft, plan::splits_backward(plan.schedule)).run())
               : fail(draft.error());
}

Result<std::vector<std::vector<graph::Operator>>> block_kernels(const zoo::Model& model,
                                                                const plan::Plan& plan) {
  const auto draft = draft_blocks(model, plan);
  if (!draft) {
    return fail(draft.error());
  }
  std::vector<std::vector<graph::Operator>> kernels;
  for (const BlockSteps& steps : draft->steps) {
    std::vector<graph::Operator>& of_kind = kernels.emplace_back();
    for (const std::vector<Step>* pass : {&steps.forward, &steps.backward}) {
      for (const Step& step : *pass) {
        if (step.when == When::always && step.node.phase != plan::StepPhase::recompute) {
          of_kind.insert(of_kind.end(), step.node.operators.begin(), step.node.operators.end());
        }
      }
    }
  }
  return kernels;
}

}  // namespace orrery::parallel
