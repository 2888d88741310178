// SPDX-License-Identifier: Apache-2.0
/// Operator graphs of HiDup's models for any number of devices and layers.
///
///   Rmoe, Rswitch   BERT with a mixture of experts (top-2, top-1 gating), WikiText-2
///   Vmoe, Vswitch   ViT the same, CIFAR-10
///   Emoe            layers alone, on vectors: 1024 wide (4096), 256 of a sequence, 4 experts a
///                   device, capacity floor(1.25 sequence / E) but at least 1, the loss a sum; the
///                   model of its traces
///   Dmoe            Emoe as DeepSpeed 0.5 computes it: experts take the tokens of a device's whole
///                   batch as one group of T = 32 x 256, capacity floor(1.25 T / E); then rows
///                   reach their slots by products with masks of (T, E C), not of (256, E C)
///
/// Post-norm encoder layers with ReLU; even layers are ordinary, odd ones have experts. Sizes grow
/// with the devices N: batch 32 N, experts E = 2 N (Emoe 4 N), vocabulary 33,278 padded to the next
/// multiple of N, always by at least one. Capacity C = ceil(sequence / E * factor), factor 1.25,
/// *moe 2.5.
///
/// Flops, forward and whole batch, a copied element counting as one:
///   linear, einsum  3 M N K            conv2d   3 n Cin Cout H W (stride = kernel)
///   attention       5 L S n + 6 L S n d, without projections (as published)
///   gating          10 b s d E C (as published, far too many)
///   per element     dropout 20, layer_norm 10, log_softmax 15, others 1; class tokens b d
///
/// Source: HiDup (Zhang et al., SoCC'22), its published models and profiler.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/names.h"
#include "base/result.h"
#include "planner/spmd/operator_graph.h"

namespace orrery::spmd {

enum class ModelName : std::uint8_t { rmoe, rswitch, vmoe, vswitch, emoe, dmoe };
constexpr auto named_values(ModelName) {
  return std::to_array<Named<ModelName>>({
      {ModelName::rmoe, "Rmoe", "BERT, every other layer with experts, two for each token"},
      {ModelName::rswitch, "Rswitch", "BERT, every other layer with experts, one for each token"},
      {ModelName::vmoe, "Vmoe", "ViT, every other layer with experts, two for each token"},
      {ModelName::vswitch, "Vswitch", "ViT, every other layer with experts, one for each token"},
      {ModelName::emoe, "Emoe", "wider layers alone, every other with experts, one for each token"},
      {ModelName::dmoe, "Dmoe", "Emoe, a device's tokens one group for the experts (DeepSpeed)"},
  });
}

struct ModelSize {
  std::int64_t devices = 8;
  std::int64_t layers = 8;
};

/// Mistakes: devices not from 1 to 65,536, layers not from 1 to 4,096.
Result<OperatorGraph> build_model(ModelName model, const ModelSize& size);

}  // namespace orrery::spmd
