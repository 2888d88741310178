// SPDX-License-Identifier: Apache-2.0
/// Edge operators come before the first layer and after the last.
#include <algorithm>

#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

/// A gather of T rows: reads and writes T x H. Backward reads dy and adds it to T rows (read and
/// write). Like the one-hot product it stands for, it is split over its k (the vocabulary), and
/// every rank handles every token. `shared`: the table is another block's. Rows narrower than H are
/// projected to it.
int append_token_embedding(GraphBuilder& block, const Shapes& shapes, bool shared) {
  const bool narrow = shapes.model.table_width > 0;
  const Extent width = narrow ? Extent{Dim::none, shapes.model.table_width} : shapes.width();
  const Bytes x = shapes.wide(table_width(shapes.model));
  const int table = block.parameter({{Dim::vocab, shapes.vocab}, width}, shared);
  const int result = block.activation({shapes.rows(), width});
  block.add(
      streaming("token_embedding", Role::token_embedding, graph::OperatorKind::embedding,
                {.forward = 2 * x, .forward_kernels = 1, .backward = 3 * x, .backward_kernels = 1}),
      {.reads = {table}, .writes = {result}});
  return narrow ? block.product({.name = "table_projection_gemm",
                                 .role = Role::patch_projection,
                                 .out = shapes.width()},
                                {result})
                : result;
}

/// Clears the table's dense gradient.
void append_clear(GraphBuilder& block, const Shapes& shapes) {
  const Bytes table = shapes.tensor(shapes.vocab, table_width(shapes.model));
  block.add(streaming("embedding_gradient_zero", Role::clear_table_gradient,
                      graph::OperatorKind::elementwise, {.backward = table, .backward_kernels = 1}),
            {});
}

/// Gathers S rows per sequence (reads and writes T x H) and adds them (reads two, writes one).
/// Backward adds dy to the table's rows.
ModelOperator position_embedding(const Shapes& shapes) {
  const Bytes x = shapes.hidden_tensor;
  return streaming(
      "position_embedding", Role::position_embedding, graph::OperatorKind::embedding,
      {.forward = 5 * x, .forward_kernels = 2, .backward = 3 * x, .backward_kernels = 1});
}

/// Patches as rows of a matrix of channels x frames x side^2 columns, projected to H; the class
/// token is a row of its own. Positions are added by the product's kernel.
int append_patches(GraphBuilder& block, const Shapes& shapes) {
  const Model& model = shapes.model;
  const std::int64_t classes = model.patches.class_token ? shapes.options.microbatch : 0;
  const std::int64_t patches = std::max(std::int64_t{1}, shapes.tokens - classes);
  const std::int64_t rows =
      (model.patches.bias ? 1 : 0) + (model.patches.class_token ? 1 : 0) + model.patches.positions;
  const int pixels = block.input({{Dim::tokens, patches}, {Dim::none, model.patches.width()}});
  const int projected = block.product({.name = "patch_gemm",
                                       .role = Role::patch_projection,
                                       .out = shapes.width(),
                                       .further = rows * model.hidden},
                                      {pixels});
  return block.view(projected, {shapes.rows(), shapes.width()});
}

/// `pooling` rows of every table per sample, summed: reads them, writes one row per table; backward
/// reads that and adds to the rows (read and write). Split over the tables' rows.
int append_table_lookup(GraphBuilder& block, const Shapes& shapes) {
  const Model& model = shapes.model;
  const auto tables = static_cast<std::int64_t>(model.tables.size());
  const Bytes rows = shapes.wide(tables * model.hidden);
  const Bytes read = rows * model.pooling;
  std::int64_t all = 0;
  for (const std::int64_t table : model.tables) {
    all += table;
  }
  const int table = block.parameter({{Dim::vocab, all}, shapes.width()});
  const int result = block.activation({shapes.rows(), {Dim::none, tables}, shapes.width()});
  block.add(streaming("table_lookup", Role::table_lookup, graph::OperatorKind::embedding,
                      {read + rows, 1, rows + 2 * read, 1}),
            {.reads = {table}, .writes = {result}});
  return result;
}

/// T5: a table of buckets x heads for each of encoder and decoder becomes a heads x S x S bias.
void append_relative_bias(GraphBuilder& block, const Shapes& shapes) {
  const std::int64_t keys = shapes.options.sequence;
  const Bytes square = shapes.tensor(shapes.queries, keys) * shapes.model.heads;
  const int bias = block.activation(
      {{Dim::tokens, shapes.queries}, {Dim::heads, shapes.model.heads}, {Dim::keys, keys}});
  block.add(streaming("relative_position_bias", Role::relative_bias, graph::OperatorKind::embedding,
                      {2 * square, 2, 2 * square, 2}),
            {.writes = {bias}}, 2 * shapes.model.relative_buckets * shapes.model.heads);
}

/// A second table's rows, added.
ModelOperator type_embedding(const Shapes& shapes) {
  const Bytes x = shapes.hidden_tensor;
  return streaming("type_embedding", Role::type_embedding, graph::OperatorKind::embedding,
                   {5 * x, 2, 3 * x, 1});
}

int append_embedding_dropout(GraphBuilder& block, const Shapes& shapes, int x) {
  const Bytes traffic = 2 * shapes.hidden_tensor + shapes.hidden_mask;
  const int result = block.like(x);
  const int mask = block.buffer({shapes.rows(), shapes.width()}, kMask);
  block.add(streaming("embedding_dropout", Role::embedding_dropout,
                      graph::OperatorKind::elementwise, {traffic, 1, traffic, 1}),
            {.reads = {x}, .writes = {result, mask}, .saves = {mask}});
  return result;
}

/// Returns the cross entropy as Megatron-LM's vocab-parallel one, per logit: conversion to fp32 (e
/// + 4), maximum (4), subtraction (8), exponential (8), sum (4), division (8); backward scales the
/// probabilities (8) and converts (4 + e). The other kernels work on T values (target mask,
/// predicted logit, logarithm ...) and only cost their launch. Fused, as Transformer Engine's
/// kernels (after Liger-Kernel, Hsu et al. 2024): one reads the logits for maximum and sum, one
/// reads them again and writes their gradient in their place; backward multiplies that by the
/// loss's.
ModelOperator cross_entropy(const Shapes& shapes) {
  const Bytes single = graph::size_of(graph::DataType::fp32) * shapes.tokens * shapes.vocab;
  const Bytes logits = shapes.tensor(shapes.tokens, shapes.vocab);
  return shapes.options.fused_cross_entropy
             ? streaming("cross_entropy", Role::cross_entropy, graph::OperatorKind::loss,
                         {.forward = 3 * logits,
                          .forward_kernels = 2,
                          .backward = 2 * logits,
                          .backward_kernels = 1})
             : streaming("cross_entropy", Role::cross_entropy, graph::OperatorKind::loss,
                         {.forward = logits + (1 + 1 + 2 + 2 + 1 + 2) * single,
                          .forward_kernels = 18,
                          .backward = (2 + 1) * single + logits,
                          .backward_kernels = 6});
}

/// Keeps the gradient in the logits' place, or the probabilities in fp32.
void append_loss(GraphBuilder& block, const Shapes& shapes, ModelOperator op, int logits) {
  const graph::ModelTensor& form = block.tensor(logits);
  const Extent rows = form.extents.front();
  const int kept = shapes.options.fused_cross_entropy
                       ? logits
                       : block.buffer({rows, form.extents[1]}, graph::DataType::fp32);
  const int loss = block.activation({rows}, graph::DataType::fp32);
  TensorList writes{loss};
  if (kept != logits) {
    writes.add(kept);
  }
  block.add(std::move(op), {.reads = {logits}, .writes = writes, .saves = {kept}});
}

/// The first token of every sequence.
int first_tokens(GraphBuilder& block, const Shapes& shapes, int x) {
  return block.view(x, {{Dim::batch, shapes.options.microbatch}, shapes.width()});
}

/// BERT's heads: on every token a dense layer, its activation and norm before the logits; on the
/// first token of every sequence a pooler and a classifier of two classes. Returns what the logits
/// are made of.
int append_transform(GraphBuilder& block, const Shapes& shapes, int x) {
  const Model& model = shapes.model;
  const std::int64_t hidden = model.hidden;
  const int dense = block.product(
      {.name = "transform_gemm", .role = Role::transform, .out = shapes.width()}, {x});
  ModelOperator function = activation(shapes, shapes.tokens, hidden, true);
  function.name.insert(0, "transform_");
  function.role = Role::transform;
  const int active = block.map(std::move(function), {dense}, {dense}, hidden);
  const int even = append_norm(block, shapes, "transform_norm", Role::norm_other, active, hidden);
  const int pooled = block.product(
      {.name = "pooler_gemm", .role = Role::pooler, .out = shapes.width(), .further = hidden},
      {first_tokens(block, shapes, x)});
  block.product(
      {.name = "sentence_gemm", .role = Role::classifier, .out = {Dim::none, 2}, .further = 2},
      {pooled});
  return even;
}

/// Logits and loss of the class token of every image; small, on every rank whole.
void append_classes(GraphBuilder& block, const Shapes& shapes, int x) {
  const Model& model = shapes.model;
  Shapes first = shapes;
  first.tokens = shapes.options.microbatch;
  first.vocab = model.vocab;
  const int logits = block.product({.name = "class_gemm",
                                    .role = Role::classifier,
                                    .out = {Dim::none, model.vocab},
                                    .further = model.head_bias ? model.vocab : 0},
                                   {first_tokens(block, shapes, x)});
  ModelOperator loss = cross_entropy(first);
  loss.kind = graph::OperatorKind::elementwise;  // no vocabulary is split
  append_loss(block, first, std::move(loss), logits);
}

/// Logits and loss of T rows. `shared`: the output projection is another block's.
void append_logits(GraphBuilder& block, const Shapes& shapes, int x, bool shared,
                   std::int64_t biases = 0) {
  const int logits = block.product({.name = "logits_gemm",
                                    .role = Role::logits,
                                    .out = {Dim::vocab, shapes.vocab},
                                    .further = biases,
                                    .shared = shared},
                                   {x});
  append_loss(block, shapes, cross_entropy(shapes), logits);
}

/// Joins hidden states x and the next tokens' embedding: norms, and a 2H x H projection of both.
/// Ignores: the gather of its columns over tensor-parallel ranks.
int append_combine(GraphBuilder& block, const Shapes& shapes, int x, int embedding) {
  const std::int64_t width = shapes.model.hidden;
  const int hidden = append_norm(block, shapes, "hidden_norm", Role::norm_other, x);
  const int even = append_norm(block, shapes, "embedding_norm", Role::norm_other, embedding, width);
  const int columns = block.product(
      {.name = "combine_gemm", .role = Role::join_project, .out = {Dim::inner, width}},
      {hidden, even});
  return block.view(columns, {shapes.rows(), shapes.width()});
}

/// One depth of multi-token prediction behind x (DeepSeek-AI 2024, "DeepSeek-V3", eq. 21-24): norms
/// of the hidden states and of the next tokens' embedding, a 2H x H projection of both, layers,
/// final norm; table and output projection are those of the model. As in Megatron-LM, after the
/// last layer. Returns the hidden states behind its layers.
int append_prediction(GraphBuilder& block, const Shapes& shapes, int x, int depth) {
  const Model& model = shapes.model;
  const std::size_t first = block.operators().size();
  const int embedding = append_token_embedding(block, shapes, true);
  x = model.streams > 1 ? append_stream_combine(block, shapes, x, embedding)
                        : append_combine(block, shapes, x, embedding);
  for (const int kind : prediction_layers(model)) {
    x = append_layer(block, Shapes(model, shapes.options, kind_of(model, kind)), x);
  }
  const int summed = model.streams > 1 ? append_stream_head(block, shapes, x) : x;
  const int even = append_norm(block, shapes, "final_norm", Role::norm_final, summed, model.hidden);
  append_logits(block, shapes, even, true);
  for (std::size_t i = first; i < block.operators().size(); ++i) {
    block.operators()[i].name.insert(0, "mtp_");
    block.operators()[i].depth = depth;
  }
  return x;
}

/// Projectors read rows that the layers' results lie in side by side, the first and every second
/// matrix cut by columns.
void append_projectors(GraphBuilder& block, const Shapes& shapes) {
  for (const Projector& one : shapes.model.projectors) {
    for (std::int64_t copy = 0; copy < one.copies; ++copy) {
      int x = block.input({shapes.rows(), {Dim::none, one.widths.front()}});
      if (one.norm > 0) {
        ModelOperator even = norm("projector_norm", Role::norm_other, shapes, one.widths.front());
        x = block.map(std::move(even), {x}, {}, one.norm);
      }
      for (std::size_t i = 1; i < one.widths.size(); ++i) {
        const bool last = i + 1 == one.widths.size();
        const std::int64_t width = one.widths[i];
        x = block.product({.name = "projector_gemm",
                           .role = Role::transform,
                           .out = {last || i % 2 == 0 ? Dim::none : Dim::inner, width},
                           .further = one.bias ? width : 0},
                          {x});
        if (!last) {
          const Bytes size = shapes.wide(width);
          x = block.map(streaming("projector_gelu", Role::transform,
                                  graph::OperatorKind::elementwise, {2 * size, 1, 3 * size, 1}),
                        {x}, {x});
        }
      }
    }
  }
}

/// Appends the loss of a recommendation model.
void append_clicks(GraphBuilder& block, const Shapes& shapes) {
  const Bytes logits = graph::size_of(graph::DataType::fp32) * shapes.tokens;
  const int click = block.input({{Dim::batch, shapes.tokens}});
  block.add(streaming("click_loss", Role::click_loss, graph::OperatorKind::elementwise,
                      {3 * logits, 3, 2 * logits, 2}),
            {.reads = {click}, .writes = {block.like(click)}});
}

/// Norm of the last layer's result; of models with several streams that of their sum.
int append_final_norm(GraphBuilder& block, const Shapes& shapes, int x) {
  if (shapes.model.streams > 1) {
    return append_norm(block, shapes, "final_norm", Role::norm_final,
                       append_stream_head(block, shapes, x), shapes.model.hidden);
  }
  return shapes.model.final_norm ? append_norm(block, shapes, "final_norm", Role::norm_final, x)
                                 : x;
}

}  // namespace

std::vector<int> prediction_layers(const Model& model) {
  return model.mtp_layout.empty() ? std::vector<int>{layer_kind(model, model.layers - 1)}
                                  : model.mtp_layout;
}

int append_input(GraphBuilder& block, const Shapes& shapes) {
  return shapes.model.streams > 1
             ? block.input({shapes.rows(), {Dim::none, shapes.model.streams}, shapes.width()})
             : block.input({shapes.rows(), shapes.width()});
}

ModelGraph embedding_graph(const Model& model, const ShapeOptions& options) {
  const Shapes shapes(model, options);
  GraphBuilder block(options.type);
  if (model.input == InputKind::features) {
    return block.finish(append_table_lookup(block, shapes));
  }
  int x = -1;
  if (model.input == InputKind::patches) {
    x = append_patches(block, shapes);
  } else {
    x = append_token_embedding(block, shapes, false);
    append_clear(block, shapes);
  }
  if (model.token_types > 0) {
    x = block.map(type_embedding(shapes), {x}, {}, model.token_types * model.hidden);
  }
  if (model.position == PositionKind::learned) {
    x = block.map(position_embedding(shapes), {x}, {},
                  (model.max_positions + model.extra_positions) * model.hidden);
  }
  if (model.relative_buckets > 0) {
    append_relative_bias(block, shapes);
  }
  if (model.embedding_norm) {
    x = append_norm(block, shapes, "embedding_norm", Role::norm_other, x, model.hidden);
  }
  if (model.embedding_dropout > 0) {
    x = append_embedding_dropout(block, shapes, x);
  }
  if (model.streams > 1) {
    x = append_stream_copies(block, shapes, x);
  }
  return block.finish(x);
}

ModelGraph head_graph(const Model& model, const ShapeOptions& options) {
  const Shapes shapes(model, options);
  GraphBuilder block(options.type);
  if (model.head == HeadKind::click) {
    append_clicks(block, shapes);
    return block.finish(-1);
  }
  int x = append_input(block, shapes);
  int even = append_final_norm(block, shapes, x);
  if (model.head == HeadKind::projected) {
    append_projectors(block, shapes);
    return block.finish(-1);
  }
  if (model.head == HeadKind::image_class) {
    append_classes(block, shapes, even);
    return block.finish(-1);
  }
  if (model.head == HeadKind::masked_token) {
    even = append_transform(block, shapes, even);
  }
  if (model.table_width > 0) {
    even = block.product({.name = "logits_projection_gemm",
                          .role = Role::transform,
                          .out = {Dim::none, model.table_width}},
                         {even});
  }
  append_logits(block, shapes, even, model.tied_embedding, model.head_bias ? shapes.vocab : 0);
  for (int depth = 1; depth <= model.mtp; ++depth) {
    x = append_prediction(block, shapes, x, depth);
  }
  return block.finish(-1);
}

std::vector<ModelOperator> embedding_operators(const Model& model, const ShapeOptions& options) {
  return embedding_graph(model, options).operators;
}

std::vector<ModelOperator> head_operators(const Model& model, const ShapeOptions& options) {
  return head_graph(model, options).operators;
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
