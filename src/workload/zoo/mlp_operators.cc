// SPDX-License-Identifier: Apache-2.0
/// The dense MLP and its activation, also that of experts.
#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

/// f(x + bias), f of one operand. Backward reads x and dy, writes dx; the bias gradient sums dx
/// over the rows. f(x) itself is saved as the input of fc2.
ModelOperator plain(const Shapes& shapes, Bytes x, bool bias) {
  const std::string function(name_of(shapes.model.mlp));
  const bool bias_apart = bias && !shapes.options.fused_kernels;
  ModelOperator op = streaming((bias ? "bias_" : "") + function, Role::activation,
                               graph::OperatorKind::elementwise, Split::tensor,
                               {.forward = (bias_apart ? 4 : 2) * x,
                                .forward_kernels = bias_apart ? 2 : 1,
                                .backward = (bias ? 4 : 3) * x,
                                .backward_kernels = bias ? 2 : 1});
  op.saved = x;
  return op;
}

/// f(gate) * up; gate and up are the halves of fc1's result. Fused: reads both, writes one;
/// backward reads both and dy, writes both. Unfused: f (1 + 1) and product (2 + 1) forward;
/// backward two products (3 each), f (3) and the concatenation of the halves (4); f(gate) is
/// saved too. A bias is added by the GEMM; its gradient sums 2 F over the rows.
ModelOperator gated(const Shapes& shapes, Bytes x, bool bias) {
  const bool fused = shapes.options.fused_kernels;
  const int sums = bias ? 1 : 0;
  ModelOperator op = streaming(shapes.model.mlp == MlpKind::geglu ? "gelu_mul" : "silu_mul",
                               Role::activation, graph::OperatorKind::elementwise, Split::tensor,
                               {.forward = (fused ? 3 : 5) * x,
                                .forward_kernels = fused ? 1 : 2,
                                .backward = ((fused ? 5 : 13) + 2 * sums) * x,
                                .backward_kernels = (fused ? 1 : 4) + sums});
  op.saved = (fused ? 2 : 3) * x;
  return op;
}

}  // namespace

ModelOperator activation(const Shapes& shapes, std::int64_t rows, std::int64_t width, bool bias) {
  const Bytes x = shapes.tensor(rows, width);
  return is_gated(shapes.model.mlp) ? gated(shapes, x, bias) : plain(shapes, x, bias);
}

void append_mlp(Operators& operators, const Shapes& shapes, Branch branch, std::int64_t ffn) {
  const Model& model = shapes.model;
  const std::string prefix = branch == Branch::shared_expert ? "shared_" : "";
  const std::size_t first = operators.size();
  const std::int64_t inner = (is_gated(model.mlp) ? 2 : 1) * ffn;
  operators.push_back(
      weight_gemm(prefix + "fc1_gemm", Role::up, shapes, inner, model.hidden, GemmSplit::column));
  operators.back().parameters += model.mlp_bias ? inner : 0;
  operators.push_back(activation(shapes, shapes.tokens, ffn, model.mlp_bias));
  operators.back().name.insert(0, prefix);
  operators.push_back(
      weight_gemm(prefix + "fc2_gemm", Role::down, shapes, model.hidden, ffn, GemmSplit::row));
  mark(operators, first, branch);
}

}  // namespace orrery::zoo
