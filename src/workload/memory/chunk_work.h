// SPDX-License-Identifier: Apache-2.0
/// The allocations of one piece of work of a chunk: memory_timeline.h has the rules.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/liveness.h"
#include "workload/memory/block_memory.h"
#include "workload/memory/state_memory.h"
#include "workload/plan/plan.h"

namespace orrery::footprint {

enum class ChunkPass : std::uint8_t {
  forward,
  backward,        ///< with weight gradients
  input_gradient,  ///< without
  weight_gradient  ///< those alone
};
inline constexpr std::size_t kChunkPassCount = 4;
/// Returns the passes that a schedule has.
std::vector<ChunkPass> chunk_passes(plan::Schedule schedule);

/// Moments are the chunk's blocks in the order in which they run: backward from the last one.
struct ChunkWork {
  std::vector<graph::Allocation> allocations;
  std::size_t moments = 0;

  friend bool operator==(const ChunkWork&, const ChunkWork&) = default;
};

/// Returns the work of a chunk. `number` of the chunk in its stage; `messages`: bytes in flight
/// while it runs.
ChunkWork chunk_work(const BlockMemories& model, const plan::Plan& plan, const StageChunk& chunk,
                     ChunkPass pass, std::int64_t number, Bytes messages);

/// Returns the most gradients of a chunk that wait for their reduction while a backward runs, of
/// `all` and those of its largest block, on the wire.
Bytes most_unreduced(const plan::Plan& plan, Bytes all, Bytes largest);

/// Returns the bytes of messages of the stage's chunk with the most in flight, and what
/// scatter_gather gathers.
Bytes message_bytes(const BlockMemories& model, const plan::Plan& plan,
                    const std::vector<StageChunk>& chunks);

}  // namespace orrery::footprint
