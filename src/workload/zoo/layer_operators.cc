// SPDX-License-Identifier: Apache-2.0
#include "workload/zoo/builder.h"

namespace orrery {
namespace {

using zoo::Shapes;
using zoo::Traffic;

/// Q, K, V as views of the fused projection; they are what attention's backward needs. The bias is
/// added by a kernel of its own, as in Megatron-LM's and PyTorch's linear layers over a
/// three-dimensional input (the biases of the other layers go into the kernels after them).
/// Backward concatenates dQ, dK, dV and sums the bias gradient over the tokens.
ModelOperator qkv_split(const Shapes& shapes) {
  const Bytes qkv = shapes.qkv_tensor;
  Traffic traffic{.backward = 2 * qkv, .backward_kernels = 1};
  if (shapes.model.attention_bias) {
    traffic.forward = 2 * qkv;
    traffic.forward_kernels = 1;
    traffic.backward += qkv;
    ++traffic.backward_kernels;
  }
  ModelOperator op = zoo::streaming("qkv_split", OperatorKind::elementwise, Split::tensor, traffic);
  op.saved = qkv;
  return op;
}

/// x cos + rotate_half(x) sin for queries and keys. Unfused, per tensor: rotate_half negates one
/// half and concatenates (1 + 2 passes), two products (2 + 2), one sum (3). Linear: nothing is
/// saved.
ModelOperator rotary(const Shapes& shapes) {
  const Bytes rotated = shapes.tensor(shapes.tokens, shapes.query + shapes.key_value);
  const bool fused = shapes.options.fused_kernels;
  const Bytes traffic = (fused ? 2 : 10) * rotated;
  const int kernels = fused ? 1 : 10;
  return zoo::streaming("rotary", OperatorKind::elementwise, Split::tensor,
                        {traffic, kernels, traffic, kernels});
}

/// out = residual + dropout(x + bias), with the parts that the model has. Backward: the mask
/// applied to the gradient, and the bias gradient's sum over the tokens; the residual branch gets
/// the gradient as it is.
ModelOperator residual(const std::string& branch, const Shapes& shapes, bool bias) {
  const Bytes x = shapes.hidden_tensor;
  const bool dropout = shapes.model.dropout > 0;
  const bool fused = shapes.options.fused_kernels;
  Traffic traffic{.forward = 3 * x, .forward_kernels = 1};
  if (dropout) {
    // In a kernel of its own: reads x, writes it and the mask.
    traffic.forward += fused ? shapes.hidden_mask : 2 * x + shapes.hidden_mask;
    traffic.forward_kernels += fused ? 0 : 1;
    traffic.backward += 2 * x + shapes.hidden_mask;
    traffic.backward_kernels += 1;
  }
  if (bias) {
    traffic.forward += fused ? Bytes(0) : 2 * x;
    traffic.forward_kernels += fused ? 0 : 1;
    traffic.backward += x;
    traffic.backward_kernels += 1;
  }
  ModelOperator op =
      zoo::streaming(branch + (bias ? "_bias" : "") + (dropout ? "_dropout" : "") + "_residual",
                     OperatorKind::elementwise, Split::sequence, traffic);
  op.saved = dropout ? shapes.hidden_mask : Bytes(0);
  op.parameters = bias ? shapes.model.hidden : 0;
  return op;
}

/// gelu(x + bias). Backward reads x and dy, writes dx; the bias gradient sums dx over the tokens.
ModelOperator bias_gelu(const Shapes& shapes) {
  const Bytes x = shapes.ffn_tensor;
  const bool bias = shapes.model.mlp_bias;
  const bool bias_apart = bias && !shapes.options.fused_kernels;
  ModelOperator op =
      zoo::streaming(bias ? "bias_gelu" : "gelu", OperatorKind::elementwise, Split::tensor,
                     {.forward = (bias_apart ? 4 : 2) * x,
                      .forward_kernels = bias_apart ? 2 : 1,
                      .backward = (bias ? 4 : 3) * x,
                      .backward_kernels = bias ? 2 : 1});
  op.saved = x;
  return op;
}

/// silu(gate) * up; gate and up are the halves of fc1's result. Fused: reads both, writes one;
/// backward reads both and dy, writes both. Unfused: silu (1 + 1) and product (2 + 1) forward;
/// backward two products (3 each), silu (3) and the concatenation of the halves (4); silu(gate) is
/// saved too. A bias is added by the GEMM; its gradient sums 2 F over the tokens.
ModelOperator silu_mul(const Shapes& shapes) {
  const Bytes x = shapes.ffn_tensor;
  const bool fused = shapes.options.fused_kernels;
  const int bias = shapes.model.mlp_bias ? 1 : 0;
  ModelOperator op = zoo::streaming("silu_mul", OperatorKind::elementwise, Split::tensor,
                                    {.forward = (fused ? 3 : 5) * x,
                                     .forward_kernels = fused ? 1 : 2,
                                     .backward = ((fused ? 5 : 13) + 2 * bias) * x,
                                     .backward_kernels = (fused ? 1 : 4) + bias});
  op.saved = (fused ? 2 : 3) * x;
  return op;
}

void append_mlp(std::vector<ModelOperator>& operators, const Shapes& shapes) {
  const Model& model = shapes.model;
  const bool gated = model.mlp == MlpKind::swiglu;
  const std::int64_t inner = (gated ? 2 : 1) * model.ffn;
  operators.push_back(zoo::norm("mlp_norm", shapes));
  operators.push_back(zoo::weight_gemm("fc1_gemm", shapes, inner, model.hidden, GemmSplit::column));
  operators.back().parameters += model.mlp_bias ? inner : 0;
  operators.push_back(gated ? silu_mul(shapes) : bias_gelu(shapes));
  operators.push_back(
      zoo::weight_gemm("fc2_gemm", shapes, model.hidden, model.ffn, GemmSplit::row));
  operators.push_back(residual("mlp", shapes, model.mlp_bias));
}

}  // namespace

std::vector<std::string> layer_kinds(const Model&) {
  return {"layer"};
}

int layer_kind(const Model&, std::int64_t) {
  return 0;
}

std::vector<ModelOperator> layer_operators(const Model& model, const ShapeOptions& options, int) {
  const Shapes shapes(model, options);
  const std::int64_t qkv = shapes.query + 2 * shapes.key_value;
  std::vector<ModelOperator> operators;
  operators.push_back(zoo::norm("input_norm", shapes));
  operators.push_back(zoo::weight_gemm("qkv_gemm", shapes, qkv, model.hidden, GemmSplit::column));
  operators.back().parameters += model.attention_bias ? qkv : 0;
  operators.push_back(qkv_split(shapes));
  if (model.position == PositionKind::rotary) {
    operators.push_back(rotary(shapes));
  }
  zoo::append_attention(operators, shapes);
  operators.push_back(
      zoo::weight_gemm("proj_gemm", shapes, model.hidden, shapes.query, GemmSplit::row));
  operators.push_back(residual("attention", shapes, model.attention_output_bias));
  append_mlp(operators, shapes);
  return operators;
}

}  // namespace orrery
