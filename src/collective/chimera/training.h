// SPDX-License-Identifier: Apache-2.0
/// Passes of a model through the stages of Chimera's machines (ISCA 2025), published and fused.
///
/// Every stage is a block of ranks beside the one before. Collectives and transfers run alone, flit
/// by flit where messages meet; a stage's ranks compute one thing and communicate one thing at a
/// time, in the order of the program, both beside each other.
///
///   forward     sublayers one after the other
///   backward    input gradients, then weight gradients beside their communication; a layer waits
///               for both
///   chunked     backward of two chunks of half the tokens, each beside the other
///   end_to_end  forward and backward of `microbatches` by 1F1B, transfers between
///
/// Between stages P2P(M), of tp+pp M2M and AG (base), M2M (fused): the next layer begins with an
/// AG.
///
/// whole: all layers of all stages, each transfer where it is. segment: what the published
/// artifact simulates of one microbatch, three stages of two layers, and multiplies
///
///   first_a + first_b (P-2) + first_c + next (L-P) + move_a (P-2) + move_b
///
/// with P stages and L layers (blocks of layers, of models with experts).
#pragma once

#include "collective/chimera/models.h"
#include "collective/chimera/prices.h"

namespace orrery::chimera {

enum class Pass : std::uint8_t { forward, backward, chunked, end_to_end };
constexpr auto named_values(Pass) {
  return std::to_array<Named<Pass>>({
      {Pass::forward, "forward", "one microbatch through all stages"},
      {Pass::backward, "backward", "and back, weight gradients beside communication"},
      {Pass::chunked, "chunked", "backward of two chunks of half the tokens, interleaved"},
      {Pass::end_to_end, "end_to_end", "forward and backward of all microbatches by 1F1B"},
  });
}

struct Training {
  ModelName model = ModelName::gpt2_medium;
  layout::Pair pair = layout::Pair::tp_sp;  ///< tp+sp, tp+pp; of experts sp+ep, tp+ep
  Topology topology = Topology::torus2d;
  Extents extents{4, 4, 1};
  std::int32_t stages = 8;  ///< P; ranks of a stage: as many as all stages can have
  Pass pass = Pass::forward;
  std::int64_t tokens = 256;      ///< of a microbatch
  std::int64_t microbatches = 1;  ///< of end_to_end
  std::int64_t top_k = 2;         ///< k; experts have two dp groups in a stage
};

/// Returns the stages as blocks of equal ranks, each near the one before. Fewer than asked for:
/// there is no room for more.
std::vector<Block> place_stages(Topology topology, const Extents& extents, std::int32_t stages);

struct TrainingCycles {
  flit::Cycle whole = 0;
  flit::Cycle segment = 0;  ///< of one microbatch
};
struct TrainingRun {
  TrainingCycles base;
  TrainingCycles fused;
};

/// Requires stages that place_stages() finds room for, at most as many as blocks of layers.
TrainingRun run_training(const Training& training, Prices& prices);

}  // namespace orrery::chimera
