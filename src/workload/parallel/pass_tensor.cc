// SPDX-License-Identifier: Apache-2.0
/// Tensor parallelism, with and without sequence parallelism (SP).
///
///   boundary   forward                    backward
///   enter      SP: all-gather before      all-reduce (SP: reduce-scatter) of the input gradient,
///                                         beside the weight gradient; SP: the saved input is
///                                         gathered again beside the input gradient
///   leave      all-reduce                 SP: all-gather before
///              (SP: reduce-scatter) after
///
/// The loss over a split vocabulary adds three all-reduces of one fp32 value per token (maximum,
/// predicted logit, sum of exponentials). With SP the gradients of norms and biases that every rank
/// holds for its own tokens are summed over tp once per step, in one all-reduce.
///
/// Stage boundaries: with SP every rank sends its 1/t of the tokens; with scatter_gather it sends
/// 1/t and the receiver gathers over tp; whole sends everything t times.
///
/// Source: Shoeybi et al. 2019 (Megatron-LM); Korthikanti et al. 2022, section 4.2.2; Narayanan et
/// al., SC'21, section 4.1 (scatter/gather).
#include <algorithm>

#include "workload/parallel/block_steps.h"
#include "workload/parallel/passes.h"
#include "workload/parallel/shard.h"

namespace orrery {
namespace {

constexpr int kLossReductions = 3;

class BoundaryInserter {
 public:
  BoundaryInserter(const std::vector<ModelOperator>& operators, const Context& context)
      : operators_(operators),
        sequence_parallel_(context.plan.sequence_parallel),
        overlap_(context.plan.overlap_tp),
        boundary_(boundary_bytes(context.model, context.plan)),
        loss_(size_of(DataType::fp32) * context.plan.microbatch *
              (sequence_of(context.model, context.plan) / context.plan.cp)) {}

  std::vector<Step> forward(std::vector<Step> steps) {
    result_.clear();
    for (Step& step : steps) {
      const ModelOperator& op = operator_of(step);
      if (op.boundary == TensorBoundary::enter && sequence_parallel_) {
        push(CollectiveKind::all_gather, boundary_, Phase::forward, step.source);
      }
      for (int i = 0; op.kind == OperatorKind::loss && i < kLossReductions; ++i) {
        push(CollectiveKind::all_reduce, loss_, Phase::forward, step.source);
      }
      const int source = step.source;
      result_.push_back(std::move(step));
      if (op.boundary == TensorBoundary::leave) {
        push(reduction(), boundary_, Phase::forward, source);
      }
    }
    return std::move(result_);
  }

  std::vector<Step> backward(std::vector<Step> steps) {
    result_.clear();
    for (Step& step : steps) {
      const ModelOperator& op = operator_of(step);
      const int source = step.source;
      const Part part = step.part;
      const bool enters = op.boundary == TensorBoundary::enter;
      const bool leaves = op.boundary == TensorBoundary::leave;
      if (part == Part::input_gradient && sequence_parallel_ && (enters || leaves)) {
        push(CollectiveKind::all_gather, boundary_, Phase::backward, source);
        if (enters) {  // the saved input, which only the weight gradient needs
          result_.back().reads = Value::none;
          result_.back().writes = Value::input;
          hold(Value::input);
        }
      }
      if (part == Part::weight_gradient && enters && sequence_parallel_) {
        step.reads = Value::input;
      }
      result_.push_back(std::move(step));
      if (part == Part::input_gradient && enters) {
        push(reduction(), boundary_, Phase::backward, source);
        hold(Value::flow);
      }
    }
    return std::move(result_);
  }

 private:
  /// Without overlap the compute stream waits for the collective just issued.
  void hold(Value value) {
    if (!overlap_) {
      result_.push_back(wait_step("tp_done", value, Phase::backward));
      result_.back().source = result_[result_.size() - 2].source;
    }
  }
  const ModelOperator& operator_of(const Step& step) const {
    return operators_[static_cast<std::size_t>(step.source)];
  }
  CollectiveKind reduction() const {
    return sequence_parallel_ ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  }
  void push(CollectiveKind kind, Bytes bytes, Phase phase, int source) {
    result_.push_back(collective_step(Axis::tp, kind, bytes, phase));
    result_.back().source = source;
  }

  const std::vector<ModelOperator>& operators_;
  bool sequence_parallel_;
  bool overlap_;
  Bytes boundary_;
  Bytes loss_;
  std::vector<Step> result_;
};

/// Cuts the messages of one end of a chunk to a rank's share.
void shard_messages(std::vector<Step>& steps, const Context& context, Phase phase) {
  const Plan& plan = context.plan;
  const bool gather = !plan.sequence_parallel && plan.pipeline_send == PipelineSend::scatter_gather;
  if (!plan.sequence_parallel && !gather) {
    return;
  }
  bool receives = false;
  for (Step& step : steps) {
    if (step.node.kind == Node::Kind::send || step.node.kind == Node::Kind::receive) {
      step.node.bytes = step.node.bytes / plan.tp;
      receives = receives || step.node.kind == Node::Kind::receive;
    }
  }
  if (receives && gather) {
    steps.push_back(collective_step(Axis::tp, CollectiveKind::all_gather,
                                    boundary_bytes(context.model, plan), phase));
  }
}

/// Parameters that every tp rank holds whole and that see only its own tokens under SP.
std::int64_t replicated_parameters(const Draft& draft, const RoleDraft& role) {
  std::int64_t sum = 0;
  for (const ChunkDraft& chunk : role.chunks) {
    for (const Block& block : chunk.blocks) {
      for (const ModelOperator& op : draft.operators[block.kind]) {
        sum += op.gemm_split == GemmSplit::none ? op.parameters : 0;
      }
    }
  }
  return sum;
}

}  // namespace

void passes::tensor(Draft& draft, const Context& context) {
  const Plan& plan = context.plan;
  if (plan.tp == 1) {
    return;
  }
  for (BlockKind kind = 0; kind < draft.steps.size(); ++kind) {
    for (ModelOperator& op : draft.operators[kind]) {
      op = op.expert ? std::move(op) : shard(std::move(op), plan.tp, plan.sequence_parallel);
    }
    BlockSteps steps = block_steps(draft.operators[kind], plan);
    BoundaryInserter inserter(draft.operators[kind], context);
    draft.steps[kind] = {.forward = inserter.forward(std::move(steps.forward)),
                         .recompute = {},
                         .backward = inserter.backward(std::move(steps.backward))};
  }
  for (RoleDraft& role : draft.roles) {
    for (ChunkDraft& chunk : role.chunks) {
      shard_messages(chunk.forward_begin, context, Phase::forward);
      shard_messages(chunk.forward_end, context, Phase::forward);
      shard_messages(chunk.backward_begin, context, Phase::backward);
      shard_messages(chunk.backward_end, context, Phase::backward);
    }
    const std::int64_t replicated = replicated_parameters(draft, role);
    if (plan.sequence_parallel && replicated > 0) {
      role.finish.push_back(collective_step(Axis::tp, CollectiveKind::all_reduce,
                                            size_of(plan.grad_reduce_type) * replicated,
                                            Phase::optimizer));
    }
  }
}

}  // namespace orrery
