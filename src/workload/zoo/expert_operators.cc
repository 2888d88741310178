// SPDX-License-Identifier: Apache-2.0
/// Mixture of experts (Shazeer et al. 2017; Lepikhin et al. 2020, "GShard"; shared experts: Dai et
/// al. 2024, "DeepSeekMoE"), without dropped tokens and with equal load on all experts:
///
///   router (T x H x E), top-k, [latent down], permute | dispatch | fc1, activation, fc2 | combine
///   | unpermute with weighted sum, [latent up]; shared expert beside it
///
/// All counts are those of T top_k rows over all E experts.
#include <string>
#include <utility>

#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

/// Rows that all experts get together.
std::int64_t routed_rows(const Shapes& shapes) {
  return shapes.tokens * shapes.model.top_k;
}

/// Width of the rows that are sent to experts.
std::int64_t routed_width(const Shapes& shapes) {
  const Model& model = shapes.model;
  return model.expert.latent > 0 ? model.expert.latent : model.hidden;
}

/// Returns the bytes that rows of tokens pass on their way to the experts, or back, beside the
/// exchange: each token is copied to its top_k destinations (reads T, writes T top_k rows), and
/// what arrives is sorted by expert (reads and writes T top_k rows; Megatron-LM's all-to-all
/// dispatcher). An exchange that merges copies takes the tokens as they are; what arrives is copied
/// to its experts (reads T token_copies, writes T top_k rows; its flex dispatcher). Padding copies
/// all rows once more.
Bytes moves(const Shapes& shapes) {
  const Bytes tokens = shapes.wide(routed_width(shapes));
  const Bytes rows = shapes.tensor(routed_rows(shapes), routed_width(shapes));
  const double copies = shapes.options.token_copies;
  const Bytes moved = copies > 0 ? tokens * copies + rows : tokens + 3 * rows;
  return shapes.options.pads_experts ? moved + 2 * rows : moved;
}

/// Kernels of moves().
int move_kernels(const Shapes& shapes) {
  return (shapes.options.token_copies > 0 ? 1 : 2) + (shapes.options.pads_experts ? 1 : 0);
}

/// Scores, top-k and its weights over T x E fp32 logits, then the moves of the chosen rows.
/// Backward moves the gradients back and sums them.
/// Kernels beside the moves, fused: top-k with scores, balancing loss (2), rows per expert (3),
/// maps of rows (2); else top-k (2), softmax, zeros (2), scatters (2), conversion, balancing loss
/// (8), rows per expert (5), maps of rows (3). They handle T x E values or fewer.
ModelOperator routing(const Shapes& shapes) {
  const bool fused = shapes.options.fused_kernels;
  const Bytes scores = graph::size_of(graph::DataType::fp32) * shapes.tokens * shapes.model.experts;
  const Bytes rows = moves(shapes);
  const int kernels = move_kernels(shapes);
  ModelOperator op = streaming("routing", Role::routing, graph::OperatorKind::permute,
                               {.forward = (fused ? 2 : 8) * scores + rows,
                                .forward_kernels = (fused ? 8 : 24) + kernels,
                                .backward = (fused ? 2 : 5) * scores + rows,
                                .backward_kernels = (fused ? 3 : 12) + kernels});
  return op;
}

/// Appends all experts' matrices at once; the rows of one expert are those of equal load.
int append_expert_matrix(GraphBuilder& block, const Shapes& shapes, Matrix matrix, int x) {
  const Model& model = shapes.model;
  const std::int64_t rows = routed_rows(shapes);
  const Extent in = block.tensor(x).extents[1];
  const std::int64_t out = matrix.out.size;
  const int weight = block.parameter({{Dim::experts, model.experts}, in, matrix.out});
  const int result = block.activation({{Dim::rows, rows}, matrix.out});
  ModelOperator op;
  op.name = std::move(matrix.name);
  op.role = matrix.role;
  op.kind =
      shapes.options.experts_apart ? graph::OperatorKind::gemm : graph::OperatorKind::grouped_gemm;
  op.gemm = {.batch = model.experts,
             .m = (rows + model.experts - 1) / model.experts,
             .n = out,
             .k = in.size};
  op.expert = true;
  op.experts = model.experts;
  op.routed = op.role == Role::expert_up ? block.tensor(x).bytes() : Bytes(0);
  op.has_weight = true;
  op.forward_flops = op.model_flops =
      graph::flops_of({.batch = 1, .m = rows, .n = out, .k = in.size});
  op.backward_flops = 2 * op.forward_flops;
  op.forward_bytes =
      block.tensor(x).bytes() + block.tensor(weight).bytes() + block.tensor(result).bytes();
  op.backward_kernels = 0;
  block.add(std::move(op), {.reads = {x, weight}, .writes = {result}, .saves = {x}},
            model.expert.bias ? model.experts * out : 0);
  return result;
}

/// Appends the activation between fc1 and fc2; GEMMs that apply it leave no kernel. Gate and up,
/// where clamped, are clamped eagerly (Megatron-LM's weighted_bias_quick_geglu_impl): each clamped
/// (2 + 2 bytes an element), put together (2 + 2); backward comparisons (2 + 1 each, two for up,
/// and their conjunction, 1 + 1 + 1), the selection (1 + 2 + 2), and the concatenation of both
/// gradients (2 + 2): 11 on average.
int append_expert_activation(GraphBuilder& block, const Shapes& shapes, int x) {
  const ExpertShape& expert = shapes.model.expert;
  ModelOperator op = activation(shapes, routed_rows(shapes), expert.ffn, expert.bias);
  op.name.insert(0, "expert_");
  op.role = Role::expert_activation;
  op.expert = true;
  op.experts = shapes.model.experts;
  TensorList clamped;
  if (shapes.options.experts_fused) {
    op.forward_bytes = op.backward_bytes = Bytes(0);
    op.forward_kernels = op.backward_kernels = 0;
  } else if (shapes.options.experts_apart && expert.clamped) {
    const Bytes halves = 2 * shapes.tensor(routed_rows(shapes), expert.ffn);
    op.forward_bytes += 4 * halves;
    op.forward_kernels += 3;
    op.backward_bytes += (11 + 4) * halves / 2;
    op.backward_kernels += 7;
    const graph::ModelTensor& rows = block.tensor(x);
    clamped.add(block.buffer({rows.extents[0], rows.extents[1]}, shapes.options.type));
  }
  return append_activation(block, shapes, std::move(op), x, clamped);
}

/// The bias b of fc2, weighted like the rows themselves: t + b p in fp32, expert by expert, put
/// together and made narrow again (TEGroupedMLP._apply_bias). Forward b p (written), the sum (2 + 4
/// read, 4 written), the concatenation (4 + 4), the conversion (4 + 2); backward the conversion (2
/// + 4), the rows' gradient (4 + 2), their concatenation (2 + 2), and for b and p each a product (4
/// + 4) and its sum (4): bytes of an element where t has 2.
ModelOperator expert_bias(const Shapes& shapes) {
  const Bytes narrow = shapes.tensor(routed_rows(shapes), routed_width(shapes));
  const Bytes wide =
      graph::size_of(graph::DataType::fp32) * routed_rows(shapes) * routed_width(shapes);
  ModelOperator op = streaming("expert_bias", Role::expert_bias, graph::OperatorKind::elementwise,
                               {.forward = 6 * wide + 2 * narrow,
                                .forward_kernels = 4,
                                .backward = 8 * wide + 4 * narrow,
                                .backward_kernels = 7});
  op.expert = true;
  op.experts = shapes.model.experts;
  return op;
}

/// Undoes the moves of `routing`; the sum over top_k writes one row per token. The weights are
/// applied by the activation (Megatron-LM), so that no row is saved here.
ModelOperator unpermute(const Shapes& shapes) {
  const Bytes rows = moves(shapes);
  const int kernels = move_kernels(shapes);
  return streaming("unpermute", Role::unpermute, graph::OperatorKind::permute,
                   {rows, kernels, rows, kernels});
}

/// Appends the shared expert beside the routed experts, whose result is y; its input x is the one
/// that the router has kept. A gate (Qwen2-MoE) multiplies its output by sigmoid(x w), w of H x 1.
int append_shared(GraphBuilder& block, const Shapes& shapes, int x, int y) {
  const Model& model = shapes.model;
  const std::size_t first = block.operators().size();
  int shared = append_mlp(block, shapes, x, Branch::shared_expert, model.expert.shared_ffn, false);
  const Bytes size = shapes.hidden_tensor;
  if (model.expert.normed) {
    shared = append_norm(block, shapes, "shared_norm", Role::norm_post, shared, model.hidden);
    y = append_norm(block, shapes, "expert_norm", Role::norm_post, y, model.hidden);
  }
  ModelOperator sum = streaming("shared_sum", Role::shared_sum, graph::OperatorKind::elementwise,
                                {.forward = 3 * size, .forward_kernels = 1});
  TensorList reads{y, shared};
  TensorList kept;
  if (model.expert.shared_gate) {
    sum.name = "shared_gate_sum";
    sum.forward_bytes += 3 * size;  // the gate reads x; the product reads and writes
    sum.forward_kernels = 4;
    sum.backward_bytes = 6 * size;
    sum.backward_kernels = 4;
    reads.add(x);
    kept.add(shared);  // for the gate's gradient
  }
  const int result =
      block.map(std::move(sum), reads, kept, model.expert.shared_gate ? model.hidden : 0);
  mark(block.operators(), first, Branch::shared_expert);
  return result;
}

/// Appends the router, whose logits are fp32, as Megatron-LM's router_gating_linear, and the choice
/// of experts; returns their rows. The router's weight is on every rank. Its input, which the
/// experts' rows and the shared expert also come from, is kept here.
int append_routing(GraphBuilder& block, const Shapes& shapes, int x) {
  const Model& model = shapes.model;
  const ExpertShape& expert = model.expert;
  int scored = x;
  if (expert.normed) {
    scored = block.map(norm("router_norm", Role::norm_post, shapes, model.hidden), {x}, {x},
                       model.hidden + model.experts);
    x = append_norm(block, shapes, "routed_norm", Role::norm_post, x, model.hidden);
  }
  const int logits = block.product({.name = "router_gemm",
                                    .role = Role::router,
                                    .out = {Dim::none, model.experts},
                                    .further = expert.router_bias ? model.experts : 0},
                                   {scored});
  int sent = x;
  if (expert.latent > 0) {
    sent = block.product({.name = "latent_down_gemm",
                          .role = Role::latent_down,
                          .out = {Dim::latent, expert.latent},
                          .keeps_input = false},
                         {x});
  }
  const int scores =
      block.buffer({shapes.rows(), {Dim::none, model.experts}}, graph::DataType::fp32);
  const int rows =
      block.activation({{Dim::rows, routed_rows(shapes)}, block.tensor(sent).extents[1]});
  block.add(routing(shapes),
            {.reads = {logits, sent}, .writes = {rows, scores}, .saves = {scores}});
  return rows;
}

}  // namespace

int append_experts(GraphBuilder& block, const Shapes& shapes, int x) {
  const Model& model = shapes.model;
  const ExpertShape& expert = model.expert;
  const std::int64_t inner = (is_gated(model.mlp) ? 2 : 1) * expert.ffn;
  Operators& operators = block.operators();
  const std::size_t first = operators.size();
  const int rows = append_routing(block, shapes, x);
  const Extent width = block.tensor(rows).extents[1];
  const int up = append_expert_matrix(
      block, shapes,
      {.name = "expert_fc1_gemm", .role = Role::expert_up, .out = {Dim::inner, inner}}, rows);
  const int active = append_expert_activation(block, shapes, up);
  int down = append_expert_matrix(
      block, shapes, {.name = "expert_fc2_gemm", .role = Role::expert_down, .out = width}, active);
  if (expert.bias && shapes.options.experts_apart && !shapes.options.experts_fused) {
    down = block.map(expert_bias(shapes), {down});
  }
  int y = block.activation({shapes.rows(), width});
  block.add(unpermute(shapes), {.reads = {down}, .writes = {y}});
  if (expert.latent > 0) {
    y = block.product({.name = "latent_up_gemm", .role = Role::latent_up, .out = shapes.width()},
                      {y});
  }
  if (expert.shared_ffn > 0) {
    y = append_shared(block, shapes, x, y);
  }
  mark(operators, first, Branch::experts);
  return y;
}

}  // namespace orrery::zoo
