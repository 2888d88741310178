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
#include <string>

#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

/// Appends the down-projection of T rows of `width` of the layer's normalised input. `shares`: that
/// input is saved by the projection before.
void append_down(Operators& operators, const Shapes& shapes, Role role, std::int64_t width,
                 bool shares) {
  operators.push_back(weight_gemm(role == Role::query_down ? "q_a_gemm" : "kv_a_gemm", role, shapes,
                                  width, shapes.model.hidden, GemmSplit::none));
  if (shares) {
    operators.back().saved = Bytes(0);
  }
  operators.back().parameters += shapes.model.attention_bias ? width : 0;
}

/// Rotates the queries' part in place (read, write), copies each head's keys beside the one rotated
/// part and separates the values (read d - r + d_v, write d + d_v per head). Unfused: the rotation
/// is 5 passes (rotary()) and keys are concatenated in a pass of their own.
ModelOperator assembly(const Shapes& shapes) {
  const Model& m = shapes.model;
  const bool fused = shapes.options.fused_kernels;
  const Bytes rotated = shapes.wide(m.heads * m.latent.rotary);
  const Bytes expanded = shapes.wide(m.heads * (m.head_dim + shapes.value_dim));
  const Bytes traffic = (fused ? 2 : 10) * rotated + (fused ? 2 : 4) * expanded - rotated;
  ModelOperator op =
      streaming("latent_rotary", Role::rotate_latent, graph::OperatorKind::elementwise,
                Split::tensor, {traffic, fused ? 2 : 14, traffic, fused ? 2 : 14});
  op.saved = shapes.wide(m.heads * (2 * m.head_dim + shapes.value_dim));  // Q, K, V
  return op;
}

}  // namespace

void append_latent_projections(Operators& operators, const Shapes& shapes) {
  const Model& m = shapes.model;
  const LatentAttention& latent = m.latent;
  if (latent.query_rank > 0) {
    append_down(operators, shapes, Role::query_down, latent.query_rank, false);
    operators.push_back(norm("q_a_norm", Role::norm_latent, shapes, latent.query_rank));
    operators.push_back(weight_gemm("q_b_gemm", Role::query_up, shapes, shapes.query,
                                    latent.query_rank, GemmSplit::column));
  } else {
    operators.push_back(weight_gemm("q_gemm", Role::project_query, shapes, shapes.query, m.hidden,
                                    GemmSplit::column));
  }
  append_down(operators, shapes, Role::key_value_down, latent.key_value_rank + latent.rotary, true);
  operators.push_back(norm("kv_a_norm", Role::norm_latent, shapes, latent.key_value_rank));
  const std::int64_t expanded = m.heads * (m.head_dim - latent.rotary + shapes.value_dim);
  operators.push_back(weight_gemm("kv_b_gemm", Role::key_value_up, shapes, expanded,
                                  latent.key_value_rank, GemmSplit::column));
  operators.push_back(assembly(shapes));
}

}  // namespace orrery::zoo
