// SPDX-License-Identifier: Apache-2.0
/// A collective cut into chunks that flow through the dimensions of a network, each chunk phase by
/// phase in an order of its own, so that several dimensions work at once.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/names.h"
#include "base/units.h"
#include "graph/workload.h"

namespace orrery::collective {

/// One phase of a chunk: reduce_scatter, all_gather, all_reduce or all_to_all among the members of
/// one dimension.
struct ChunkPhase {
  int dimension = 0;
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  Bytes size{0};  ///< buffer of the phase as Node::bytes counts it
  friend bool operator==(const ChunkPhase&, const ChunkPhase&) = default;
};
using ChunkPath = std::vector<ChunkPhase>;

/// The dimension serves a chunk for `busy` and may then take the next one; the chunk is through
/// `latency` later.
struct PhaseCost {
  Time busy{0};
  Time latency{0};
};
using PhaseModel = std::function<PhaseCost(const ChunkPhase&)>;

/// Says which of the chunks that wait for a dimension is served first.
enum class ChunkQueue : std::uint8_t { fifo, smallest_first };
constexpr auto named_values(ChunkQueue) {
  return std::to_array<Named<ChunkQueue>>({
      {ChunkQueue::fifo, "fifo", "the one that came first"},
      {ChunkQueue::smallest_first, "smallest_first",
       "the one with the smallest phase, so that chunks near their end do not wait for fresh ones"},
  });
}

struct ChunkFlow {
  Time end{0};
  std::vector<Time> busy;       ///< by dimension: sum of its phases
  std::vector<Time> chunk_end;  ///< by chunk
};

/// All chunks are ready at 0; every dimension serves one chunk at a time; a phase that has begun is
/// not interrupted. Ties: the lower chunk first.
///
/// Bound: end >= the busy time of every dimension, and >= the phases of every chunk one by one.
ChunkFlow run_chunks(std::span<const ChunkPath> chunks, int dimensions, ChunkQueue queue,
                     const PhaseModel& model);

}  // namespace orrery::collective
