// SPDX-License-Identifier: Apache-2.0
/// Multi-head latent attention (DeepSeek-AI 2024, "DeepSeek-V2", section 2.1): queries, keys and
/// values through low-rank latents. Training expands keys and values for every head, so the core is
/// that of multi-head attention whose values are narrower than queries and keys.
///
///   q_a (H x query_rank), norm, q_b (query_rank x heads head_dim)      or  q (H x heads head_dim)
///   kv_a (H x (key_value_rank + rotary)), norm, kv_b (key_value_rank x heads (d - rotary + d_v))
///
/// As in Megatron-LM's MLA, a and norm are on every rank (with SP on its own tokens), b is
/// column-parallel: the gathered tensor is the narrow latent.
#include <algorithm>
#include <string>

#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

/// Rotates the queries' part in place (read, write), copies each head's keys beside the one rotated
/// part and separates the values (read d - r + d_v, write d + d_v per head). Unfused: the rotation
/// is 5 passes (rotary()) and keys are concatenated in a pass of their own.
ModelOperator assembly(const Shapes& shapes) {
  const Model& m = shapes.model;
  const bool fused = shapes.options.fused_kernels;
  const Bytes rotated = shapes.wide(m.heads * m.latent.rotary);
  const Bytes expanded = shapes.wide(m.heads * (m.head_dim + shapes.value_dim));
  const Bytes traffic = (fused ? 2 : 10) * rotated + (fused ? 2 : 4) * expanded - rotated;
  return streaming("latent_rotary", Role::rotate_latent, graph::OperatorKind::elementwise,
                   {traffic, fused ? 2 : 14, traffic, fused ? 2 : 14});
}

/// ReLU and weighted sum over the indexer's heads are part of the product's kernel (DeepSeek-AI's
/// lightning indexer), which writes one fp32 score per pair; the choice reads them and writes numbers
/// of keys. Every pair under the causal mask is scored.
ModelOperator token_scores(const Shapes& shapes) {
  const SparseIndex& index = shapes.model.index;
  const double pairs = visible_pairs(shapes) * static_cast<double>(shapes.options.microbatch);
  const std::int64_t keys = shapes.options.sequence;
  const Bytes scores = graph::size_of(graph::DataType::fp32) * shapes.tokens * keys;
  const Bytes read = shapes.wide(index.heads * (index.dim + 1)) + shapes.wide(index.dim);
  ModelOperator op = streaming("index_scores", Role::index_scores, graph::OperatorKind::attention,
                               {.forward = read + 2 * scores,
                                .forward_kernels = 2,
                                .backward = 2 * read + scores,
                                .backward_kernels = 1});
  op.recompute = RecomputeGroup::selective;
  op.gemm = {.batch = shapes.options.microbatch * index.heads,
             .m = shapes.queries,
             .n = keys,
             .k = index.dim};
  op.forward_flops = Flops(2 * pairs * static_cast<double>(index.heads * index.dim));
  op.model_flops = 2 * op.forward_flops;  // the whole square, as attention counts it
  op.backward_flops = 2 * op.forward_flops;
  return op;
}

/// Returns the numbers of the keys that queries see.
int append_index(GraphBuilder& block, const Shapes& shapes, int x, int latent) {
  const SparseIndex& index = shapes.model.index;
  const int query = block.product({.name = "index_q_gemm",
                                   .role = Role::index_project,
                                   .out = {Dim::none, index.heads * index.dim}},
                                  {latent});
  const int weights = block.product(
      {.name = "index_weights_gemm", .role = Role::index_project, .out = {Dim::none, index.heads}},
      {x});
  const int raw = block.product(
      {.name = "index_k_gemm", .role = Role::index_project, .out = {Dim::none, index.dim}}, {x});
  const Bytes keys = shapes.wide(index.dim);
  const int key = block.map(streaming("index_k_norm", Role::norm_other, graph::OperatorKind::norm,
                                      {2 * keys, 1, 4 * keys, 2}),
                            {raw}, {raw}, 2 * index.dim);
  const int chosen = block.activation(
      {shapes.rows(), {Dim::none, std::min(index.chosen, shapes.options.sequence)}},
      graph::DataType::fp32);
  block.add(
      token_scores(shapes),
      {.reads = {query, weights, key}, .writes = {chosen}, .saves = {query, weights, key, chosen}});
  return chosen;
}

}  // namespace

Heads append_latent_projections(GraphBuilder& block, const Shapes& shapes, int x) {
  const Model& m = shapes.model;
  const LatentAttention& latent = m.latent;
  const Extent of_heads{Dim::heads, shapes.query};
  int query = -1;
  int chosen = -1;
  if (latent.query_rank > 0) {
    const int down = block.product({.name = "q_a_gemm",
                                    .role = Role::query_down,
                                    .out = {Dim::latent, latent.query_rank},
                                    .further = m.attention_bias ? latent.query_rank : 0},
                                   {x});
    const int even =
        append_norm(block, shapes, "q_a_norm", Role::norm_latent, down, latent.query_rank);
    query = block.product({.name = "q_b_gemm", .role = Role::query_up, .out = of_heads}, {even});
    chosen = m.index.chosen > 0 ? append_index(block, shapes, x, even) : -1;
  } else {
    query = block.product({.name = "q_gemm", .role = Role::project_query, .out = of_heads}, {x});
  }
  // Its input is kept by the projection before.
  const std::int64_t width = latent.key_value_rank + latent.rotary;
  const TensorList down =
      block.products({.name = "kv_a_gemm",
                      .role = Role::key_value_down,
                      .out = {Dim::latent, width},
                      .further = m.attention_bias ? width : 0,
                      .keeps_input = false},
                     x, {{Dim::latent, latent.key_value_rank}, {Dim::none, latent.rotary}});
  const int rotated = *(down.begin() + 1);
  const int even = append_norm(block, shapes, "kv_a_norm", Role::norm_latent, down.front(),
                               latent.key_value_rank);
  const std::int64_t expanded = m.heads * (m.head_dim - latent.rotary + shapes.value_dim);
  const int up = block.product(
      {.name = "kv_b_gemm", .role = Role::key_value_up, .out = {Dim::heads, expanded}}, {even});
  Heads heads{.query = block.activation({shapes.rows(), of_heads}),
              .key = block.activation({shapes.rows(), of_heads}),
              .value = block.activation({shapes.rows(), {Dim::heads, shapes.context}})};
  block.add(assembly(shapes),
            {.reads = {query, up, rotated}, .writes = heads.all(), .saves = heads.all()});
  if (chosen >= 0) {
    heads.further.add(chosen);
  }
  return heads;
}

}  // namespace orrery::zoo
