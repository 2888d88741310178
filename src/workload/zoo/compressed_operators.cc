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

/// A product with weights on every rank of what an operator before has saved.
ModelOperator shared_gemm(const std::string& name, Role role, const Shapes& shapes,
                          std::int64_t out, std::int64_t in) {
  ModelOperator op = weight_gemm(name, role, shapes, out, in, GemmSplit::none);
  op.saved = Bytes(0);
  return op;
}

/// Returns the rotation of `width` columns; fused in place, unfused as rotary() of
/// layer_operators.cc.
ModelOperator rotation(const std::string& name, Role role, const Shapes& shapes,
                       std::int64_t width) {
  const bool fused = shapes.options.fused_kernels;
  const Bytes traffic = (fused ? 2 : 10) * shapes.wide(width);
  const int kernels = fused ? 1 : 10;
  return streaming(name, role, graph::OperatorKind::elementwise, Split::tensor,
                   {traffic, kernels, traffic, kernels});
}

void append_queries(Operators& operators, const Shapes& shapes) {
  const Model& m = shapes.model;
  const CompressedAttention& c = m.compressed;
  operators.push_back(
      weight_gemm("q_a_gemm", Role::query_down, shapes, c.query_rank, m.hidden, GemmSplit::none));
  operators.push_back(norm("q_a_norm", Role::norm_latent, shapes, c.query_rank));
  operators.push_back(weight_gemm("q_b_gemm", Role::query_up, shapes, shapes.query, c.query_rank,
                                  GemmSplit::column));
  operators.push_back(
      shared_gemm("kv_gemm", Role::project_key_value, shapes, shapes.key, m.hidden));
  operators.push_back(norm("kv_norm", Role::norm_keys, shapes, shapes.key));
  operators.push_back(norm("query_norm", Role::norm_queries, shapes, shapes.query));
  operators.back().split = Split::tensor;
  operators.back().gemm.k = m.head_dim;
  operators.back().parameters = 0;
  operators.push_back(
      rotation("query_rotary", Role::rotate_latent, shapes, (m.heads + 1) * c.rotary));
  operators.back().saved = shapes.wide(shapes.query + shapes.key);
}

/// Values and weights of `width` for every token to one key per `compression` tokens. Fused: the
/// softmax and sum read both and write the key, the norm and rotation pass over the keys; backward
/// reads both and writes both gradients. Unfused: bias (2), softmax (2), product (3), sum (1) of
/// half as many columns each; backward the same and the sum over windows of the bias' gradient.
void append_compressor(Operators& operators, const Shapes& shapes, const std::string& prefix,
                       std::int64_t width) {
  const Model& m = shapes.model;
  const LayerKind& kind = shapes.kind;
  const std::int64_t series = (kind.chosen > 0 ? 2 : 1) * width;
  operators.push_back(
      shared_gemm(prefix + "compress_gemm", Role::compress_project, shapes, 2 * series, m.hidden));
  const bool fused = shapes.options.fused_kernels;
  const Bytes half = shapes.wide(series);
  const Bytes keys = shapes.tensor(shapes.tokens / kind.compression, width);
  ModelOperator op = streaming(prefix + "compress", Role::compress,
                               graph::OperatorKind::elementwise, Split::sequence,
                               {.forward = (fused ? 2 : 8) * half + 5 * keys,
                                .forward_kernels = fused ? 2 : 6,
                                .backward = (fused ? 4 : 9) * half + 8 * keys,
                                .backward_kernels = fused ? 3 : 9});
  op.saved = 2 * half + 2 * keys;  // its input, the norm's input, the keys
  op.parameters = kind.compression * series + norm_parameters(m, width);
  operators.push_back(op);
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
  ModelOperator op =
      streaming("index_scores", Role::index_scores, graph::OperatorKind::attention, Split::sequence,
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
  op.saved = read;
  return op;
}

/// Reads the scores, writes the chosen keys' numbers (4 bytes); the order of keys has no gradient.
ModelOperator index_top_k(const Shapes& shapes) {
  const std::int64_t keys = shapes.options.sequence / shapes.kind.compression;
  const Bytes number = graph::size_of(graph::DataType::fp32) * shapes.tokens;
  ModelOperator op =
      streaming("index_top_k", Role::index_top_k, graph::OperatorKind::elementwise, Split::sequence,
                {.forward = number * (keys + std::min(keys, shapes.kind.chosen)),
                 .forward_kernels = 1,
                 .backward_kernels = 0});
  op.recompute = RecomputeGroup::selective;
  op.saved = number * std::min(keys, shapes.kind.chosen);
  return op;
}

void append_indexer(Operators& operators, const Shapes& shapes) {
  const Model& m = shapes.model;
  const CompressedAttention& c = m.compressed;
  operators.push_back(shared_gemm("index_q_gemm", Role::index_project, shapes,
                                  c.index_heads * c.index_dim, c.query_rank));
  operators.push_back(rotation("index_rotary", Role::index_rotate, shapes,
                               c.index_heads * std::min(c.rotary, c.index_dim)));
  operators.back().split = Split::sequence;
  operators.push_back(
      shared_gemm("index_weights_gemm", Role::index_project, shapes, c.index_heads, m.hidden));
  append_compressor(operators, shapes, "index_", c.index_dim);
  operators.push_back(index_scores(shapes));
  operators.push_back(index_top_k(shapes));
}

/// g products of T x (a d / g) x r.
ModelOperator grouped_projection(const Shapes& shapes) {
  const CompressedAttention& c = shapes.model.compressed;
  ModelOperator op = weight_gemm("proj_a_gemm", Role::project_groups, shapes, c.output_rank,
                                 shapes.context / c.output_groups, GemmSplit::none);
  op.gemm.batch = c.output_groups;
  op.gemm_split = GemmSplit::heads;
  op.split = Split::tensor;
  op.forward_flops = op.model_flops = graph::flops_of(op.gemm);
  op.backward_flops = 2 * op.forward_flops;
  op.forward_bytes = op.forward_bytes * c.output_groups;
  op.saved = op.saved * c.output_groups;
  op.parameters *= c.output_groups;
  return op;
}

}  // namespace

void append_compressed_attention(Operators& operators, const Shapes& shapes) {
  const Model& m = shapes.model;
  const CompressedAttention& c = m.compressed;
  append_queries(operators, shapes);
  if (shapes.kind.compression > 0) {
    append_compressor(operators, shapes, "", m.head_dim);
  }
  if (shapes.kind.chosen > 0) {
    append_indexer(operators, shapes);
  }
  append_attention(operators, shapes);
  operators.push_back(rotation("output_rotary", Role::rotate_back, shapes, m.heads * c.rotary));
  operators.push_back(grouped_projection(shapes));
  operators.push_back(weight_gemm("proj_gemm", Role::project_out, shapes, m.hidden,
                                  c.output_groups * c.output_rank, GemmSplit::row));
}

}  // namespace orrery::zoo
