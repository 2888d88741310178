// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/block_memory.h"

#include <algorithm>
#include <vector>

#include "workload/memory/autograd_memory.h"
#include "workload/plan/layout.h"
#include "workload/plan/lora.h"
#include "workload/plan/modules.h"
#include "workload/plan/quantize.h"
#include "workload/plan/recompute.h"
#include "workload/plan/shard.h"

namespace orrery::footprint {
namespace {

/// BlockBytes are bytes in the compute type that all blocks of a rank refer to.
struct BlockBytes {
  Bytes hidden{0};      ///< T H
  Bytes boundary{0};    ///< of every residual stream
  Bytes tied_table{0};  ///< the vocabulary's table, where the head reads the embedding's
};

class BlockMeter {
 public:
  BlockMeter(const zoo::Model& model, const plan::Plan& plan, plan::BlockKind kind,
             BlockBytes bytes, bool recompute)
      : model_(model),
        plan_(plan),
        kind_(kind),
        recomputes_(recompute && kind >= plan::kFirstLayerBlock),
        hidden_(bytes.hidden),
        boundary_(bytes.boundary),
        tied_table_(bytes.tied_table),
        every_other_(recomputes_ && plan::recomputes_module(plan, "every_other_gemm")) {}

  /// `operators`: of one rank.
  BlockMemory measure(const std::vector<zoo::ModelOperator>& operators) {
    const std::vector<bool> dropped = dropped_by(operators);
    bool normed = false;
    for (std::size_t i = 0; i < operators.size(); ++i) {
      const Bytes kept =
          kept_by_autograd(model_, plan_, operators[i], saved(operators, i, dropped[i]), normed);
      if (every_other_) {
        const Bytes stays = kept_beside_every_other(model_, plan_, operators[i], kept, normed);
        block_.recomputed += kept - stays;
        count(operators[i], stays, false);
      } else {
        count(operators[i], kept, dropped[i]);
      }
      normed = normed || operators[i].kind == graph::OperatorKind::norm;
      gradients(operators[i]);
      exchanges(operators[i]);
      cast(operators[i]);
    }
    if (recomputes_ && plan_.recompute == plan::Recompute::full) {
      block_.kept +=
          boundary_ / (plan_.sequence_parallel ? plan_.tp : 1) * (plan_.autocast ? 2 : 1);
    }
    const Bytes gathered = plan_.sequence_parallel ? hidden_ : Bytes(0);
    block_.forward_work = std::max(gathered + context_, routed_);
    block_.backward_work = gathered + std::max(widest_ + 2 * context_, routed_ + expert_gradient_);
    if (kind_ == plan::kHeadBlock && plan_.fused_cross_entropy) {
      block_.logits_work = Bytes(0);  // the gradient takes the logits' place
    }
    if (plan_.autograd == plan::Autograd::transformer_engine) {
      work_of_engine();
    } else if (plan::is_pytorch(plan_)) {
      work_of_pytorch();
    }
    return block_;
  }

 private:
  /// Copies of weights in the compute type that stay until the backward that reads them.
  void cast(const zoo::ModelOperator& op) {
    const bool again = recomputes_ && plan_.recompute == plan::Recompute::full;
    if (plan_.autocast && op.has_weight && !again) {
      block_.kept += graph::bytes_of(plan_.compute_type, plan::weight_elements(op));
    }
  }

  void work_of_engine() {
    if (kind_ >= plan::kFirstLayerBlock) {
      block_.backward_work += hidden_ / (plan_.sequence_parallel ? plan_.tp : 1);
    } else if (kind_ == plan::kHeadBlock && plan_.fused_cross_entropy) {
      block_.weight_work = table_;
    }
  }

  /// The head's moment is that of the loss, unless the loss is fused: then of the table's gradient.
  void work_of_pytorch() {
    const Bytes tied = tied_table_ * (plan_.autocast ? 2 : 1);
    if (kind_ >= plan::kFirstLayerBlock) {
      block_.weight_work = tied;
    } else if (kind_ == plan::kEmbeddingBlock) {
      const Bytes own = plan_.free_gradients ? Bytes(0) : block_.weight_work;
      block_.weight_work = tied > Bytes(0) ? 2 * tied : own;
    } else if (plan_.fused_cross_entropy) {
      block_.backward_work -= widest_;
      block_.weight_work = table_;
    } else if (plan::has_loss_of_pytorch(plan_)) {
      // Of 12 bytes a logit `logits` has 4; forward and backward share 6, backward has 2 more.
      block_.logits_work = block_.logits + block_.logits / 2;
      // A loss of vocabulary shards (DTensor's) has its sum once more.
      block_.backward_work +=
          block_.logits / 2 - widest_ + (plan_.tp > 1 ? block_.logits : Bytes(0));
      block_.weight_work = Bytes(0);
      if (plan::gradients_come_and_go(plan_)) {  // the block's come when that of the loss has gone
        block_.backward_work -= std::min(block_.backward_work, own_gradients());
      }
    }
  }

  Bytes own_gradients() const {
    const std::int64_t trained = block_.parameters - block_.frozen - block_.expert_frozen;
    return graph::bytes_of(plan_.grad_reduce_type, trained);
  }

  /// Returns which operators' `saved` is not kept. Of several that run again one after the other
  /// the first one's input stays. One alone keeps its input and the next, which saves its result,
  /// nothing; but the attention core drops what is inside and keeps its result.
  std::vector<bool> dropped_by(const std::vector<zoo::ModelOperator>& operators) const {
    std::vector<bool> dropped(operators.size(),
                              recomputes_ && plan_.recompute == plan::Recompute::full);
    const auto again = [&](std::size_t i) {
      return i < operators.size() && runs_again(operators[i]);
    };
    for (std::size_t i = 0; i < operators.size(); ++i) {
      const bool core = operators[i].recompute == zoo::RecomputeGroup::selective;
      const bool first = i == 0 || !again(i - 1);
      if (again(i) && (core || !first)) {
        dropped[i] = true;
      } else if (again(i) && !again(i + 1) && i + 1 < operators.size()) {
        dropped[i + 1] = true;
      }
    }
    return dropped;
  }

  bool runs_again(const zoo::ModelOperator& op) const {
    return recomputes_ && plan::recompute_selects(plan_, op);
  }

  void count(const zoo::ModelOperator& op, Bytes saved, bool dropped) {
    block_.parameters += op.parameters;
    block_.expert_parameters += op.expert ? op.parameters : 0;
    (op.expert ? block_.expert_frozen : block_.frozen) += plan::is_trained(op) ? 0 : op.parameters;
    (op.expert ? block_.expert_matrices : block_.matrices) += plan::matrices_of(op, kind_);
    const std::int64_t weights = plan::weight_elements(op);
    block_.largest = std::max({block_.largest, weights, op.parameters});
    if (plan::is_packed(plan_, op)) {
      (op.expert ? block_.expert_packed : block_.packed) += weights;
    } else if (plan::is_quantized(plan_, op)) {
      (op.expert ? block_.expert_quantized : block_.quantized) += weights;
    }
    (op.kind == graph::OperatorKind::loss ? block_.logits
     : dropped                            ? block_.recomputed
                                          : block_.kept) += saved;
  }

  /// Quantised for the weight gradient; what a frozen GEMM keeps is for others.
  Bytes saved(const std::vector<zoo::ModelOperator>& operators, std::size_t i, bool dropped) const {
    const zoo::ModelOperator& op = operators[i];
    if (op.has_weight) {
      return plan::is_trained(op) ? plan::exchanged_bytes(plan_, op, op.saved) : op.saved;
    }
    const zoo::ModelOperator& next = operators[std::min(i + 1, operators.size() - 1)];
    if (op.kind == graph::OperatorKind::attention || op.kind == graph::OperatorKind::scan) {
      return op.saved + plan::kept_for_attention(plan_, next, next.saved);
    }
    const bool kept_activation =
        op.kind == graph::OperatorKind::elementwise && runs_again(op) && !dropped;
    return kept_activation ? plan::kept_activation_input(plan_, next, op.saved) : op.saved;
  }

  void gradients(const zoo::ModelOperator& op) {
    if (plan::is_trained(op) && !plan_.fused_grad_accumulation) {
      const std::int64_t elements = std::max(plan::weight_elements(op), op.parameters);
      block_.weight_work =
          std::max(block_.weight_work, graph::bytes_of(plan_.compute_type, elements));
    }
    if (op.kind != graph::OperatorKind::gemm && op.kind != graph::OperatorKind::grouped_gemm) {
      return;
    }
    const Bytes rows = graph::size_of(plan_.compute_type) * op.gemm.batch * op.gemm.m;
    const bool logits = op.role == graph::OperatorRole::logits;
    if (logits) {
      table_ = graph::bytes_of(plan_.compute_type, op.gemm.n * op.gemm.k);
      block_.logits_work = std::max(block_.logits_work, rows * op.gemm.n);
    }
    widest_ = std::max(widest_, rows * op.gemm.k + (logits ? Bytes(0) : rows * op.gemm.n));
    if (op.routed > Bytes(0)) {
      expert_gradient_ = std::max(expert_gradient_, rows * op.gemm.n);
    }
    if (op.has_weight && plan::is_trained(op)) {
      const bool scattered = op.gemm_split != zoo::GemmSplit::column && plan_.sequence_parallel;
      const Bytes output = rows * op.gemm.n / (scattered && !op.expert ? plan_.tp : 1);
      block_.held += plan::exchanged_bytes(plan_, op, op.saved + output);
      block_.held_gradients += plan::exchanged_bytes(plan_, op, output);
    }
  }

  /// Buffers of cp and of experts.
  void exchanges(const zoo::ModelOperator& op) {
    if (plan_.cp > 1 && op.key_value > Bytes(0)) {
      context_ = std::max(context_, context_buffers(op));
    }
    if (op.routed > Bytes(0)) {
      const std::int64_t inside = plan::expert_tensor_parallel(plan_);
      const Bytes tokens = hidden_ * (plan_.ep * inside) / plan_.tp;
      const bool gathers = plan_.moe_dispatch == plan::MoeDispatch::all_gather;
      routed_ = std::max(routed_, op.routed * inside + (gathers ? tokens : op.routed));
    }
  }

  Bytes context_buffers(const zoo::ModelOperator& op) const {
    const Bytes converted = 2 * op.query + op.key_value;
    switch (plan_.cp_exchange) {
      case plan::ContextExchange::p2p:
        return 2 * op.key_value;
      case plan::ContextExchange::all_gather:
        return plan_.cp * op.key_value;
      case plan::ContextExchange::a2a:
        return converted;
      case plan::ContextExchange::a2a_p2p:
        return converted + 2 * op.key_value;
    }
    return Bytes(0);
  }

  const zoo::Model& model_;
  const plan::Plan& plan_;
  plan::BlockKind kind_;
  bool recomputes_;
  Bytes hidden_;
  Bytes boundary_;
  Bytes tied_table_;
  bool every_other_;
  Bytes table_{0};  // of the vocabulary, of this rank
  BlockMemory block_;
  Bytes widest_{0};           // input and output gradient of one GEMM
  Bytes context_{0};          // buffers of cp, forward
  Bytes routed_{0};           // buffers of experts
  Bytes expert_gradient_{0};  // of the result of their first GEMM
};

}  // namespace

BlockMemories block_memories(const zoo::Model& model, const plan::Plan& plan) {
  auto blocks = plan::block_graphs(model, plan);
  const Bytes hidden = plan::hidden_bytes(model, plan);
  const bool recomputes =
      plan.recompute != plan::Recompute::none || !plan.recompute_modules.empty();
  BlockMemories result{.blocks = {}, .plain = {}, .boundary = plan::boundary_bytes(model, plan)};
  if (model.tied_embedding || model.mtp > 0) {
    const std::vector<zoo::ModelOperator>& head = blocks[plan::kHeadBlock].operators;
    const auto logits = std::find_if(head.begin(), head.end(), [](const zoo::ModelOperator& op) {
      return op.role == graph::OperatorRole::logits;
    });
    result.tied_copy = plan::weight_elements(*logits) / plan.tp;
  }
  const BlockBytes bytes{.hidden = hidden,
                         .boundary = result.boundary,
                         .tied_table = model.tied_embedding
                                           ? graph::bytes_of(plan.compute_type, result.tied_copy)
                                           : Bytes(0)};
  for (plan::BlockKind kind = 0; kind < blocks.size(); ++kind) {
    std::vector<zoo::ModelOperator>& operators = blocks[kind].operators;
    for (zoo::ModelOperator& op : operators) {
      op = plan::shard(std::move(op), plan);
    }
    const auto measure = [&](bool recompute) {
      return BlockMeter(model, plan, kind, bytes, recompute).measure(operators);
    };
    result.plain.push_back(measure(false));
    result.blocks.push_back(recomputes ? measure(true) : result.plain.back());
  }
  result.workspaces = library_workspaces(plan, blocks);
  return result;
}

}  // namespace orrery::footprint
