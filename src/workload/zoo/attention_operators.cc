// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

/// Returns the FLOPs that tables of training runs count: the whole square where the mask leaves
/// half, so that a causal layer without window counts S x S.
Flops counted(const Shapes& shapes, Flops visible) {
  return shapes.kind.causal ? 2 * visible : visible;
}

/// Visible pairs of all heads and sequences.
double pairs_of(const Shapes& shapes) {
  return visible_pairs(shapes) *
         static_cast<double>(shapes.options.microbatch * shapes.model.heads);
}

/// Activation-by-activation product of every head: no weight, nothing saved beyond its inputs.
/// `width`: of a head.
ModelOperator head_gemm(std::string name, Role role, const Shapes& shapes, std::int64_t n,
                        std::int64_t k, std::int64_t width) {
  const std::int64_t batch = shapes.options.microbatch * shapes.model.heads;
  const std::int64_t m = shapes.queries;
  ModelOperator op;
  op.name = std::move(name);
  op.role = role;
  op.kind = graph::OperatorKind::gemm;
  op.gemm = {.batch = batch, .m = m, .n = n, .k = k};
  op.recompute = RecomputeGroup::selective;
  op.forward_flops = graph::flops_of(op.gemm);
  op.model_flops = counted(shapes, Flops(2 * pairs_of(shapes) * static_cast<double>(width)));
  op.backward_flops = 2 * op.forward_flops;
  op.forward_bytes = (shapes.tensor(m, k) + shapes.tensor(k, n) + shapes.tensor(m, n)) * batch;
  op.backward_kernels = 0;
  return op;
}

ModelOperator core_streaming(std::string name, Role role, graph::OperatorKind kind,
                             const Traffic& traffic) {
  ModelOperator op = streaming(std::move(name), role, kind, traffic);
  op.recompute = RecomputeGroup::selective;
  return op;
}

/// Fused: reads and writes the square; backward reads two and writes one. Under a causal mask the
/// halves above the diagonal are not read, but written, in both directions (Megatron-LM's
/// scaled_upper_triang_masked_softmax). Unfused, as its forward_torch_softmax: conversion
/// to fp32, scale, mask (a byte an element), softmax, conversion back; each reads and writes the
/// square, and the result in fp32 is kept as well. Biases by position are read with the mask and
/// small.
ModelOperator softmax(const Shapes& shapes, Bytes square, Bytes mask) {
  const Bytes single = mask * graph::size_of(graph::DataType::fp32).value();
  const Bytes conversions = shapes.options.type == graph::DataType::fp32
                                ? Bytes(0)
                                : 2 * (square + single);  // there and back
  const int converting = conversions == Bytes(0) ? 0 : 2;
  const LayerKind& kind = shapes.kind;
  const bool triangle = kind.causal && kind.window == 0 && kind.chunk == 0 && kind.compression == 0;
  const Bytes read = triangle ? square / 2 : square;
  const Traffic fused{.forward = read + square,
                      .forward_kernels = 1,
                      .backward = 2 * read + square,
                      .backward_kernels = 1};
  const Traffic unfused{.forward = conversions + (2 + 2 + 2) * single + mask,
                        .forward_kernels = 3 + converting,
                        .backward = conversions + (3 + 2 + 2) * single + mask,
                        .backward_kernels = 3 + converting};
  return core_streaming("scale_mask_softmax", Role::softmax, graph::OperatorKind::softmax,
                        shapes.options.fused_softmax ? fused : unfused);
}

/// Keys of one sequence made of S tokens: themselves and one per `compression` of them.
std::int64_t with_compressed(const Shapes& shapes, std::int64_t tokens) {
  return tokens + (shapes.kind.compression > 0 ? tokens / shapes.kind.compression : 0);
}

/// Returns the bytes of K and V: one row of every key of the sequence, to which all c ranks
/// contribute T rows each.
Bytes key_value_tensor(const Shapes& shapes) {
  return shapes.tensor(with_compressed(shapes, shapes.tokens), shapes.key + shapes.value);
}

/// Returns the number of the sinks' parameters.
std::int64_t sinks(const Model& model) {
  return model.sinks ? model.heads : 0;
}

/// Appends the softmax of scores of this form, and the dropout; returns what multiplies the values.
int append_softmax(GraphBuilder& block, const Shapes& shapes, int scores, Bytes square) {
  const Form form{shapes.rows(), block.tensor(scores).extents[1], block.tensor(scores).extents[2]};
  const Bytes mask = square / shapes.element.value();  // one byte per element
  const int weights = block.activation(form);
  TensorList kept{weights};
  if (!shapes.options.fused_softmax && shapes.options.type != graph::DataType::fp32) {
    kept.add(block.buffer(form, graph::DataType::fp32));
  }
  block.add(softmax(shapes, square, mask), {.reads = {scores}, .writes = kept, .saves = kept},
            sinks(shapes.model));
  if (shapes.model.attention_dropout == 0) {
    return weights;
  }
  const int dropped = block.activation(form);
  const int dropped_where = block.buffer(form, kMask);
  block.add(
      core_streaming("attention_dropout", Role::score_dropout, graph::OperatorKind::elementwise,
                     {.forward = 2 * square + mask,
                      .forward_kernels = 1,
                      .backward = 2 * square + mask,
                      .backward_kernels = 1}),
      {.reads = {weights},
       .writes = {dropped, dropped_where},
       .saves = {dropped, dropped_where}});  // dropped: an input of context_gemm
  return dropped;
}

/// The whole S x S is computed, whatever mask or window is laid over it.
int append_unfused(GraphBuilder& block, const Shapes& shapes, const Heads& heads) {
  const std::int64_t keys = with_compressed(shapes, shapes.options.sequence);
  const Extent of_heads{Dim::heads, shapes.model.heads};
  const Bytes square = shapes.element * shapes.tokens * shapes.model.heads * keys;  // B a S^2 / c

  ModelOperator products =
      head_gemm("score_gemm", Role::scores, shapes, keys, shapes.head_dim, shapes.head_dim);
  products.query = shapes.wide(shapes.query);
  products.key_value = key_value_tensor(shapes);
  const int scores = block.activation({shapes.rows(), of_heads, {Dim::keys, keys}});
  TensorList read{heads.query, heads.key};
  for (const int further : heads.further) {
    read.add(further);
  }
  block.add(std::move(products), {.reads = read, .writes = {scores}});
  const int weights = append_softmax(block, shapes, scores, square);
  const int result = block.activation({shapes.rows(), {Dim::heads, shapes.context}});
  block.add(
      head_gemm("context_gemm", Role::context, shapes, shapes.value_dim, keys, shapes.value_dim),
      {.reads = {weights, heads.value < 0 ? heads.key : heads.value}, .writes = {result}});
  // [B, a, S, d] -> [S, B, a d], contiguous; backward reads through strides.
  return block.map(
      core_streaming("context_transpose", Role::transpose_context, graph::OperatorKind::elementwise,
                     {.forward = 2 * shapes.wide(shapes.context), .forward_kernels = 1}),
      {result});
}

/// Returns whose measured kernels stand for the plan's. Those of FlashAttention-3 are what devices
/// call their usual ones (vLLM runs it on H100 and H200); Triton's are timed by FlashAttention-2's
/// coefficients (triton_flops).
graph::AttentionLibrary library_of(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::flash2:
    case AttentionKernel::triton:
      return graph::AttentionLibrary::flash2;
    case AttentionKernel::cudnn:
      return graph::AttentionLibrary::cudnn;
    case AttentionKernel::cudnn_fp8:
      return graph::AttentionLibrary::cudnn_fp8;
    case AttentionKernel::unfused:
    case AttentionKernel::flash:
    case AttentionKernel::fa3:
      return graph::AttentionLibrary::any;
  }
  return graph::AttentionLibrary::any;
}

/// FlashAttention-2 is "around 1.3-1.5x faster in the forward pass and around 2x faster in the
/// backward pass" than the kernel in Triton (Dao 2023, section 4.1): so many more FLOPs at its rate
/// stand for that kernel.
void triton_flops(ModelOperator& op) {
  constexpr double kForward = 1.4;
  constexpr double kBackward = 2;
  op.forward_flops = op.forward_flops * kForward;
  op.backward_flops = op.backward_flops * kBackward;
}

/// Dao et al. 2022, 2023 (FlashAttention 1 and 2): forward 2 and backward 5 products per head and
/// pair of query and key that the mask leaves (visible_pairs): Q K^T, P V; recomputed Q K^T, dO
/// V^T, P^T dO, dS K, dS^T Q, three of them as wide as queries and two as wide as values. Forward
/// reads Q, K, V and writes the output and one fp32 log-sum-exp per row; backward reads them all
/// and the output's gradient, writes dQ, dK, dV (kernels: row sums of output x gradient, the
/// products, conversion of dQ). The output itself is saved as the input of proj_gemm; dropout
/// inside the kernel repeats its random numbers and stores no mask.
ModelOperator flash_attention(const Shapes& shapes) {
  const std::int64_t batch = shapes.options.microbatch * shapes.model.heads;
  const Bytes row_sums = graph::size_of(graph::DataType::fp32) * shapes.tokens * shapes.model.heads;
  const Bytes read = shapes.wide(shapes.query) + key_value_tensor(shapes);
  const Bytes output = shapes.wide(shapes.context);
  ModelOperator op = core_streaming("flash_attention", Role::attend, graph::OperatorKind::attention,
                                    {.forward = read + output + row_sums,
                                     .forward_kernels = 1,
                                     .backward = 2 * read + 2 * output + row_sums,
                                     .backward_kernels = 3});
  op.gemm = {
      .batch = batch, .m = shapes.queries, .n = shapes.options.sequence, .k = shapes.head_dim};
  const double pairs = pairs_of(shapes);
  const auto wide = static_cast<double>(shapes.head_dim);
  const auto narrow = static_cast<double>(shapes.value_dim);
  op.forward_flops = Flops(2 * pairs * (wide + narrow));
  op.model_flops = counted(shapes, op.forward_flops);
  op.backward_flops = Flops(2 * pairs * (3 * wide + 2 * narrow));
  op.query = shapes.wide(shapes.query);
  op.key_value = key_value_tensor(shapes);
  op.library = library_of(shapes.options.attention);
  if (shapes.options.attention == AttentionKernel::triton) {
    triton_flops(op);
  }
  return op;
}

/// Pairs of a document of this many tokens.
double pairs_within(const LayerKind& kind, std::int64_t length) {
  const auto keys = static_cast<double>(length);
  if (!kind.causal) {
    return keys * keys;
  }
  if (kind.window > 0) {
    const double window = std::min(keys, static_cast<double>(kind.window));
    return keys * window - window * window / 2;
  }
  if (kind.chunk > 0) {
    const std::int64_t chunks = length / kind.chunk;
    const auto whole = static_cast<double>(chunks);
    const auto chunk = static_cast<double>(kind.chunk);
    const auto rest = static_cast<double>(length % kind.chunk);
    return (whole * chunk * chunk + rest * rest) / 2;
  }
  return keys * keys / 2;
}

/// Returns the pairs of a document's queries and its compressed keys: a query sees those of the
/// tokens before it, or the `chosen` last ones' number of them.
double compressed_pairs(const LayerKind& kind, std::int64_t length) {
  if (kind.compression == 0) {
    return 0;
  }
  const LayerKind stood_for{.window = kind.chosen * kind.compression};
  return pairs_within(stood_for, length) / static_cast<double>(kind.compression);
}

/// `pairs` of all documents, on one context-parallel rank.
template <class Pairs>
double of_documents(const Shapes& shapes, Pairs pairs) {
  double sum = 0;
  for (const std::int64_t length : shapes.options.documents) {
    sum += pairs(length);
  }
  if (shapes.options.documents.empty()) {
    sum = pairs(shapes.options.sequence);
  }
  return sum / static_cast<double>(shapes.options.context);
}

}  // namespace

double visible_pairs(const Shapes& shapes) {
  return of_documents(shapes, [&](std::int64_t length) {
    return pairs_within(shapes.kind, length) + compressed_pairs(shapes.kind, length);
  });
}

double indexed_pairs(const Shapes& shapes) {
  const LayerKind all{.compression = shapes.kind.compression};
  return of_documents(shapes, [&](std::int64_t length) { return compressed_pairs(all, length); });
}

TensorList Heads::all() const {
  TensorList list{query, key};
  if (value >= 0) {
    list.add(value);
  }
  for (const int one : further) {
    list.add(one);
  }
  return list;
}

int append_attention(GraphBuilder& block, const Shapes& shapes, const Heads& heads) {
  if (!is_fused(shapes.options.attention)) {
    return append_unfused(block, shapes, heads);
  }
  const int result = block.activation({shapes.rows(), {Dim::heads, shapes.context}});
  const int row_sums =
      block.buffer({shapes.rows(), {Dim::heads, shapes.model.heads}}, graph::DataType::fp32);
  block.add(flash_attention(shapes),
            {.reads = heads.all(), .writes = {result, row_sums}, .saves = {row_sums}},
            sinks(shapes.model));
  return result;
}

}  // namespace orrery::zoo
