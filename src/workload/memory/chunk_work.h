// SPDX-License-Identifier: Apache-2.0
/// What one piece of work of a chunk does to memory: memory_timeline.h has the rules.
#pragma once

#include <cstdint>
#include <vector>

#include "workload/memory/block_memory.h"
#include "workload/memory/memory_category.h"
#include "workload/memory/state_memory.h"
#include "workload/plan/plan.h"

namespace orrery {

/// All relative to the memory before the piece of work.
struct ChunkWork {
  CategoryBytes most;     ///< at the moment with the most bytes, the first such
  Bytes most_total{0};    ///< its sum; 0 for a chunk without blocks
  std::size_t block = 0;  ///< of the chunk, which runs then
  CategoryBytes highest;  ///< of each category on its own
  CategoryBytes change;   ///< after it
};

struct ChunkWorks {
  ChunkWork forward;
  ChunkWork backward;         ///< with weight gradients
  ChunkWork input_gradient;   ///< without
  ChunkWork weight_gradient;  ///< those alone
  Bytes resident{0};          ///< gathered parameters that stay while microbatches are in flight
  Bytes offloaded{0};         ///< activations on the host per microbatch in flight
};
ChunkWorks chunk_works(const BlockMemories& model, const Plan& plan, const StageChunk& chunk);

/// Messages of a chunk in flight, and what scatter_gather gathers.
Bytes message_bytes(const BlockMemories& model, const Plan& plan, const StageChunk& chunk);

}  // namespace orrery
