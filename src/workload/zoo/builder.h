// SPDX-License-Identifier: Apache-2.0
/// Parts from which the operator lists are made. Internal to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workload/zoo/model.h"

namespace orrery::zoo {

using Operators = std::vector<ModelOperator>;
using Role = graph::OperatorRole;
using graph::Branch;

/// Extents of one microbatch and the sizes of the tensors that operators stream, at t = 1.
struct Shapes {
  Shapes(const Model& m, const ShapeOptions& o, LayerKind k = {});

  /// Bytes of a rows x columns tensor of the compute type; saturates.
  Bytes tensor(std::int64_t rows, std::int64_t columns) const { return element * rows * columns; }
  /// Returns the bytes of T rows.
  Bytes wide(std::int64_t columns) const { return tensor(tokens, columns); }

  const Model& model;
  const ShapeOptions& options;
  LayerKind kind;
  std::int64_t tokens;     ///< T = B S / c
  std::int64_t queries;    ///< of one sequence: S / c
  std::int64_t value_dim;  ///< of a head
  std::int64_t query;      ///< heads x head_dim
  std::int64_t key;        ///< kv_heads x head_dim
  std::int64_t value;      ///< kv_heads x value_dim; 0 where keys are the values too
  std::int64_t context;    ///< heads x value_dim: width of what attention returns
  std::int64_t ffn;        ///< inner width of this layer's dense MLP
  std::int64_t vocab;      ///< padded
  Bytes element;           ///< size of the compute type
  Bytes hidden_tensor;     ///< T x H
  Bytes hidden_mask;       ///< T x H of one byte: a dropout mask
};

/// Gives operators from `first` on to the branch, but for those that one has already.
void mark(Operators& operators, std::size_t first, Branch branch);

/// The layer kind with this index. Requires 0 <= kind < number of layer_kinds(model).
LayerKind kind_of(const Model& model, int kind);

/// How many of the model's layers are of each kind.
std::vector<std::int64_t> layers_by_kind(const Model& model);

/// Traffic is what a memory-bound operator reads and writes, in all its kernels.
struct Traffic {
  Bytes forward{0};
  int forward_kernels = 0;
  Bytes backward{0};
  int backward_kernels = 0;
};

/// A memory-bound operator.
ModelOperator streaming(std::string name, Role role, graph::OperatorKind kind, Split split,
                        const Traffic& traffic);

/// Y[T, out] = X[T, in] W[in, out]; saves X. Column-parallel GEMMs `enter` and keep X like a norm
/// does (Split::sequence); row-parallel ones `leave` and their X is split over t. With
/// GemmSplit::none every rank has the whole weight and handles its own tokens.
ModelOperator weight_gemm(std::string name, Role role, const Shapes& shapes, std::int64_t out,
                          std::int64_t in, GemmSplit split);

/// LayerNorm or RMSNorm over rows of `width`; over H with the sum of the two gradients that meet at
/// its input, the residual branch's and its own.
ModelOperator norm(std::string name, Role role, const Shapes& shapes);
ModelOperator norm(std::string name, Role role, const Shapes& shapes, std::int64_t width);
/// Parameters of a norm over `width` elements.
std::int64_t norm_parameters(const Model& model, std::int64_t width);

/// Activation between the matrices of an MLP of inner width `width`, for `rows` tokens.
ModelOperator activation(const Shapes& shapes, std::int64_t rows, std::int64_t width, bool bias);

/// Attention core: from Q, K, V (saved by qkv_split) to the input of the output projection.
void append_attention(Operators& operators, const Shapes& shapes);
/// From the norm's output to Q, K, V of multi-head latent attention.
void append_latent_projections(Operators& operators, const Shapes& shapes);
/// From the norm's output to H: projections, compressor, indexer, attention, output projections.
void append_compressed_attention(Operators& operators, const Shapes& shapes);
/// From the norm's output to H: projections, convolution, scan, gated norm.
void append_mamba(Operators& operators, const Shapes& shapes);
/// From the norm's output to H: router, dispatch, experts, combine, shared expert.
void append_experts(Operators& operators, const Shapes& shapes);
/// fc1, activation, fc2 of inner width `ffn`, of the MLP or the shared expert ("shared_fc1_gemm").
void append_mlp(Operators& operators, const Shapes& shapes, Branch branch, std::int64_t ffn);

/// The matrices of LayerKind::widths, after the interaction when there is one.
void append_tower(Operators& operators, const Shapes& shapes);

/// Query-key pairs of one head and sequence that a kernel which skips masked blocks computes.
double visible_pairs(const Shapes& shapes);
/// Returns the pairs that an indexer scores: of a query and every compressed key before it.
double indexed_pairs(const Shapes& shapes);

/// Hyper-connections (Model::streams n > 1). In front of a branch: its mixing weights from the n
/// streams, and their weighted sum. `branch`: prefix of the names.
void append_collapse(Operators& operators, const Shapes& shapes, const std::string& branch);
/// After it: the mixed streams plus the weighted result of the branch.
void append_expand(Operators& operators, const Shapes& shapes, const std::string& branch);
/// n copies of the embedding.
void append_stream_copies(Operators& operators, const Shapes& shapes);
/// One weighted sum of n streams in front of the final norm.
void append_stream_head(Operators& operators, const Shapes& shapes);
/// The norms and projections of a depth of multi-token prediction: the hidden states' n streams and
/// the embedding have a matrix each.
void append_stream_combine(Operators& operators, const Shapes& shapes);
/// Parameters of a hyper-connection around one branch, and of the one in front of the output; 0
/// without streams.
std::int64_t stream_parameters(const Model& model);
std::int64_t stream_head_parameters(const Model& model);

}  // namespace orrery::zoo
