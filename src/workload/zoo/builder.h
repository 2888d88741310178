// SPDX-License-Identifier: Apache-2.0
/// Parts from which the operator lists are made. Internal to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workload/zoo/model.h"

namespace orrery::zoo {

/// Extents of one microbatch and the sizes of the tensors that operators stream, at t = 1.
struct Shapes {
  Shapes(const Model& m, const ShapeOptions& o);

  /// Bytes of a rows x columns tensor of the compute type; saturates.
  Bytes tensor(std::int64_t rows, std::int64_t columns) const { return element * rows * columns; }

  const Model& model;
  const ShapeOptions& options;
  std::int64_t tokens;     ///< T = B S
  std::int64_t query;      ///< heads x head_dim
  std::int64_t key_value;  ///< kv_heads x head_dim
  std::int64_t vocab;      ///< padded
  Bytes element;           ///< size of the compute type
  Bytes hidden_tensor;     ///< T x H
  Bytes hidden_mask;       ///< T x H of one byte: a dropout mask
  Bytes query_tensor;      ///< T x heads x head_dim
  Bytes qkv_tensor;        ///< T x (heads + 2 kv_heads) x head_dim
  Bytes ffn_tensor;        ///< T x F
};

/// What a memory-bound operator reads and writes, in all its kernels.
struct Traffic {
  Bytes forward{0};
  int forward_kernels = 0;
  Bytes backward{0};
  int backward_kernels = 0;
};

/// A memory-bound operator.
ModelOperator streaming(std::string name, OperatorKind kind, Split split, const Traffic& traffic);

/// Y[T, out] = X[T, in] W[in, out]; saves X. Column-parallel GEMMs `enter` and keep X like a norm
/// does (Split::sequence); row-parallel ones `leave` and their X is split over t.
ModelOperator weight_gemm(std::string name, const Shapes& shapes, std::int64_t out, std::int64_t in,
                          GemmSplit split);

/// LayerNorm or RMSNorm over H, with the sum of the two gradients that meet at its input.
ModelOperator norm(std::string name, const Shapes& shapes);

/// Attention core: from Q, K, V (saved by qkv_split) to the input of the output projection.
void append_attention(std::vector<ModelOperator>& operators, const Shapes& shapes);

}  // namespace orrery::zoo
