// SPDX-License-Identifier: Apache-2.0
/// Number formats of an inference engine.
#pragma once

#include <array>
#include <cstdint>

#include "base/names.h"
#include "graph/operator.h"

namespace orrery::step {

/// Says which matrices of the layers are in the narrow formats; the others have 16 bits. Router and
/// output head always have.
enum class Narrow : std::uint8_t { all, outputs, mlp, experts };
constexpr auto named_values(Narrow) {
  return std::to_array<Named<Narrow>>({
      {Narrow::all, "all", "every matrix of a layer"},
      {Narrow::outputs, "outputs", "those of MLPs and experts, and attention's output projection"},
      {Narrow::mlp, "mlp", "those of MLPs and experts, not attention's"},
      {Narrow::experts, "experts", "those of routed experts"},
  });
}

/// Formats apart: weights in memory, operands of the GEMMs, and the KV cache.
struct Precision {
  graph::DataType weights = graph::DataType::bf16;
  graph::DataType activations = graph::DataType::bf16;
  graph::DataType kv = graph::DataType::bf16;
  graph::DataType state = graph::DataType::bf16;  ///< recurrent one of Mamba layers
  bool block_scaled = false;                      ///< fp8 with a scale per block
  Narrow narrow = Narrow::all;
  /// Scales and zero points in memory, bits per narrow weight. Kernels were measured with theirs:
  /// their times have them already.
  double scale_bits = 0;
  /// Routed experts are in mxfp4, 32 weights of 4 bits and an exponent of 8, beside others of 8
  /// bits (DeepSeek-V4); operands are those of all.
  bool experts_fp4 = false;

  graph::DataType weights_of(bool expert) const {
    return expert && experts_fp4 ? graph::DataType::fp4 : weights;
  }
  double scale_bits_of(bool expert) const { return expert && experts_fp4 ? 8.0 / 32 : scale_bits; }
};

}  // namespace orrery::step
