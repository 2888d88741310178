// SPDX-License-Identifier: Apache-2.0
/// Chunk totals are what the passes of a chunk hold at their fullest moments, all categories
/// together: the sums of chunk_work.h and graph/liveness.h without lists of allocations, for who
/// asks of very many plans.
///
///   of a pass, relative to what is held when it begins:
///     most      max over its blocks of  what the block holds while it runs  and
///               forward          sum of s over the blocks so far, its own included
///               backward         - sum of s over the blocks that have run
///               input gradients  - sum of s - d over these;  weight gradients  - sum of d
///   s: kept and logits of a block on the device;  d: what its weight gradients need
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "workload/memory/block_memory.h"
#include "workload/memory/chunk_work.h"
#include "workload/memory/state_memory.h"
#include "workload/plan/plan.h"

namespace orrery::footprint {

struct ChunkTotals {
  std::array<Bytes, kChunkPassCount> most{};  ///< of the schedule's passes, without messages
  Bytes kept{0};                              ///< sum of s
  Bytes held{0};                              ///< sum of d
  Bytes host{0};                              ///< on the host from forward to backward
  Bytes resident{0};                          ///< parameters while a microbatch is in flight
};

/// ChunkSums sums up one plan after the other; it works in what it has for the plan before.
class ChunkSums {
 public:
  using Blocks = std::vector<plan::BlockKind>;

  /// Begins with a plan whose chunks have at most so many blocks. False: bytes that are too many
  /// for sums that do not saturate.
  bool begin(const BlockMemories& model, const plan::Plan& plan, std::size_t most_blocks);

  ChunkTotals totals(const Blocks& chunk);
  /// Returns the most bytes of a forward of `ahead` beside a backward of `behind`
  /// (graph::concurrent_liveness), without messages.
  Bytes most_concurrent(const Blocks& ahead, const Blocks& behind);

  const OwnedParameters& owned(plan::BlockKind kind) const { return owned_[kind]; }

 private:
  /// Plain numbers: these sums are most of what a plan's memory costs.
  struct Block {
    std::int64_t stays = 0;      // s
    std::int64_t offloaded = 0;  // beside its neighbour's pass too
    std::int64_t forward = 0;    // while it runs, with parameters gathered for it
    std::int64_t backward = 0;   // of input gradients
    std::int64_t output_gradients = 0;
    std::int64_t weights = 0;
    std::int64_t held = 0;   // d
    std::int64_t ahead = 0;  // gathered while its neighbour runs
    std::int64_t whole = 0;  // its parameters, where a gather brings them
    std::int64_t gradients = 0;
  };
  Block block_of(const BlockMemory& memory, plan::BlockKind kind) const;
  void lay_out(const Blocks& chunk);
  /// Calls visit(most of the moment) for every block of the chunk that is laid out.
  template <class Visit>
  void forward(const Visit& visit) const;
  template <class Visit>
  void backward(bool inputs, bool weights, const Visit& visit) const;

  const plan::Plan* plan_ = nullptr;
  std::size_t kinds_ = 0;
  std::vector<OwnedParameters> owned_;  // by kind
  std::vector<Block> blocks_;           // by kind; then of those that recompute leaves out
  std::vector<const Block*> laid_out_;  // of a chunk
  std::int64_t most_unreduced_ = 0;     // of that chunk
  std::vector<std::int64_t> ahead_;
  std::vector<std::int64_t> behind_;
};

}  // namespace orrery::footprint
