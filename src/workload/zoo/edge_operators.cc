// SPDX-License-Identifier: Apache-2.0
/// Edge operators come before the first layer and after the last.
#include <algorithm>

#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

/// A gather of T rows: reads and writes T x H. Backward reads dy and adds it to T rows (read and
/// write). Like the one-hot product it stands for, it is split over its k (the vocabulary), and
/// every rank handles every token.
void append_token_embedding(Operators& operators, const Shapes& shapes) {
  const Bytes x = shapes.hidden_tensor;
  ModelOperator gather = streaming(
      "token_embedding", Role::token_embedding, graph::OperatorKind::embedding, Split::none,
      {.forward = 2 * x, .forward_kernels = 1, .backward = 3 * x, .backward_kernels = 1});
  gather.gemm_split = GemmSplit::row;
  gather.boundary = TensorBoundary::leave;
  gather.parameters = shapes.vocab * shapes.model.hidden;
  operators.push_back(gather);

  const Bytes table = shapes.tensor(shapes.vocab, shapes.model.hidden);
  operators.push_back(streaming("embedding_gradient_zero", Role::clear_table_gradient,
                                graph::OperatorKind::elementwise, Split::tensor,
                                {.backward = table, .backward_kernels = 1}));
}

/// Gathers S rows per sequence (reads and writes T x H) and adds them (reads two, writes one).
/// Backward adds dy to the table's rows.
ModelOperator position_embedding(const Shapes& shapes) {
  const Bytes x = shapes.hidden_tensor;
  ModelOperator op =
      streaming("position_embedding", Role::position_embedding, graph::OperatorKind::embedding,
                Split::sequence,
                {.forward = 5 * x, .forward_kernels = 2, .backward = 3 * x, .backward_kernels = 1});
  op.parameters = (shapes.model.max_positions + shapes.model.extra_positions) * shapes.model.hidden;
  return op;
}

/// Patches as rows of a matrix of channels x side^2 columns, projected to H; the class token is a
/// row of its own.
ModelOperator patch_gemm(const Shapes& shapes) {
  const Model& model = shapes.model;
  Shapes patches = shapes;
  patches.tokens = std::max(std::int64_t{1}, shapes.tokens - shapes.options.microbatch);
  ModelOperator op = weight_gemm("patch_gemm", Role::patch_projection, patches, model.hidden,
                                 model.patches.width(), GemmSplit::none);
  op.parameters += 2 * model.hidden;  // bias, class token
  return op;
}

/// `pooling` rows of every table per sample, summed: reads them, writes one row per table; backward
/// reads that and adds to the rows (read and write). Split over the tables' rows.
ModelOperator table_lookup(const Shapes& shapes) {
  const Model& model = shapes.model;
  const auto tables = static_cast<std::int64_t>(model.tables.size());
  const Bytes rows = shapes.wide(tables * model.hidden);
  const Bytes read = rows * model.pooling;
  ModelOperator op = streaming("table_lookup", Role::table_lookup, graph::OperatorKind::embedding,
                               Split::none, {read + rows, 1, rows + 2 * read, 1});
  op.gemm_split = GemmSplit::row;
  op.boundary = TensorBoundary::leave;
  for (const std::int64_t table : model.tables) {
    op.parameters += table * model.hidden;
  }
  return op;
}

/// T5: a table of buckets x heads for each of encoder and decoder becomes a heads x S x S bias.
ModelOperator relative_bias(const Shapes& shapes) {
  const std::int64_t keys = shapes.options.sequence;
  const Bytes square = shapes.tensor(shapes.queries, keys) * shapes.model.heads;
  ModelOperator op =
      streaming("relative_position_bias", Role::relative_bias, graph::OperatorKind::embedding,
                Split::tensor, {2 * square, 2, 2 * square, 2});
  op.parameters = 2 * shapes.model.relative_buckets * shapes.model.heads;
  return op;
}

/// A second table's rows, added.
ModelOperator type_embedding(const Shapes& shapes) {
  const Bytes x = shapes.hidden_tensor;
  ModelOperator op =
      streaming("type_embedding", Role::type_embedding, graph::OperatorKind::embedding,
                Split::sequence, {5 * x, 2, 3 * x, 1});
  op.parameters = shapes.model.token_types * shapes.model.hidden;
  return op;
}

ModelOperator embedding_dropout(const Shapes& shapes) {
  const Bytes traffic = 2 * shapes.hidden_tensor + shapes.hidden_mask;
  ModelOperator op =
      streaming("embedding_dropout", Role::embedding_dropout, graph::OperatorKind::elementwise,
                Split::sequence, {traffic, 1, traffic, 1});
  op.saved = shapes.hidden_mask;
  return op;
}

/// As Megatron-LM's vocab-parallel cross entropy, per logit: conversion to fp32 (e + 4), maximum
/// (4), subtraction (8), exponential (8), sum (4), division (8); backward scales the probabilities
/// (8) and converts (4 + e). The other kernels work on T values (target mask, predicted logit,
/// logarithm ...) and only cost their launch.
/// Fused, as Transformer Engine's kernels (after Liger-Kernel, Hsu et al. 2024): one reads the
/// logits for maximum and sum, one reads them again and writes their gradient in their place;
/// backward multiplies that by the loss's.
ModelOperator cross_entropy(const Shapes& shapes) {
  const Bytes single = graph::size_of(graph::DataType::fp32) * shapes.tokens * shapes.vocab;
  const Bytes logits = shapes.tensor(shapes.tokens, shapes.vocab);
  if (shapes.options.fused_cross_entropy) {
    ModelOperator op =
        streaming("cross_entropy", Role::cross_entropy, graph::OperatorKind::loss, Split::tensor,
                  {.forward = 3 * logits,
                   .forward_kernels = 2,
                   .backward = 2 * logits,
                   .backward_kernels = 1});
    op.saved = logits;
    return op;
  }
  ModelOperator op =
      streaming("cross_entropy", Role::cross_entropy, graph::OperatorKind::loss, Split::tensor,
                {.forward = logits + (1 + 1 + 2 + 2 + 1 + 2) * single,
                 .forward_kernels = 18,
                 .backward = (2 + 1) * single + logits,
                 .backward_kernels = 6});
  op.saved = single;
  return op;
}

/// BERT's heads: on every token a dense layer, its activation and norm before the logits; on the
/// first token of every sequence a pooler and a classifier of two classes.
void append_transform(Operators& operators, const Shapes& shapes) {
  const Model& model = shapes.model;
  const std::int64_t hidden = model.hidden;
  operators.push_back(
      weight_gemm("transform_gemm", Role::transform, shapes, hidden, hidden, GemmSplit::none));
  operators.push_back(activation(shapes, shapes.tokens, hidden, true));
  operators.back().name.insert(0, "transform_");
  operators.back().role = Role::transform;
  operators.back().split = Split::sequence;
  operators.back().parameters = hidden;
  operators.push_back(norm("transform_norm", Role::norm_other, shapes, hidden));
  Shapes first = shapes;
  first.tokens = shapes.options.microbatch;
  operators.push_back(
      weight_gemm("pooler_gemm", Role::pooler, first, hidden, hidden, GemmSplit::none));
  operators.back().parameters += hidden;
  operators.push_back(
      weight_gemm("sentence_gemm", Role::classifier, first, 2, hidden, GemmSplit::none));
  operators.back().parameters += 2;
}

/// Logits and loss of the class token of every image; small, on every rank whole.
void append_classes(Operators& operators, const Shapes& shapes) {
  const Model& model = shapes.model;
  Shapes first = shapes;
  first.tokens = shapes.options.microbatch;
  first.vocab = model.vocab;
  operators.push_back(weight_gemm("class_gemm", Role::classifier, first, model.vocab, model.hidden,
                                  GemmSplit::none));
  operators.back().parameters += model.head_bias ? model.vocab : 0;
  operators.push_back(cross_entropy(first));
  operators.back().kind = graph::OperatorKind::elementwise;  // no vocabulary is split
  operators.back().split = Split::none;
}

/// Logits and loss of T rows. `parameters`: of the output projection, unless it is shared.
void append_logits(Operators& operators, const Shapes& shapes, bool shared) {
  const Model& model = shapes.model;
  operators.push_back(weight_gemm("logits_gemm", Role::logits, shapes, shapes.vocab, model.hidden,
                                  GemmSplit::column));
  if (shared) {
    operators.back().parameters = 0;
  }
  operators.push_back(cross_entropy(shapes));
}

/// One depth of multi-token prediction (DeepSeek-AI 2024, "DeepSeek-V3", eq. 21-24): norms of the
/// hidden states and of the next tokens' embedding, a 2H x H projection of both, layers, final
/// norm; table and output projection are those of the model. As in Megatron-LM, after the last
/// layer.
void append_prediction(Operators& operators, const Model& model, const ShapeOptions& options,
                       int depth) {
  const Shapes shapes(model, options);
  const std::size_t first = operators.size();
  append_token_embedding(operators, shapes);
  operators[first].parameters = 0;
  operators.erase(operators.begin() + static_cast<std::ptrdiff_t>(first) + 1);  // cleared once
  if (model.streams > 1) {
    append_stream_combine(operators, shapes);
  } else {
    operators.push_back(norm("hidden_norm", Role::norm_other, shapes));
    operators.push_back(norm("embedding_norm", Role::norm_other, shapes, model.hidden));
    operators.push_back(weight_gemm("combine_gemm", Role::join_project, shapes, model.hidden,
                                    2 * model.hidden, GemmSplit::column));
  }
  for (const int kind : prediction_layers(model)) {
    const Operators layer = layer_operators(model, options, kind);
    operators.insert(operators.end(), layer.begin(), layer.end());
  }
  if (model.streams > 1) {
    append_stream_head(operators, shapes);
  }
  operators.push_back(norm("final_norm", Role::norm_final, shapes, model.hidden));
  append_logits(operators, shapes, true);
  for (std::size_t i = first; i < operators.size(); ++i) {
    operators[i].name.insert(0, "mtp_");
    operators[i].depth = depth;
  }
}

}  // namespace

std::vector<int> prediction_layers(const Model& model) {
  return model.mtp_layout.empty() ? std::vector<int>{layer_kind(model, model.layers - 1)}
                                  : model.mtp_layout;
}

std::vector<ModelOperator> embedding_operators(const Model& model, const ShapeOptions& options) {
  const Shapes shapes(model, options);
  Operators operators;
  if (model.input == InputKind::features) {
    operators.push_back(table_lookup(shapes));
    return operators;
  }
  if (model.input == InputKind::patches) {
    operators.push_back(patch_gemm(shapes));
  } else {
    append_token_embedding(operators, shapes);
  }
  if (model.token_types > 0) {
    operators.push_back(type_embedding(shapes));
  }
  if (model.position == PositionKind::learned) {
    operators.push_back(position_embedding(shapes));
  }
  if (model.relative_buckets > 0) {
    operators.push_back(relative_bias(shapes));
  }
  if (model.embedding_norm) {
    operators.push_back(norm("embedding_norm", Role::norm_other, shapes, model.hidden));
  }
  if (model.embedding_dropout > 0) {
    operators.push_back(embedding_dropout(shapes));
  }
  if (model.streams > 1) {
    append_stream_copies(operators, shapes);
  }
  return operators;
}

std::vector<ModelOperator> head_operators(const Model& model, const ShapeOptions& options) {
  const Shapes shapes(model, options);
  Operators operators;
  if (model.head == HeadKind::click) {
    const Bytes logits = graph::size_of(graph::DataType::fp32) * shapes.tokens;
    operators.push_back(streaming("click_loss", Role::click_loss, graph::OperatorKind::elementwise,
                                  Split::none, {3 * logits, 3, 2 * logits, 2}));
    return operators;
  }
  if (model.streams > 1) {
    append_stream_head(operators, shapes);
    operators.push_back(norm("final_norm", Role::norm_final, shapes, model.hidden));
  } else if (model.final_norm) {
    operators.push_back(norm("final_norm", Role::norm_final, shapes));
  }
  if (model.head == HeadKind::image_class) {
    append_classes(operators, shapes);
    return operators;
  }
  if (model.head == HeadKind::masked_token) {
    append_transform(operators, shapes);
  }
  append_logits(operators, shapes, model.tied_embedding);
  operators[operators.size() - 2].parameters += model.head_bias ? shapes.vocab : 0;
  for (int depth = 1; depth <= model.mtp; ++depth) {
    append_prediction(operators, model, options, depth);
  }
  return operators;
}

Flops model_flops_per_sequence(const Model& model, std::int64_t sequence,
                               std::int64_t padded_vocab) {
  const ShapeOptions one{.sequence = sequence, .padded_vocab = padded_vocab};
  const auto of = [](const Operators& operators) {
    Flops sum{0};
    for (const ModelOperator& op : operators) {
      sum += op.model_flops;
    }
    return sum;
  };
  const std::vector<std::int64_t> layers = layers_by_kind(model);
  Flops forward = of(embedding_operators(model, one)) + of(head_operators(model, one));
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    forward += of(layer_operators(model, one, static_cast<int>(kind))) * layers[kind];
  }
  return 3 * forward;  // backward: with respect to both operands of every product
}

}  // namespace orrery::zoo
