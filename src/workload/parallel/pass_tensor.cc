// SPDX-License-Identifier: Apache-2.0
/// Tensor parallelism, with and without sequence parallelism (SP).
///
/// Collectives follow from how the tp ranks hold a tensor and its gradient (graph/layout.h): the
/// stream between branches (R, R), with SP (S, S) by tokens; a product cut by columns takes R and
/// gives the partial sums P of its input's gradient, one cut by rows makes P and takes R of its
/// result's gradient.
///
///   boundary   forward                    backward
///   enter      SP: all-gather before      all-reduce (SP: reduce-scatter) of the input gradient,
///                                         beside the weight gradient; SP: the saved input is
///                                         gathered again beside the input gradient
///   leave      all-reduce                 SP: all-gather before
///              (SP: reduce-scatter) after
///
/// tp_chunks n > 1 cuts a layer's GEMM and the collective at its boundary into n pieces of its
/// rows, as Transformer Engine's userbuffers do for the same three pairs:
///   gather, then GEMM   enter forward and leave backward (SP): piece i of the GEMM waits for piece
///                       i of the gather, piece i+1 is gathered beside it:  g + max(g, c) (n-1) + c
///   GEMM, then reduce   leave forward: piece i is reduced beside piece i+1 of the GEMM
/// for pieces of g and c. The gathered saved input and the reduced input gradient run beside whole
/// GEMMs in any case. Every piece pays the GEMM's launch and the collective's latency.
///
/// All-gathers of a quantised GEMM's operands move the quantised type (quantize.h).
///
/// The loss over a split vocabulary adds three all-reduces of one fp32 value per token (maximum,
/// predicted logit, sum of exponentials). With SP the gradients of norms and biases that every rank
/// holds for its own tokens are summed over tp once per step, in one all-reduce; so are those of
/// the whole matrices of adapters (lora.h).
///
/// Stage boundaries: with SP every rank sends its 1/t of the tokens; with scatter_gather it sends
/// 1/t and the receiver gathers over tp; whole sends everything t times.
///
/// Source: Shoeybi et al. 2019 (Megatron-LM); Korthikanti et al. 2022, section 4.2.2; Narayanan et
/// al., SC'21, section 4.1 (scatter/gather); Wang et al., ASPLOS 2023 (decomposed overlap).
#include <algorithm>

#include "collective/layout/steps.h"
#include "workload/parallel/block_steps.h"
#include "workload/parallel/passes.h"
#include "workload/plan/lora.h"
#include "workload/plan/quantize.h"
#include "workload/plan/shard.h"

namespace orrery::parallel {
namespace {

constexpr int kLossReductions = 3;

/// Returns the collective that converts a tensor on the tp axis; none: nothing moves.
std::optional<graph::CollectiveKind> collective_between(const graph::Placement& from,
                                                        const graph::Placement& to) {
  const auto operation = layout::operation_between(from, to);
  return from != to && operation ? layout::collective_of(*operation) : std::nullopt;
}

class BoundaryInserter {
 public:
  BoundaryInserter(const Draft& draft, plan::BlockKind kind, const Context& context,
                   std::int64_t pieces)
      : operators_(draft.operators[kind]),
        tensors_(draft.tensors[kind]),
        plan_(context.plan),
        pieces_(pieces),
        stream_(plan_.sequence_parallel ? graph::Placement::shard(0)
                                        : graph::Placement::replicate()),
        loss_(graph::size_of(graph::DataType::fp32) * context.plan.microbatch *
              (plan::sequence_of(context.model, context.plan) / context.plan.cp)) {}

  std::vector<Step> forward(std::vector<Step> steps) {
    result_.clear();
    for (Step& step : steps) {
      const zoo::ModelOperator& op = operator_of(step);
      for (int i = 0; op.kind == graph::OperatorKind::loss && i < kLossReductions; ++i) {
        push(graph::CollectiveKind::all_reduce, loss_, plan::StepPhase::forward, step.source);
      }
      const bool main = step.part == Part::forward;
      if (main && op.boundary == zoo::TensorBoundary::enter && gather_) {
        gather_then_compute(std::move(step), op, plan::StepPhase::forward);
      } else if (main && op.boundary == zoo::TensorBoundary::leave) {
        compute_then_reduce(std::move(step), op);
      } else {
        result_.push_back(std::move(step));
      }
    }
    return std::move(result_);
  }

  std::vector<Step> backward(std::vector<Step> steps) {
    result_.clear();
    for (Step& step : steps) {
      const zoo::ModelOperator& op = operator_of(step);
      const bool enters = op.boundary == zoo::TensorBoundary::enter;
      if (step.part == Part::input_gradient && op.boundary == zoo::TensorBoundary::leave &&
          gather_) {
        gather_then_compute(std::move(step), op, plan::StepPhase::backward);
        continue;
      }
      if (step.part == Part::input_gradient && enters) {
        input_gradient_of_entry(std::move(step), op);
        continue;
      }
      if (step.part == Part::weight_gradient && enters && gather_) {
        step.reads = Value::input;
      }
      result_.push_back(std::move(step));
    }
    return std::move(result_);
  }

 private:
  /// The saved input is gathered again beside the input gradient's GEMM, whose result is reduced
  /// beside the weight gradient's.
  void input_gradient_of_entry(Step step, const zoo::ModelOperator& op) {
    const int source = step.source;
    if (gather_ && plan::is_trained(op)) {
      push(gather_, plan::exchanged_bytes(plan_, op, crossing(op)), plan::StepPhase::backward,
           source);
      result_.back().reads = Value::none;
      result_.back().writes = Value::input;
      hold(Value::input);
    }
    result_.push_back(std::move(step));
    push(reduce_, crossing(op), plan::StepPhase::backward, source);
    hold(Value::flow);
  }

  void gather_then_compute(Step gemm, const zoo::ModelOperator& op, plan::StepPhase phase) {
    const Bytes bytes = plan::exchanged_bytes(plan_, op, crossing(op));
    const std::int64_t pieces = pieces_of(gemm);
    if (pieces == 1) {
      push(gather_, bytes, phase, gemm.source);
      result_.push_back(std::move(gemm));
      return;
    }
    const auto value = [](std::int64_t i) { return i % 2 == 0 ? Value::even : Value::odd; };
    for (std::int64_t i = 0; i <= pieces; ++i) {
      if (i < pieces) {
        push(gather_, bytes / pieces, phase, gemm.source);
        result_.back().writes = value(i);
      }
      if (i > 0) {
        result_.push_back(piece(gemm, i - 1, pieces));
        result_.back().reads = value(i - 1);
        result_.back().writes = i == pieces ? gemm.writes : Value::none;
      }
    }
  }

  void compute_then_reduce(Step gemm, const zoo::ModelOperator& op) {
    const std::int64_t pieces = pieces_of(gemm);
    const int source = gemm.source;
    if (pieces == 1) {
      result_.push_back(std::move(gemm));
      push(reduce_, crossing(op), plan::StepPhase::forward, source);
      return;
    }
    for (std::int64_t i = 0; i < pieces; ++i) {
      result_.push_back(piece(gemm, i, pieces));
      result_.back().writes = Value::none;
      push(reduce_, crossing(op) / pieces, plan::StepPhase::forward, source);
      result_.back().reads = Value::none;
      result_.back().writes = i + 1 == pieces ? Value::flow : Value::none;
    }
  }

  std::int64_t pieces_of(const Step& step) const {
    const graph::Operator& op = step.node.operators.front();
    return op.kind == graph::OperatorKind::gemm ? std::min(pieces_, op.gemm.m) : 1;
  }

  /// Rows i m/n to (i+1) m/n.
  Step piece(Step step, std::int64_t i, std::int64_t pieces) const {
    graph::Operator& op = step.node.operators.front();
    const std::int64_t rows = op.gemm.m;
    op.gemm.m = rows * (i + 1) / pieces - rows * i / pieces;
    op.flops = graph::flops_of(op.gemm);
    op.bytes = plan::gemm_bytes(op.gemm, op.type, plan_.compute_type);
    return step;
  }

  /// Returns the bytes of what crosses the boundary: all that enters, or the result.
  Bytes crossing(const zoo::ModelOperator& op) const {
    Bytes sum{0};
    for (const int number : op.boundary == zoo::TensorBoundary::enter ? op.reads : op.writes) {
      const graph::ModelTensor& tensor = tensors_[static_cast<std::size_t>(number)];
      sum += tensor.use == graph::ModelTensor::Use::parameter ? Bytes(0) : tensor.bytes();
    }
    return sum;
  }

  /// Without overlap the compute stream waits for the collective just issued.
  void hold(Value value) {
    if (!plan_.overlap_tp) {
      result_.push_back(wait_step("tp_done", value, plan::StepPhase::backward));
      result_.back().source = result_[result_.size() - 2].source;
    }
  }
  const zoo::ModelOperator& operator_of(const Step& step) const {
    return operators_[static_cast<std::size_t>(step.source)];
  }
  void push(std::optional<graph::CollectiveKind> kind, Bytes bytes, plan::StepPhase phase,
            int source) {
    result_.push_back(collective_step(plan::Axis::tp, *kind, bytes, phase));
    result_.back().source = source;
  }

  const std::vector<zoo::ModelOperator>& operators_;
  const std::vector<graph::ModelTensor>& tensors_;
  const plan::Plan& plan_;
  std::int64_t pieces_;
  graph::Placement stream_;  ///< of values and of gradients
  std::optional<graph::CollectiveKind> gather_ =
      collective_between(stream_, graph::Placement::replicate());
  std::optional<graph::CollectiveKind> reduce_ =
      collective_between(graph::Placement::partial(), stream_);
  Bytes loss_;
  std::vector<Step> result_;
};

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
  if (plan.tp == 1) {
    return;
  }
  draft.split.tp = plan.tp;
  draft.split.sequence = plan.sequence_parallel;
  for (plan::BlockKind kind = 0; kind < draft.steps.size(); ++kind) {
    for (zoo::ModelOperator& op : draft.operators[kind]) {
      op = op.expert ? std::move(op) : plan::shard(std::move(op), plan.tp, plan.sequence_parallel);
    }
    BlockSteps steps = block_steps(draft.operators[kind], plan);
    BoundaryInserter inserter(draft, kind, context,
                              kind >= plan::kFirstLayerBlock ? plan.tp_chunks : 1);
    draft.steps[kind] = {.forward = inserter.forward(std::move(steps.forward)),
                         .recompute = {},
                         .backward = inserter.backward(std::move(steps.backward))};
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

}  // namespace orrery::parallel
