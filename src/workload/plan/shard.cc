// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/shard.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "collective/token_exchange.h"
#include "workload/plan/key_exchange.h"
#include "workload/plan/layout.h"
#include "workload/plan/lora.h"
#include "workload/plan/modules.h"
#include "workload/plan/plan_lists.h"
#include "workload/plan/routing.h"
#include "workload/plan/unquantized.h"

namespace orrery::plan {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Megatron-LM's TEGroupedMLP pads the rows of every expert for narrow GEMMs by a copy; merged
/// exchanges write them padded.
bool pads_experts(const Plan& plan) {
  return plan.expert_gemms == ExpertGemms::per_expert && plan.quantization != Quantization::none &&
         plan.moe_dispatch != MoeDispatch::hierarchical;
}

double token_copies(const zoo::Model& model, const Plan& plan) {
  const bool merges = plan.moe_dispatch == MoeDispatch::hierarchical && plan.ep > 1;
  return merges ? collective::places_reached(static_cast<double>(plan.ep), zoo::token_route(model))
                : 0;
}

/// The RMSNorm of a module in Python: 8 kernels that pass 36 bytes an element of 16 bits (cast,
/// square, mean, product, cast, scale and two of rows); backward 14 and 84, for a trained scale 16
/// and 92. What meets the residual branch stays as it is.
void write_out_norm(zoo::ModelOperator& op) {
  const Bytes x = op.forward_bytes / 2;
  const int scale = is_trained(op) ? 2 : 0;
  op.forward_bytes = 18 * x;
  op.forward_kernels = 8;
  op.backward_bytes += (42 + 2 * scale - 5) * x;
  op.backward_kernels += 14 + scale - 3;
}

void write_out_norms(std::vector<zoo::ModelOperator>& operators) {
  for (zoo::ModelOperator& op : operators) {
    if (op.kind == graph::OperatorKind::norm) {
      write_out_norm(op);
    }
  }
}

/// Under autocast the residual stream, norms and their gradients are fp32: twice the bytes, and a
/// kernel that casts for the products behind a norm, 3 passes of 16 bits. A compiler leaves what a
/// layer reads and writes in fp32.
void widen_residual(const zoo::Model& model, const Plan& plan, zoo::ModelOperator& op) {
  if (op.role == graph::OperatorRole::residual) {
    op.forward_bytes += 2 * hidden_bytes(model, plan);
  } else if (op.kind == graph::OperatorKind::norm && op.role != graph::OperatorRole::norm_heads) {
    const Bytes x = op.forward_bytes / 2;
    op.forward_bytes += (plan.fused_kernels ? 1 : 5) * x;
    op.backward_bytes += plan.fused_kernels ? x : op.backward_bytes + 3 * x;
    op.forward_kernels += plan.fused_kernels ? 0 : 1;
    op.backward_kernels += plan.fused_kernels ? 0 : 1;
  }
}

/// Gives a rotation its modules' kernels. Backward of transformers' rotate_half: 9 kernels of 15
/// passes a tensor, since every half is padded with zeros and added.
void use_rotation(const zoo::Model& model, const Plan& plan, zoo::ModelOperator& op) {
  if (plan.autograd == Autograd::hugging_face) {
    op.backward_bytes = op.forward_bytes * 1.5;
    op.backward_kernels = 18;
    return;
  }
  const int passes = titan_rotation_passes(model);
  const int before = plan.fused_kernels ? 2 : 10;
  op.forward_bytes = op.backward_bytes = op.forward_bytes / before * passes;
  op.forward_kernels = op.backward_kernels = passes - 4;  // 3 a tensor, and one for each copy
}

/// Gives a block of transformers' or torchtitan's modules their own kernels. Query, key, value,
/// gate and up have a matrix each: further launches of products, sums of the gradients of their
/// common input, of which a compiler leaves the readings, and no concatenation.
/// Source: transformers 5, models/llama/modeling_llama.py; torchtitan/models/llama/model.py; and
/// PyTorch's derivatives.yaml.
void use_modules(const zoo::Model& model, const Plan& plan,
                 std::vector<zoo::ModelOperator>& operators) {
  const bool compiled = is_torchtitan(plan) && plan.fused_kernels;
  const int sum = compiled ? 1 : 3;  // passes of one more gradient
  Bytes input{0};                    // of the last product
  int products = 2;
  for (zoo::ModelOperator& op : operators) {
    if (op.role == graph::OperatorRole::project_qkv || op.role == graph::OperatorRole::up) {
      input = graph::size_of(plan.compute_type) * op.gemm.m * op.gemm.k;
      products = is_trained(op) ? 2 : 1;
    }
    if (op.role == graph::OperatorRole::rotate) {
      use_rotation(model, plan, op);
    } else if (op.role == graph::OperatorRole::split_qkv) {
      op.forward_kernels += 2;
      op.backward_bytes = 2 * sum * input;
      op.backward_kernels += 2 * products + (compiled ? -1 : 1);
    } else if (op.role == graph::OperatorRole::activation && zoo::is_gated(model.mlp)) {
      op.backward_bytes = (compiled ? op.backward_bytes : op.forward_bytes / 5 * 9) + sum * input;
      op.forward_kernels += 1;
      op.backward_kernels += products;
    }
  }
}

/// PyTorch's attention is given a key and a value for every query head, which its context-parallel
/// ranks then exchange (torch/distributed/tensor/experimental/_attention.py).
void repeat_keys(std::vector<zoo::ModelOperator>& operators) {
  for (zoo::ModelOperator& op : operators) {
    op.key_value = op.key_value > Bytes(0) ? std::max(op.key_value, 2 * op.query) : Bytes(0);
  }
}

}  // namespace

bool fuses_softmax(const zoo::Model& model, const Plan& plan) {
  const std::int64_t keys = sequence_of(model, plan);
  return graph::size_of(plan.compute_type) == Bytes(2) && keys > 16 && keys <= 16384 &&
         keys % 4 == 0 && (model.heads / plan.tp) * plan.microbatch % 4 == 0;
}

std::int64_t sequence_of(const zoo::Model& model, const Plan& plan) {
  const std::int64_t usual =
      model.trained_positions > 0 ? model.trained_positions : model.max_positions;
  return plan.sequence == 0 ? usual : plan.sequence;
}

zoo::ShapeOptions shape_options(const zoo::Model& model, const Plan& plan) {
  return {.microbatch = plan.microbatch,
          .sequence = sequence_of(model, plan),
          .context = plan.cp,
          .type = plan.compute_type,
          .attention = plan.attention,
          .fused_kernels = plan.fused_kernels,
          .fused_softmax = plan.fused_kernels && fuses_softmax(model, plan),
          .fused_cross_entropy = plan.fused_cross_entropy,
          .experts_apart = plan.expert_gemms != ExpertGemms::grouped,
          .experts_fused = plan.expert_gemms == ExpertGemms::fused,
          .pads_experts = pads_experts(plan),
          .token_copies = token_copies(model, plan),
          .padded_vocab = round_up(model.vocab, plan.vocab_multiple * plan.tp),
          .documents = documents_of(plan).value_or(std::vector<std::int64_t>{})};
}

Bytes hidden_bytes(const zoo::Model& model, const Plan& plan) {
  return graph::size_of(plan.compute_type) * plan.microbatch *
         (sequence_of(model, plan) / plan.cp) * model.hidden;
}

Bytes boundary_bytes(const zoo::Model& model, const Plan& plan) {
  return hidden_bytes(model, plan) * model.streams;
}
Bytes message_bytes(const zoo::Model& model, const Plan& plan) {
  const bool shared = plan.sequence_parallel || plan.pipeline_send == PipelineSend::scatter_gather;
  return boundary_bytes(model, plan) / (shared ? plan.tp : 1);
}

namespace {

void append_unquantized_layers(std::vector<zoo::ModelGraph>& blocks, const zoo::Model& model,
                               const Plan& plan) {
  Plan plain = plan;
  plain.quantization = Quantization::none;
  const zoo::ShapeOptions options = shape_options(model, plain);
  const int kinds = static_cast<int>(zoo::layer_kinds(model).size());
  for (int kind = 0; kind < kinds; ++kind) {
    blocks.push_back(zoo::layer_graph(model, options, kind));
    for (zoo::ModelOperator& op : blocks.back().operators) {
      op.unquantized = true;
    }
  }
}

}  // namespace

std::vector<zoo::ModelGraph> block_graphs(const zoo::Model& model, const Plan& plan) {
  const zoo::ShapeOptions options = shape_options(model, plan);
  std::vector<zoo::ModelGraph> blocks;
  blocks.push_back(zoo::embedding_graph(model, options));
  blocks.push_back(zoo::head_graph(model, options));
  const int kinds = static_cast<int>(zoo::layer_kinds(model).size());
  for (int kind = 0; kind < kinds; ++kind) {
    blocks.push_back(zoo::layer_graph(model, options, kind));
  }
  for (BlockKind kind = 0; kind < blocks.size() && !plan.unquantized_modules.empty(); ++kind) {
    mark_unquantized(blocks[kind].operators, plan);
  }
  if (has_unquantized_layers(plan)) {
    append_unquantized_layers(blocks, model, plan);
  }
  for (BlockKind kind = 0; plan.lora_rank > 0 && kind < blocks.size(); ++kind) {
    blocks[kind] = with_adapters(std::move(blocks[kind]), plan, kind);
  }
  for (zoo::ModelGraph& block : blocks) {
    for (zoo::ModelOperator& op : block.operators) {
      if (plan.autocast && plan.autograd == Autograd::pytorch) {
        widen_residual(model, plan, op);
      }
    }
    if (writes_out_norms(model, plan)) {
      write_out_norms(block.operators);
    }
    if (plan.autograd == Autograd::hugging_face || is_torchtitan(plan)) {
      use_modules(model, plan, block.operators);
    }
    if (merges_keys(plan)) {
      repeat_keys(block.operators);
    }
  }
  return blocks;
}

zoo::ModelOperator shard(zoo::ModelOperator op, std::int64_t t, bool sequence_parallel) {
  if (op.gemm_split == zoo::GemmSplit::column) {
    op.gemm.n /= t;
  } else if (op.gemm_split == zoo::GemmSplit::row) {
    op.gemm.k /= t;
  } else if (op.gemm_split == zoo::GemmSplit::heads) {
    op.gemm.batch /= t;
  }
  const bool splits_bytes =
      op.split == zoo::Split::tensor || (op.split == zoo::Split::sequence && sequence_parallel);
  const std::int64_t share = splits_bytes ? t : 1;
  const std::int64_t flop_share = op.gemm_split == zoo::GemmSplit::none ? share : t;
  op.forward_flops = op.forward_flops / flop_share;
  op.model_flops = op.model_flops / flop_share;
  op.backward_flops = op.backward_flops / flop_share;
  op.forward_bytes = op.forward_bytes / share;
  op.backward_bytes = op.backward_bytes / share;
  op.saved = op.saved / share;
  op.query = op.query / t;
  op.key_value = op.key_value / t;
  if (op.gemm_split == zoo::GemmSplit::none && op.has_weight && !op.all_tokens) {
    op.gemm.m = (op.gemm.m + share - 1) / share;
  }
  if (op.gemm_split == zoo::GemmSplit::column || op.gemm_split == zoo::GemmSplit::row ||
      (op.gemm_split == zoo::GemmSplit::heads && op.has_weight)) {
    op.parameters = (op.parameters + t - 1) / t;
  }
  return op;
}

double expert_load(const Plan& plan, std::int64_t experts) {
  if (plan.moe_capacity > 0 || plan.moe_spread == 0) {
    return plan.moe_capacity > 0 ? plan.moe_capacity : plan.moe_imbalance;
  }
  return busiest_rank(plan.moe_spread, plan.ep, experts);
}

namespace {

/// The bias of fc2 goes on expert by expert (expert_operators.cc): two kernels for each forward,
/// five backward and two more that add the gradients of fc1's and fc2's bias to their buffers
/// (Megatron-Core's hook), beside a concatenation and a conversion for all.
void launch_bias_by_expert(zoo::ModelOperator& op, const Plan& plan) {
  constexpr int kForward = 2;
  constexpr int kBackward = 7;
  constexpr int kOfAll = 2;
  const int local = static_cast<int>(op.experts / plan.ep);
  op.forward_kernels = kForward * local + kOfAll;
  op.backward_kernels = kBackward * local + kOfAll;
}

}  // namespace

zoo::ModelOperator shard(zoo::ModelOperator op, const Plan& plan) {
  if (!op.expert) {
    return shard(std::move(op), plan.tp, plan.sequence_parallel);
  }
  if (op.role == graph::OperatorRole::expert_bias) {
    launch_bias_by_expert(op, plan);
  }
  const std::int64_t etp = expert_tensor_parallel(plan);
  const double load = expert_load(plan, op.experts);
  const double spread = load / static_cast<double>(plan.tp);
  const double rows = spread * static_cast<double>(plan.ep * etp);
  const bool gathered = op.gemm_split == zoo::GemmSplit::column;
  const double traffic = gathered ? spread * static_cast<double>(etp) : spread;
  op.gemm.batch /= plan.ep;
  op.gemm.m = static_cast<std::int64_t>(std::ceil(static_cast<double>(op.gemm.m) * rows));
  op.gemm.n /= op.gemm_split == zoo::GemmSplit::column ? etp : 1;
  op.gemm.k /= op.gemm_split == zoo::GemmSplit::row ? etp : 1;
  for (Flops* flops : {&op.forward_flops, &op.model_flops, &op.backward_flops}) {
    *flops = *flops * spread;
  }
  for (Bytes* bytes : {&op.forward_bytes, &op.backward_bytes, &op.saved}) {
    *bytes = *bytes * traffic;
  }
  op.routed = op.routed * spread;
  op.parameters = (op.parameters + plan.ep * etp - 1) / (plan.ep * etp);
  return op;
}

std::int64_t weight_elements(const zoo::ModelOperator& op) {
  return op.has_weight ? op.gemm.batch * op.gemm.n * op.gemm.k : 0;
}

}  // namespace orrery::plan
