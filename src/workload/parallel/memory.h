// SPDX-License-Identifier: Apache-2.0
/// Static memory footprint of every pipeline stage, per device.
///
///   P parameters of one tensor-parallel rank; e bytes of the compute type; g of the gradient type
///   parameters   e P         / dp with ZeRO 3
///   gradients    g P         / dp with ZeRO >= 2
///   optimizer    12 P        / dp with ZeRO >= 1   (fp32 master, two moments; 8 P when e is fp32)
///   activations  sum over chunks of (bytes kept per microbatch) x (microbatches in flight at the
///                schedule's peak) + what one layer's recompute brings back
///   logits       fp32, B S V / t, for each microbatch in flight in the head
///   buffers      pipeline messages, tensor-parallel all-gathers, ZeRO buckets and gathered layers
///
/// With bf16 and fp32 gradients: 2 + 4 + 12 = 18 bytes per parameter (Megatron-LM), 6 + 12/dp with
/// a distributed optimizer; with 16-bit gradients 16 (Rajbhandari et al. 2020).
///
/// Kept per layer and microbatch (each operator's `saved`, sharded as the plan says): everything;
/// selective: all but the attention core; full: the layer's input, B S H of the compute type (1/t
/// with sequence parallelism). Embedding and head keep theirs always. For GPT shapes with dropout
/// that is Korthikanti et al. 2022, table 2.
///
/// Ignores: the framework's context, communication libraries' buffers, fragmentation.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "base/units.h"
#include "machine/machine.h"
#include "workload/parallel/lower.h"
#include "workload/parallel/plan.h"
#include "workload/zoo/model.h"

namespace orrery {

enum class MemoryCategory : std::uint8_t {
  parameters,
  gradients,
  optimizer,
  activations,
  buffers,
  logits
};
inline constexpr int kMemoryCategoryCount = 6;
template <>
inline constexpr auto kNames<MemoryCategory> = std::to_array<Named<MemoryCategory>>({
    {MemoryCategory::parameters, "parameters", "in the compute data type"},
    {MemoryCategory::gradients, "gradients", "accumulation buffer"},
    {MemoryCategory::optimizer, "optimizer", "fp32 master parameters and Adam's two moments"},
    {MemoryCategory::activations, "activations", "kept for backward, all microbatches in flight"},
    {MemoryCategory::buffers, "buffers", "communication buckets, gathered parameters, workspaces"},
    {MemoryCategory::logits, "logits", "fp32 logits of the last stage, kept for backward"},
});

struct StageMemory {
  std::array<Bytes, kMemoryCategoryCount> bytes{};
  double microbatches_in_flight = 0;  ///< at the peak; chunks count 1/v each

  Bytes operator[](MemoryCategory c) const { return bytes[static_cast<std::size_t>(c)]; }
  Bytes& operator[](MemoryCategory c) { return bytes[static_cast<std::size_t>(c)]; }
  Bytes total() const;
};

/// One per stage (per device of the stage). Mistakes: those of check().
Result<std::vector<StageMemory>> memory_footprint(const Model& model, const Plan& plan);

/// What one embedding, layer or head takes; the same for every plan that agrees in tp,
/// sequence_parallel, microbatch, sequence, recompute, kernels and types, so a planner keeps it.
struct BlockMemory {
  std::int64_t parameters = 0;  ///< of one rank; the head without the copy of a tied embedding
  Bytes kept{0};                ///< per microbatch, without logits
  Bytes logits{0};              ///< per microbatch
  Bytes recomputed{0};          ///< there only while the block's backward runs
};
struct BlockMemories {
  std::vector<BlockMemory> blocks;  ///< by BlockKind
  std::int64_t tied_copy = 0;       ///< parameters of the last stage's copy, if pp > 1
  Bytes boundary{0};                ///< B S H of the compute type
};
BlockMemories block_memories(const Model& model, const Plan& plan);

/// One stage of a checked plan; chunks: the blocks of each of its chunks.
StageMemory stage_memory(const BlockMemories& blocks, const Plan& plan, std::int64_t stage,
                         const std::vector<std::vector<BlockKind>>& chunks);

/// A mistake per stage whose total exceeds the device's first memory tier.
Result<void> check_fits(const std::vector<StageMemory>& stages, const Machine& machine);

}  // namespace orrery
