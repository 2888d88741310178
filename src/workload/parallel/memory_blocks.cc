// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/memory_blocks.h"

#include <algorithm>
#include <string_view>

#include "workload/parallel/layout.h"
#include "workload/parallel/shard.h"

namespace orrery {
namespace {

class BlockMeter {
 public:
  BlockMeter(const Plan& plan, BlockKind kind, Bytes boundary, bool recompute)
      : plan_(plan), is_layer_(kind >= kFirstLayerBlock), boundary_(boundary) {
    recompute_ = recompute ? plan.recompute : Recompute::none;
  }

  BlockMemory measure(const std::vector<ModelOperator>& operators) {
    for (const ModelOperator& whole : operators) {
      const ModelOperator op = shard(whole, plan_);
      count(op);
      gradients(op);
      exchanges(op);
    }
    if (is_layer_ && recompute_ == Recompute::full) {
      block_.kept += boundary_ / (plan_.sequence_parallel ? plan_.tp : 1);
    }
    const Bytes gathered = plan_.sequence_parallel ? boundary_ : Bytes(0);
    block_.forward_work = std::max(gathered + context_, routed_);
    block_.backward_work = gathered + widest_ + weight_ + std::max(2 * context_, routed_);
    return block_;
  }

 private:
  bool recomputes(const ModelOperator& op) const {
    return is_layer_ && (recompute_ == Recompute::full || (recompute_ == Recompute::selective &&
                                                           op.recompute != RecomputeGroup::never));
  }

  void count(const ModelOperator& op) {
    block_.parameters += op.parameters;
    block_.expert_parameters += op.expert ? op.parameters : 0;
    (op.kind == OperatorKind::loss ? block_.logits
     : recomputes(op)              ? block_.recomputed
                                   : block_.kept) += op.saved;
  }

  void gradients(const ModelOperator& op) {
    if (!plan_.fused_grad_accumulation) {
      const std::int64_t elements = std::max(weight_elements(op), op.parameters);
      weight_ = std::max(weight_, bytes_of(plan_.compute_type, elements));
    }
    if (op.kind != OperatorKind::gemm && op.kind != OperatorKind::grouped_gemm) {
      return;
    }
    const Bytes rows = size_of(plan_.compute_type) * op.gemm.batch * op.gemm.m;
    const bool logits = op.name.ends_with("logits_gemm");
    if (logits) {
      block_.logits_work = std::max(block_.logits_work, rows * op.gemm.n);
    }
    widest_ = std::max(widest_, rows * op.gemm.k + (logits ? Bytes(0) : rows * op.gemm.n));
    if (op.has_weight) {
      const bool scattered = op.gemm_split != GemmSplit::column && plan_.sequence_parallel;
      const Bytes output = rows * op.gemm.n / (scattered && !op.expert ? plan_.tp : 1);
      block_.held += op.saved + output;
      block_.held_gradients += output;
    }
  }

  /// Buffers of cp and of experts.
  void exchanges(const ModelOperator& op) {
    if (plan_.cp > 1 && op.key_value > Bytes(0)) {
      context_ = std::max(context_, context_buffers(op));
    }
    if (op.boundary == TensorBoundary::dispatch) {
      const std::int64_t inside = expert_tensor_parallel(plan_);
      const Bytes tokens = boundary_ * (plan_.ep * inside) / plan_.tp;
      const bool gathers = plan_.moe_dispatch == MoeDispatch::all_gather;
      routed_ = std::max(routed_, op.routed * inside + (gathers ? tokens : op.routed));
    }
  }

  Bytes context_buffers(const ModelOperator& op) const {
    const Bytes converted = 2 * op.query + op.key_value;
    switch (plan_.cp_exchange) {
      case ContextExchange::p2p:
        return 2 * op.key_value;
      case ContextExchange::all_gather:
        return plan_.cp * op.key_value;
      case ContextExchange::a2a:
        return converted;
      case ContextExchange::a2a_p2p:
        return converted + 2 * op.key_value;
    }
    return Bytes(0);
  }

  const Plan& plan_;
  bool is_layer_;
  Bytes boundary_;
  Recompute recompute_ = Recompute::none;
  BlockMemory block_;
  Bytes widest_{0};   // input and output gradient of one GEMM
  Bytes weight_{0};   // gradient of one weight
  Bytes context_{0};  // buffers of cp, forward
  Bytes routed_{0};   // buffers of experts
};

}  // namespace

BlockMemories block_memories(const Model& model, const Plan& plan) {
  const auto operators = block_operators(model, plan);
  BlockMemories result{.blocks = {}, .plain = {}, .boundary = boundary_bytes(model, plan)};
  for (BlockKind kind = 0; kind < operators.size(); ++kind) {
    for (const bool recompute : {true, false}) {
      BlockMeter meter(plan, kind, result.boundary, recompute);
      (recompute ? result.blocks : result.plain).push_back(meter.measure(operators[kind]));
    }
  }
  if (model.tied_embedding) {
    for (const ModelOperator& op : operators[kHeadBlock]) {
      result.tied_copy += op.name == "logits_gemm" ? weight_elements(op) / plan.tp : 0;
    }
  }
  return result;
}

}  // namespace orrery
