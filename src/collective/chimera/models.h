// SPDX-License-Identifier: Apache-2.0
/// Chimera's models as sublayers: cycles of one 256 x 256 output-stationary array and the
/// communication around them (ISCA 2025).
///
/// Products (M, N, K) of s tokens and width h: attention (s, 3h, h), (s, s, h), (s, h, s), (s, h,
/// h), MLP (s, 4h, h), (s, h, 4h), experts an MLP twice for the tokens of all d dp groups. A
/// sublayer's time on N ranks is a N-th of it; vector work and memory are ignored. Input gradients
/// of attention: (s, h, h), (s, h, s), (s, s, h), (s, s, h), (s, h, s), (s, 3h, h), weight
/// gradients (s, h, h), (s, h, 3h); of an MLP both as forward. That is the artifact's list: a
/// training step has other products for weights (`orrery simulate`).
///
///   sublayer          before            after         backward: before     beside the weights
///   attention, MLP    AG                AR | RS       AR | AG              RS
///   experts, sp+ep    AG A2A | A2A      A2A           A2A                  A2A RS | A2A
///   experts, tp+ep    A2A               A2A           A2A                  A2A
///
/// base | fused, of M = 4 s h bytes in a dp group. A2A moves the k copies of all tokens, M k d over
/// the stage; of the base of tp+ep M k within a dp group.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "collective/chimera/steps.h"
#include "collective/layout/pairs.h"

namespace orrery::chimera {

enum class ModelName : std::uint8_t {
  gpt2_medium,
  gpt2_xl,
  deepspeed_moe_350m,
  deepspeed_moe_1_3b,
};
constexpr auto named_values(ModelName) {
  return std::to_array<Named<ModelName>>({
      {ModelName::gpt2_medium, "gpt2-medium", "24 layers of 1024"},
      {ModelName::gpt2_xl, "gpt2-xl", "48 layers of 1600"},
      {ModelName::deepspeed_moe_350m, "deepspeed-moe-350m",
       "24 layers of 1024, every second one with experts"},
      {ModelName::deepspeed_moe_1_3b, "deepspeed-moe-1.3b",
       "24 layers of 2048, every second one with experts"},
  });
}

struct ModelShape {
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  bool has_experts = false;
};
ModelShape shape_of(ModelName model);

/// A collective of a stage, or of its dp groups at once.
struct Communication {
  Operation operation = Operation::all_gather;
  bool in_dp_group = true;
  Bytes bytes{0};
};

struct Sublayer {
  flit::Cycle forward = 0;  ///< of one rank
  flit::Cycle input_gradient = 0;
  flit::Cycle weight_gradient = 0;
  std::vector<Communication> before;
  std::vector<Communication> after;
  std::vector<Communication> backward_before;
  std::vector<Communication> backward_after;  ///< beside the weight gradient
};

struct LayerStudy {
  ModelName model = ModelName::gpt2_medium;
  layout::Pair pair = layout::Pair::tp_sp;
  std::int64_t tokens = 256;  ///< s
  std::int32_t ranks = 2;     ///< N, of a stage
  std::int32_t dp = 1;        ///< d, groups of a stage
  std::int64_t top_k = 2;     ///< k
};

/// Returns the block that repeats: a layer, or two of a model with experts.
std::vector<Sublayer> block_of(const LayerStudy& study, bool fused);
constexpr std::int64_t layers_of_block(const ModelShape& shape) {
  return shape.has_experts ? 2 : 1;
}

}  // namespace orrery::chimera
