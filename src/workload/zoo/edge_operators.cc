// SPDX-License-Identifier: Apache-2.0
/// What comes before the first layer and after the last.
#include "workload/zoo/builder.h"

namespace orrery {
namespace {

using zoo::Shapes;
using zoo::Traffic;

/// A gather of T rows: reads and writes T x H. Backward reads dy and adds it to T rows (read and
/// write). Like the one-hot product it stands for, it is split over its k (the vocabulary), and
/// every rank handles every token.
void append_token_embedding(std::vector<ModelOperator>& operators, const Shapes& shapes) {
  const Bytes x = shapes.hidden_tensor;
  ModelOperator gather = zoo::streaming(
      "token_embedding", OperatorKind::embedding, Split::none,
      {.forward = 2 * x, .forward_kernels = 1, .backward = 3 * x, .backward_kernels = 1});
  gather.gemm_split = GemmSplit::row;
  gather.boundary = TensorBoundary::leave;
  gather.parameters = shapes.vocab * shapes.model.hidden;
  operators.push_back(gather);

  const Bytes table = shapes.tensor(shapes.vocab, shapes.model.hidden);
  operators.push_back(zoo::streaming("embedding_gradient_zero", OperatorKind::elementwise,
                                     Split::tensor, {.backward = table, .backward_kernels = 1}));
}

/// Gathers S rows per sequence (reads and writes T x H) and adds them (reads two, writes one).
/// Backward adds dy to the table's rows.
ModelOperator position_embedding(const Shapes& shapes) {
  const Bytes x = shapes.hidden_tensor;
  ModelOperator op = zoo::streaming(
      "position_embedding", OperatorKind::embedding, Split::sequence,
      {.forward = 5 * x, .forward_kernels = 2, .backward = 3 * x, .backward_kernels = 1});
  op.parameters = shapes.model.max_positions * shapes.model.hidden;
  return op;
}

ModelOperator embedding_dropout(const Shapes& shapes) {
  const Bytes traffic = 2 * shapes.hidden_tensor + shapes.hidden_mask;
  ModelOperator op = zoo::streaming("embedding_dropout", OperatorKind::elementwise, Split::sequence,
                                    {traffic, 1, traffic, 1});
  op.saved = shapes.hidden_mask;
  return op;
}

/// As Megatron-LM's vocab-parallel cross entropy, per logit: conversion to fp32 (e + 4), maximum
/// (4), subtraction (8), exponential (8), sum (4), division (8); backward scales the probabilities
/// (8) and converts (4 + e). The other kernels work on T values (target mask, predicted logit,
/// logarithm ...) and only cost their launch.
ModelOperator cross_entropy(const Shapes& shapes) {
  const Bytes single = size_of(DataType::fp32) * shapes.tokens * shapes.vocab;
  const Bytes logits = shapes.tensor(shapes.tokens, shapes.vocab);
  ModelOperator op = zoo::streaming("cross_entropy", OperatorKind::loss, Split::tensor,
                                    {.forward = logits + (1 + 1 + 2 + 2 + 1 + 2) * single,
                                     .forward_kernels = 18,
                                     .backward = (2 + 1) * single + logits,
                                     .backward_kernels = 6});
  op.saved = single;
  return op;
}

}  // namespace

std::vector<ModelOperator> embedding_operators(const Model& model, const ShapeOptions& options) {
  const Shapes shapes(model, options);
  std::vector<ModelOperator> operators;
  append_token_embedding(operators, shapes);
  if (model.position == PositionKind::learned) {
    operators.push_back(position_embedding(shapes));
  }
  if (model.embedding_dropout > 0) {
    operators.push_back(embedding_dropout(shapes));
  }
  return operators;
}

std::vector<ModelOperator> head_operators(const Model& model, const ShapeOptions& options) {
  const Shapes shapes(model, options);
  std::vector<ModelOperator> operators;
  operators.push_back(zoo::norm("final_norm", shapes));
  operators.push_back(
      zoo::weight_gemm("logits_gemm", shapes, shapes.vocab, model.hidden, GemmSplit::column));
  if (model.tied_embedding) {
    operators.back().parameters = 0;  // counted by token_embedding
  }
  operators.push_back(cross_entropy(shapes));
  return operators;
}

Flops model_flops_per_sequence(const Model& model, std::int64_t sequence,
                               std::int64_t padded_vocab) {
  const ShapeOptions one{.sequence = sequence, .padded_vocab = padded_vocab};
  Flops forward{0};
  for (const ModelOperator& op : layer_operators(model, one)) {
    forward += op.model_flops * model.layers;
  }
  for (const ModelOperator& op : head_operators(model, one)) {
    forward += op.model_flops;
  }
  return 3 * forward;  // backward: with respect to both operands of every product
}

}  // namespace orrery
