// SPDX-License-Identifier: Apache-2.0
/// Roles of a model's operators, and the tensors between them.
///
/// Names of operators are labels: users type them (`recompute_modules`, `lora_targets`,
/// `unquantized_modules`, tables of measured kernels) and traces show them. What code does with an
/// operator follows from its role, its branch and its depth.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>

#include "base/units.h"
#include "graph/operator.h"

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
  gate_context,  ///< of attention's result, times the sigmoid of its gate
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

/// A dimension of a model's tensors. What parallelism divides has a name of its own.
enum class Dim : std::uint8_t {
  none,             ///< a width that nothing divides
  batch,            ///< sequences
  tokens,           ///< of all sequences
  keys,             ///< that queries see, or one of several tokens
  hidden,           ///< H
  latent,           ///< width of a low-rank projection
  heads,            ///< columns of all query heads
  key_value_heads,  ///< columns of all heads of keys or values
  groups,           ///< columns of Mamba's groups, or of groups of an output projection
  inner,            ///< F of an MLP or of an expert; channels of Mamba
  vocab,            ///< rows of a table, or its logits
  experts,
  rows,  ///< tokens times the experts that each is sent to
};

/// Returns whether tensor parallelism divides the dimension.
constexpr bool is_divided(Dim dim) {
  return dim == Dim::heads || dim == Dim::key_value_heads || dim == Dim::groups ||
         dim == Dim::inner || dim == Dim::vocab;
}

struct Extent {
  Dim dim = Dim::none;
  std::int64_t size = 1;  ///< in elements
};

/// A tensor of one microbatch on one device, before splitting. A value is called as the operator
/// that writes it.
struct ModelTensor {
  static constexpr std::size_t kMost = 3;
  enum class Use : std::uint8_t {
    activation,
    parameter,
    input,   ///< comes from outside the block
    buffer,  ///< an operator keeps it for its own backward; nothing else reads it
  };

  Use use = Use::activation;
  DataType type = DataType::bf16;       ///< masks have a byte an element: fp8
  std::array<Extent, kMost> extents{};  ///< rows first; those that are not there have size 1
  bool shared = false;                  ///< a parameter of another block
  /// Another tensor that this one shows: some of its elements, or all in another order, without a
  /// kernel. -1: none.
  int view_of = -1;

  Bytes bytes() const {  // saturates
    Bytes sum = size_of(type);
    for (const Extent& extent : extents) {
      sum = sum * extent.size;
    }
    return sum;
  }
  std::int64_t rows() const { return extents.front().size; }
  std::int64_t columns() const { return extents[1].size * extents[2].size; }
  /// Returns whether tensor parallelism divides it.
  bool is_divided() const {
    return std::ranges::any_of(extents,
                               [](const Extent& one) { return graph::is_divided(one.dim); });
  }
};

/// Numbers of a few tensors of a block.
class TensorList {
 public:
  static constexpr std::uint32_t kMost = 7;

  constexpr TensorList() = default;
  constexpr TensorList(std::initializer_list<int> tensors) {
    for (const int tensor : tensors) {
      add(tensor);
    }
  }
  constexpr void add(int tensor) {
    assert(size_ < kMost && "an operator has few tensors");
    tensors_[size_++] = tensor;
  }

  constexpr const int* begin() const { return tensors_.data(); }
  constexpr const int* end() const { return begin() + size_; }
  constexpr std::uint32_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr int front() const { return tensors_.front(); }

 private:
  std::array<int, kMost> tensors_{};
  std::uint32_t size_ = 0;
};

/// Says which part of a layer an operator belongs to; norms, residual sums and streams to none.
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
