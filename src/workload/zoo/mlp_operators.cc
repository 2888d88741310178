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
  return streaming((bias ? "bias_" : "") + function, Role::activation,
                   graph::OperatorKind::elementwise,
                   {.forward = (bias_apart ? 4 : 2) * x,
                    .forward_kernels = bias_apart ? 2 : 1,
                    .backward = (bias ? 4 : 3) * x,
                    .backward_kernels = bias ? 2 : 1});
}

/// f(gate) * up; gate and up are the halves of fc1's result. Fused: reads both, writes one;
/// backward reads both and dy, writes both. Unfused: f (1 + 1) and product (2 + 1) forward;
/// backward two products (3 each), f (3) and the concatenation of the halves (4); f(gate) is
/// saved too. A bias is added by the GEMM; its gradient sums 2 F over the rows.
ModelOperator gated(const Shapes& shapes, Bytes x, bool bias) {
  const bool fused = shapes.options.fused_kernels;
  const int sums = bias ? 1 : 0;
  return streaming(shapes.model.mlp == MlpKind::geglu ? "gelu_mul" : "silu_mul", Role::activation,
                   graph::OperatorKind::elementwise,
                   {.forward = (fused ? 3 : 5) * x,
                    .forward_kernels = fused ? 1 : 2,
                    .backward = ((fused ? 5 : 13) + 2 * sums) * x,
                    .backward_kernels = (fused ? 1 : 4) + sums});
}

}  // namespace

ModelOperator activation(const Shapes& shapes, std::int64_t rows, std::int64_t width, bool bias) {
  const Bytes x = shapes.tensor(rows, width);
  return is_gated(shapes.model.mlp) ? gated(shapes, x, bias) : plain(shapes, x, bias);
}

int append_activation(GraphBuilder& block, const Shapes& shapes, ModelOperator op, int x,
                      TensorList kept) {
  const graph::ModelTensor& entering = block.tensor(x);
  const Extent rows = entering.extents.front();
  Extent columns = entering.extents[1];
  if (is_gated(shapes.model.mlp)) {
    columns.size /= 2;
    if (!shapes.options.fused_kernels) {
      kept.add(block.buffer({rows, columns}, shapes.options.type));  // f(gate)
    }
  }
  const int result = block.activation({rows, columns});
  Edges edges{.reads = {x}, .writes = {result}, .saves = kept};
  for (const int further : kept) {
    edges.writes.add(further);
  }
  edges.saves.add(x);
  block.add(std::move(op), edges);
  return result;
}

int append_mlp(GraphBuilder& block, const Shapes& shapes, int x, Branch branch, std::int64_t ffn,
               bool keeps_input) {
  const Model& model = shapes.model;
  const std::string prefix = branch == Branch::shared_expert ? "shared_" : "";
  const std::size_t first = block.operators().size();
  const std::int64_t inner = (is_gated(model.mlp) ? 2 : 1) * ffn;
  const int up = block.product({.name = prefix + "fc1_gemm",
                                .role = Role::up,
                                .out = {Dim::inner, inner},
                                .further = model.mlp_bias ? inner : 0,
                                .keeps_input = keeps_input},
                               {x});
  ModelOperator function = activation(shapes, shapes.tokens, ffn, model.mlp_bias);
  function.name.insert(0, prefix);
  const int active = append_activation(block, shapes, std::move(function), up);
  const int down = block.product(
      {.name = prefix + "fc2_gemm", .role = Role::down, .out = shapes.width()}, {active});
  mark(block.operators(), first, branch);
  return down;
}

}  // namespace orrery::zoo
