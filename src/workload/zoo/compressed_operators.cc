// SPDX-License-Identifier: Apache-2.0
/// Attention to a window and to compressed keys (DeepSeek-AI 2026, "DeepSeek-V4", section 2.3, as
/// in Hugging Face's modeling_deepseek_v4). H hidden, a heads of d, m tokens per compressed key:
///
///   queries     q_a (H x rank), norm, q_b (rank x a d), norm of each head without scale, rotation
///   keys        kv (H x d), norm, rotation: one head, which is the values too
///   compressor  values and weights, H x s d each; the softmax of weights (+ m x s d) over m tokens
///               sums values to a key; norm, rotation. s = 1, or with an indexer 2: a key is made
///               of its own m tokens and of the m before
///   indexer     q (rank x a' d'), weights of heads (H x a'), keys by a compressor of width d';
///               a key's score: sum over a' of weight x ReLU(q k); the best `chosen` are seen
///   core        window and compressed keys in one softmax with a sink per head, inverse rotation
///   output      g groups: a d / g x r each (proj_a); g r x H (proj)
///
/// As in Megatron-LM's latent attention, what makes latents, keys and indices is on every
/// tensor-parallel rank; q_b is column-parallel, proj_a split by its groups, proj row-parallel.
///
/// Assumed: the keys that an indexer picks come from cache, so the core streams each key once as
/// flash attention does; the indexer runs forward and backward like any other product.
/// Ignores: the loss that trains the indexer (its likeness to the core's weights); the gather of
/// keys between tensor-parallel ranks; what of a key's m tokens lies on the neighbour under context
/// parallelism.
#include <algorithm>
#include <string>

#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

/// A product with weights on every rank of what an operator before has kept.
Matrix shared_matrix(std::string name, Role role, Extent out) {
  return {.name = std::move(name), .role = role, .out = out, .keeps_input = false};
}

/// Returns the rotation of `width` columns; fused in place, unfused as rotary() of
/// layer_operators.cc.
ModelOperator rotation(const std::string& name, Role role, const Shapes& shapes,
                       std::int64_t width) {
  const bool fused = shapes.options.fused_kernels;
  const Bytes traffic = (fused ? 2 : 10) * shapes.wide(width);
  const int kernels = fused ? 1 : 10;
  return streaming(name, role, graph::OperatorKind::elementwise,
                   {traffic, kernels, traffic, kernels});
}

/// Latents are what queries, keys and the indexer are made of.
struct Latents {
  Heads heads;
  int queries = -1;  ///< the low-rank latent, normed
};

Latents append_queries(GraphBuilder& block, const Shapes& shapes, int x) {
  const Model& m = shapes.model;
  const CompressedAttention& c = m.compressed;
  const int down = block.product(
      {.name = "q_a_gemm", .role = Role::query_down, .out = {Dim::latent, c.query_rank}}, {x});
  Latents latents;
  latents.queries = append_norm(block, shapes, "q_a_norm", Role::norm_latent, down, c.query_rank);
  const int up =
      block.product({.name = "q_b_gemm", .role = Role::query_up, .out = {Dim::heads, shapes.query}},
                    {latents.queries});
  const int key = block.product(
      shared_matrix("kv_gemm", Role::project_key_value, {Dim::latent, shapes.key}), {x});
  latents.heads.key = append_norm(block, shapes, "kv_norm", Role::norm_keys, key, shapes.key);
  ModelOperator even = norm("query_norm", Role::norm_queries, shapes, shapes.query);
  even.gemm.k = m.head_dim;
  const int query = block.map(std::move(even), {up}, {up});
  latents.heads.query = block.like(query);
  block.add(rotation("query_rotary", Role::rotate_latent, shapes, (m.heads + 1) * c.rotary),
            {.reads = {query, latents.heads.key},
             .writes = {latents.heads.query},  // and the key where it lies
             .saves = {latents.heads.query, latents.heads.key}});
  return latents;
}

/// Values and weights of `width` for every token to one key per `compression` tokens. Fused: the
/// softmax and sum read both and write the key, the norm and rotation pass over the keys; backward
/// reads both and writes both gradients. Unfused: bias (2), softmax (2), product (3), sum (1) of
/// half as many columns each; backward the same and the sum over windows of the bias' gradient.
int append_compressor(GraphBuilder& block, const Shapes& shapes, const std::string& prefix, int x,
                      std::int64_t width) {
  const Model& m = shapes.model;
  const LayerKind& kind = shapes.kind;
  const std::int64_t series = (kind.chosen > 0 ? 2 : 1) * width;
  const int both = block.product(
      shared_matrix(prefix + "compress_gemm", Role::compress_project, {Dim::none, 2 * series}),
      {x});
  const bool fused = shapes.options.fused_kernels;
  const std::int64_t keys = shapes.tokens / kind.compression;
  const Bytes half = shapes.wide(series);
  const Bytes size = shapes.tensor(keys, width);
  const Form form{{Dim::keys, keys}, {Dim::latent, width}};
  const int summed = block.buffer(form, shapes.options.type);
  const int result = block.activation(form);
  block.add(streaming(prefix + "compress", Role::compress, graph::OperatorKind::elementwise,
                      {.forward = (fused ? 2 : 8) * half + 5 * size,
                       .forward_kernels = fused ? 2 : 6,
                       .backward = (fused ? 4 : 9) * half + 8 * size,
                       .backward_kernels = fused ? 3 : 9}),
            {.reads = {both}, .writes = {result, summed}, .saves = {both, summed, result}},
            kind.compression * series + norm_parameters(m, width));
  return result;
}

/// ReLU and weighted sum over the indexer's heads are part of the product's kernel (DeepSeek-AI's
/// lightning indexer), which writes one fp32 score per pair; unfused, scores of every head are
/// written and read twice.
ModelOperator index_scores(const Shapes& shapes) {
  const CompressedAttention& c = shapes.model.compressed;
  const std::int64_t keys = shapes.options.sequence / shapes.kind.compression;
  const Bytes scores = graph::size_of(graph::DataType::fp32) * shapes.tokens * keys;
  const Bytes read = shapes.wide(c.index_heads * (c.index_dim + 1)) +
                     shapes.tensor(shapes.tokens / shapes.kind.compression, c.index_dim);
  const Bytes passes = shapes.options.fused_kernels ? scores : (1 + 4 * c.index_heads) * scores;
  ModelOperator op = streaming("index_scores", Role::index_scores, graph::OperatorKind::attention,
                               {.forward = read + passes,
                                .forward_kernels = shapes.options.fused_kernels ? 1 : 4,
                                .backward = 2 * read + passes,
                                .backward_kernels = shapes.options.fused_kernels ? 1 : 4});
  op.recompute = RecomputeGroup::selective;
  op.gemm = {.batch = shapes.options.microbatch * c.index_heads,
             .m = shapes.queries,
             .n = keys,
             .k = c.index_dim};
  const double products = static_cast<double>(shapes.options.microbatch * c.index_heads) *
                          static_cast<double>(2 * c.index_dim);
  op.forward_flops = Flops(products * indexed_pairs(shapes));
  op.model_flops = 2 * op.forward_flops;  // the whole square, as attention counts it
  op.backward_flops = 2 * op.forward_flops;
  return op;
}

/// Reads the scores, writes the chosen keys' numbers (4 bytes); the order of keys has no gradient.
ModelOperator index_top_k(const Shapes& shapes) {
  const std::int64_t keys = shapes.options.sequence / shapes.kind.compression;
  const Bytes number = graph::size_of(graph::DataType::fp32) * shapes.tokens;
  ModelOperator op = streaming("index_top_k", Role::index_top_k, graph::OperatorKind::elementwise,
                               {.forward = number * (keys + std::min(keys, shapes.kind.chosen)),
                                .forward_kernels = 1,
                                .backward_kernels = 0});
  op.recompute = RecomputeGroup::selective;
  return op;
}

/// Returns the numbers of the keys that queries see.
int append_indexer(GraphBuilder& block, const Shapes& shapes, int x, int latent) {
  const Model& m = shapes.model;
  const CompressedAttention& c = m.compressed;
  const std::int64_t keys = shapes.options.sequence / shapes.kind.compression;
  const int projected = block.product(
      shared_matrix("index_q_gemm", Role::index_project, {Dim::none, c.index_heads * c.index_dim}),
      {latent});
  const int query = block.map(rotation("index_rotary", Role::index_rotate, shapes,
                                       c.index_heads * std::min(c.rotary, c.index_dim)),
                              {projected});
  const int weights = block.product(
      shared_matrix("index_weights_gemm", Role::index_project, {Dim::none, c.index_heads}), {x});
  const int key = append_compressor(block, shapes, "index_", x, c.index_dim);
  const int scores = block.activation({shapes.rows(), {Dim::keys, keys}}, graph::DataType::fp32);
  block.add(index_scores(shapes),
            {.reads = {query, weights, key}, .writes = {scores}, .saves = {query, weights, key}});
  const int chosen = block.activation(
      {shapes.rows(), {Dim::none, std::min(keys, shapes.kind.chosen)}}, graph::DataType::fp32);
  block.add(index_top_k(shapes), {.reads = {scores}, .writes = {chosen}, .saves = {chosen}});
  return chosen;
}

/// g products of T x (a d / g) x r.
int append_grouped_projection(GraphBuilder& block, const Shapes& shapes, int x) {
  const CompressedAttention& c = shapes.model.compressed;
  const std::int64_t in = shapes.context / c.output_groups;
  ModelOperator op;
  op.name = "proj_a_gemm";
  op.role = Role::project_groups;
  op.kind = graph::OperatorKind::gemm;
  op.gemm = {.batch = c.output_groups, .m = shapes.tokens, .n = c.output_rank, .k = in};
  op.forward_flops = op.model_flops = graph::flops_of(op.gemm);
  op.backward_flops = 2 * op.forward_flops;
  op.backward_kernels = 0;
  op.has_weight = true;
  const int weight = block.parameter(
      {{Dim::groups, c.output_groups}, {Dim::none, in}, {Dim::none, c.output_rank}});
  const int result =
      block.activation({shapes.rows(), {Dim::groups, c.output_groups * c.output_rank}});
  op.forward_bytes =
      block.tensor(x).bytes() + block.tensor(weight).bytes() + block.tensor(result).bytes();
  block.add(std::move(op), {.reads = {x, weight}, .writes = {result}, .saves = {x}});
  return result;
}

}  // namespace

int append_compressed_attention(GraphBuilder& block, const Shapes& shapes, int x) {
  const Model& m = shapes.model;
  const CompressedAttention& c = m.compressed;
  Latents latents = append_queries(block, shapes, x);
  if (shapes.kind.compression > 0) {
    latents.heads.further.add(append_compressor(block, shapes, "", x, m.head_dim));
  }
  if (shapes.kind.chosen > 0) {
    latents.heads.further.add(append_indexer(block, shapes, x, latents.queries));
  }
  const int attended = append_attention(block, shapes, latents.heads);
  const int rotated = block.map(
      rotation("output_rotary", Role::rotate_back, shapes, m.heads * c.rotary), {attended});
  const int grouped = append_grouped_projection(block, shapes, rotated);
  return block.product({.name = "proj_gemm", .role = Role::project_out, .out = shapes.width()},
                       {grouped});
}

}  // namespace orrery::zoo
