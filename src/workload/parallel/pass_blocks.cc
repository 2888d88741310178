// SPDX-License-Identifier: Apache-2.0
/// Degrees that cut the blocks' tensors, and the steps that follow (workload/lower).
///
/// With sequence parallelism (SP) the gradients of norms and biases that every rank holds for its
/// own tokens are summed over tp once per step, in one all-reduce; so are those of the whole
/// matrices of adapters (lora.h).
///
/// Stage boundaries: with SP every rank sends its 1/t of the tokens; with scatter_gather it sends
/// 1/t and the receiver gathers over tp; whole sends everything t times.
///
/// Source: Korthikanti et al. 2022, section 4.2.2; Narayanan et al., SC'21, section 4.1
/// (scatter/gather).
#include "workload/lower/lower_block.h"
#include "workload/lower/training_kernels.h"
#include "workload/parallel/passes.h"
#include "workload/plan/lora.h"
#include "workload/plan/shard.h"
#include "workload/plan/tensor_overlap.h"

namespace orrery::parallel {
namespace {

/// Cuts the messages of one end of a chunk to a rank's share.
void shard_messages(std::vector<Step>& steps, const Context& context, plan::StepPhase phase) {
  const plan::Plan& plan = context.plan;
  const bool gather =
      !plan.sequence_parallel && plan.pipeline_send == plan::PipelineSend::scatter_gather;
  const Bytes bytes = plan::message_bytes(context.model, plan);
  bool receives = false;
  for (Step& step : steps) {
    if (step.node.kind == graph::Node::Kind::send || step.node.kind == graph::Node::Kind::receive) {
      step.node.bytes = bytes;
      receives = receives || step.node.kind == graph::Node::Kind::receive;
    }
  }
  if (receives && gather) {
    steps.push_back(collective_step(plan::Axis::tp, graph::CollectiveKind::all_gather,
                                    plan::boundary_bytes(context.model, plan), phase));
  }
}

/// Trained parameters that every tp rank holds whole and that see only its own tokens under SP, or
/// whose gradients are partial sums (lora.h).
std::int64_t replicated_parameters(const Draft& draft, const RoleDraft& role) {
  std::int64_t sum = 0;
  for (const ChunkDraft& chunk : role.chunks) {
    for (const Block& block : chunk.blocks) {
      for (const zoo::ModelOperator& op : draft.operators[block.kind]) {
        sum += op.gemm_split == zoo::GemmSplit::none && plan::is_trained(op) ? op.parameters : 0;
      }
    }
  }
  return sum;
}

}  // namespace

void passes::tensor(Draft& draft, const Context& context) {
  const plan::Plan& plan = context.plan;
  draft.cuts.tensor = true;
  if (plan.tp == 1) {
    return;
  }
  for (RoleDraft& role : draft.roles) {
    for (ChunkDraft& chunk : role.chunks) {
      shard_messages(chunk.forward_begin, context, plan::StepPhase::forward);
      shard_messages(chunk.forward_end, context, plan::StepPhase::forward);
      shard_messages(chunk.backward_begin, context, plan::StepPhase::backward);
      shard_messages(chunk.backward_end, context, plan::StepPhase::backward);
    }
    const std::int64_t replicated = replicated_parameters(draft, role);
    if ((plan.sequence_parallel || plan.lora_rank > 0) && replicated > 0) {
      role.finish.push_back(collective_step(plan::Axis::tp, graph::CollectiveKind::all_reduce,
                                            graph::size_of(plan.grad_reduce_type) * replicated,
                                            plan::StepPhase::optimizer));
    }
  }
}

void passes::expert(Draft& draft, const Context& /*context*/) {
  draft.cuts.experts = true;
}

void passes::context(Draft& draft, const Context& /*context*/) {
  draft.cuts.context = true;
}

void passes::blocks(Draft& draft, const Context& context) {
  const plan::Plan& plan = context.plan;
  const lower::TrainingKernels kernels(plan);
  for (plan::BlockKind kind = 0; kind < draft.operators.size(); ++kind) {
    for (zoo::ModelOperator& op : draft.operators[kind]) {
      const bool cut = op.expert ? draft.cuts.experts : draft.cuts.tensor;
      op = cut ? plan::shard(std::move(op), plan) : std::move(op);
    }
    const std::int64_t chunks = kind >= plan::kFirstLayerBlock ? plan::tensor_pieces(plan) : 1;
    const lower::Choice choice = lower::choose(draft.operators[kind], draft.tensors[kind],
                                               context.model, plan, draft.cuts, chunks);
    draft.steps[kind] = lower::lower_block(draft.operators[kind], choice, kernels);
  }
}

}  // namespace orrery::parallel
