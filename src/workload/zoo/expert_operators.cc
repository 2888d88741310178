// SPDX-License-Identifier: Apache-2.0
/// Mixture of experts (Shazeer et al. 2017; Lepikhin et al. 2020, "GShard"; shared experts: Dai et
/// al. 2024, "DeepSeekMoE"), without dropped tokens and with equal load on all experts:
///
///   router (T x H x E), top-k, [latent down], permute | dispatch | fc1, activation, fc2 | combine
///   | unpermute with weighted sum, [latent up]; shared expert beside it
///
/// All counts are those of T top_k rows over all E experts.
#include <string>

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

/// Logits in fp32, as Megatron-LM's router_gating_linear; the weight is on every rank. Its input,
/// which the experts' rows and the shared expert also come from, is saved here.
ModelOperator router(const Shapes& shapes) {
  const Model& model = shapes.model;
  ModelOperator op =
      weight_gemm("router_gemm", shapes, model.experts, model.hidden, GemmSplit::none);
  op.parameters += model.expert.router_bias ? model.experts : 0;
  return op;
}

/// Scores, top-k and its weights over T x E fp32 logits, then two moves of the chosen rows: each
/// token is copied to its top_k destinations (reads T, writes T top_k rows), and what arrives is
/// sorted by expert (reads and writes T top_k rows; Megatron-LM's all-to-all dispatcher). Backward
/// moves the gradients back and sums them.
/// Kernels, fused: top-k with scores, balancing loss (2), rows per expert (3), map of rows, copy,
/// sort (2); else top-k (2), softmax, zeros (2), scatters (2), conversion, balancing loss (8), rows
/// per expert (5), map, copy, sort (3). All but the moves handle T x E values or fewer.
ModelOperator routing(const Shapes& shapes) {
  const bool fused = shapes.options.fused_kernels;
  const Bytes scores = graph::size_of(graph::DataType::fp32) * shapes.tokens * shapes.model.experts;
  const Bytes tokens = shapes.wide(routed_width(shapes));
  const Bytes rows = shapes.tensor(routed_rows(shapes), routed_width(shapes));
  const Bytes moves = tokens + rows + 2 * rows;
  ModelOperator op = streaming("routing", graph::OperatorKind::permute, Split::sequence,
                               {.forward = (fused ? 2 : 8) * scores + moves,
                                .forward_kernels = fused ? 10 : 26,
                                .backward = (fused ? 2 : 5) * scores + moves,
                                .backward_kernels = fused ? 5 : 14});
  op.saved = scores;
  return op;
}

/// All experts' matrices at once; the rows of one expert are those of equal load.
ModelOperator expert_gemm(std::string name, const Shapes& shapes, std::int64_t out, std::int64_t in,
                          GemmSplit split) {
  const Model& model = shapes.model;
  const std::int64_t rows = routed_rows(shapes);
  ModelOperator op = weight_gemm(std::move(name), shapes, out, in, split);
  op.kind = graph::OperatorKind::grouped_gemm;
  op.gemm = {
      .batch = model.experts, .m = (rows + model.experts - 1) / model.experts, .n = out, .k = in};
  op.split = Split::tensor;
  op.expert = true;
  op.boundary = split == GemmSplit::column ? TensorBoundary::dispatch : TensorBoundary::combine;
  op.routed = shapes.tensor(rows, routed_width(shapes));
  op.forward_flops = op.model_flops = graph::flops_of({.batch = 1, .m = rows, .n = out, .k = in});
  op.backward_flops = 2 * op.forward_flops;
  op.forward_bytes =
      shapes.tensor(rows, in) + shapes.tensor(in, out) * model.experts + shapes.tensor(rows, out);
  op.saved = shapes.tensor(rows, in);
  op.parameters = model.experts * (in * out + (model.expert.bias ? out : 0));
  return op;
}

/// Undoes both moves of `routing`; the sum over top_k writes one row per token. The weights are
/// applied by the activation (Megatron-LM), so that no row is saved here.
ModelOperator unpermute(const Shapes& shapes) {
  const Bytes tokens = shapes.wide(routed_width(shapes));
  const Bytes rows = shapes.tensor(routed_rows(shapes), routed_width(shapes));
  const Bytes moves = tokens + rows + 2 * rows;
  return streaming("unpermute", graph::OperatorKind::permute, Split::sequence,
                   {moves, 2, moves, 2});
}

/// Beside the routed experts; its input is the one the router saved. With a gate (Qwen2-MoE):
/// output * sigmoid(x w), w of H x 1.
void append_shared(Operators& operators, const Shapes& shapes) {
  const Model& model = shapes.model;
  const std::size_t first = operators.size();
  append_mlp(operators, shapes, "shared_", model.expert.shared_ffn);
  operators[first].saved = Bytes(0);
  const Bytes x = shapes.hidden_tensor;
  ModelOperator sum = streaming("shared_sum", graph::OperatorKind::elementwise, Split::sequence,
                                {.forward = 3 * x, .forward_kernels = 1});
  if (model.expert.shared_gate) {
    sum.name = "shared_gate_sum";
    sum.forward_bytes += 3 * x;  // the gate reads x; the product reads and writes
    sum.forward_kernels = 4;
    sum.backward_bytes = 6 * x;
    sum.backward_kernels = 4;
    sum.saved = x;  // the shared expert's output, for the gate's gradient
    sum.parameters = model.hidden;
  }
  operators.push_back(sum);
}

}  // namespace

void append_experts(Operators& operators, const Shapes& shapes) {
  const Model& model = shapes.model;
  const ExpertShape& expert = model.expert;
  const std::int64_t width = routed_width(shapes);
  const std::int64_t inner = (is_gated(model.mlp) ? 2 : 1) * expert.ffn;
  operators.push_back(router(shapes));
  if (expert.latent > 0) {
    operators.push_back(
        weight_gemm("latent_down_gemm", shapes, expert.latent, model.hidden, GemmSplit::none));
    operators.back().saved = Bytes(0);
  }
  operators.push_back(routing(shapes));
  operators.push_back(expert_gemm("expert_fc1_gemm", shapes, inner, width, GemmSplit::column));
  operators.push_back(activation(shapes, routed_rows(shapes), expert.ffn, expert.bias));
  operators.back().name.insert(0, "expert_");
  operators.back().expert = true;
  operators.push_back(expert_gemm("expert_fc2_gemm", shapes, width, expert.ffn, GemmSplit::row));
  operators.push_back(unpermute(shapes));
  if (expert.latent > 0) {
    operators.push_back(
        weight_gemm("latent_up_gemm", shapes, model.hidden, expert.latent, GemmSplit::none));
  }
  if (expert.shared_ffn > 0) {
    append_shared(operators, shapes);
  }
}

}  // namespace orrery::zoo
