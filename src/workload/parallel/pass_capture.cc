// SPDX-License-Identifier: Apache-2.0
/// The pass `capture` says what the host does for layers, where its time counts (host_dispatch):
///
///   cuda_graphs   none     issues every kernel
///                 layers   attention, Mamba, norms, router and shared expert are captured;
///                          expert GEMMs with what makes their operands, activation and unpermute
///                          are issued
///                 full     nothing (Workload::host_dispatch is 0)
///
/// Without `full` and without a capacity the rows of each expert are numbers that the host needs
/// before it issues the experts: it waits for the routing of every layer, so that it cannot run
/// ahead of the device across one. Backward knows them. It waits at clamped activations of experts
/// too, which copy a number of the host to the device (weighted_bias_quick_geglu_impl).
///
/// Ignores: the one launch of each graph. Collectives of captured layers still cost their dispatch.
/// Source:  Megatron-Core, user guide, CUDA graphs (modules attn, mamba, moe_router,
///          moe_preprocess) and paged stash (sync-free experts in full graphs); NeMo AutoModel,
///          cuda_graphs.partial: dispatch, experts and combine stay eager.
#include "workload/parallel/passes.h"

namespace orrery::parallel {
namespace {

bool stays_eager(const zoo::ModelOperator& op) {
  return op.expert || op.role == graph::OperatorRole::unpermute;
}

void capture_steps(std::vector<Step>& steps, const std::vector<zoo::ModelOperator>& operators) {
  for (Step& step : steps) {
    const bool captured =
        step.source >= 0 && !stays_eager(operators[static_cast<std::size_t>(step.source)]);
    for (graph::Operator& op : step.node.operators) {
      op.captured = captured;
    }
  }
}

/// Forward, and where it runs again.
void wait_in(std::vector<Step>& steps, const std::vector<zoo::ModelOperator>& operators,
             bool (*waits)(const zoo::ModelOperator&)) {
  for (Step& step : steps) {
    step.node.host_sync =
        step.node.host_sync || (step.source >= 0 && step.part == Part::forward &&
                                waits(operators[static_cast<std::size_t>(step.source)]));
  }
}

bool is_routing(const zoo::ModelOperator& op) {
  return op.role == graph::OperatorRole::routing;
}

bool is_activation(const zoo::ModelOperator& op) {
  return op.role == graph::OperatorRole::expert_activation;
}

}  // namespace

void passes::capture(Draft& draft, const Context& context) {
  const plan::Plan& plan = context.plan;
  if (draft.host_dispatch == Time(0)) {
    return;
  }
  const bool clamps =
      context.model.expert.clamped && plan.expert_gemms == plan::ExpertGemms::per_expert;
  for (plan::BlockKind kind = plan::kFirstLayerBlock; kind < draft.steps.size(); ++kind) {
    BlockSteps& block = draft.steps[kind];
    for (std::vector<Step>* steps : {&block.forward, &block.recompute, &block.backward}) {
      if (plan.cuda_graphs == plan::CudaGraphs::layers) {
        capture_steps(*steps, draft.operators[kind]);
      }
      if (plan.moe_capacity == 0) {
        wait_in(*steps, draft.operators[kind], is_routing);
      }
      if (clamps) {
        wait_in(*steps, draft.operators[kind], is_activation);
      }
    }
  }
}

}  // namespace orrery::parallel
