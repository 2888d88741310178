// SPDX-License-Identifier: Apache-2.0
/// Roles of a model's operators.
///
/// Names of operators are labels: users type them (`recompute_modules`, `lora_targets`,
/// `unquantized_modules`, tables of measured kernels) and traces show them. What code does with an
/// operator follows from its role, its branch and its depth.
#pragma once

#include <cstdint>

namespace orrery::graph {

enum class OperatorRole : std::uint8_t {
  none,
  // before the layers
  token_embedding,
  clear_table_gradient,
  type_embedding,
  position_embedding,
  relative_bias,
  patch_projection,
  table_lookup,
  embedding_dropout,
  // norms
  norm_branch,   ///< of a branch's input; in post-norm models after its residual sum
  norm_post,     ///< of a branch's result, before the residual sum
  norm_latent,   ///< of a low-rank latent of queries or of keys and values
  norm_queries,  ///< of the heads of queries behind a latent
  norm_keys,     ///< of the one head of keys of compressed attention
  norm_heads,    ///< of the heads of queries and keys
  norm_gated,    ///< of Mamba's result, times its gate
  norm_final,    ///< of a stack's output
  norm_other,
  // attention
  project_qkv,
  project_query,
  project_key_value,
  query_down,
  query_up,
  key_value_down,
  key_value_up,
  split_qkv,
  rotate,
  rotate_latent,  ///< of what comes from latents, with the assembly of its heads
  rotate_back,    ///< of compressed attention's result
  scores,
  softmax,
  score_dropout,
  context,
  transpose_context,
  attend,
  project_groups,
  project_out,
  // compressed keys and their indexer
  compress_project,
  compress,
  index_project,
  index_rotate,
  index_scores,
  index_top_k,
  // MLPs and towers
  up,
  activation,
  down,
  interaction,
  tower_matrix,
  tower_activation,
  // experts
  router,
  latent_down,
  routing,
  expert_up,
  expert_activation,
  expert_down,
  expert_bias,
  unpermute,
  latent_up,
  shared_sum,
  // Mamba
  mamba_in,
  convolution,
  scan,
  mamba_out,
  // residual streams
  mix_project,
  mix_weights,
  collapse,
  expand,
  copy_streams,
  residual,
  // after the layers
  join_project,  ///< of hidden states and embedding, in front of a predicted depth
  join,
  transform,
  pooler,
  classifier,
  logits,
  cross_entropy,
  click_loss,
  // low-rank adapters
  adapter_down,
  adapter_up,
  adapter_join,
  adapter_sum,
};

/// A dimension of activations that parallelism may divide.
enum class Dim : std::uint8_t { heads, key_value_heads, groups, inner };

/// Which part of a layer an operator belongs to; norms, residual sums and streams to none.
enum class Branch : std::uint8_t {
  none,
  attention,
  cross_attention,
  mamba,
  mlp,  ///< also a tower
  experts,
  shared_expert,
};

}  // namespace orrery::graph
