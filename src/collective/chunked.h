// SPDX-License-Identifier: Apache-2.0
/// Chunked hierarchical collectives on a machine: themis.h with the phase times of cost.h.
#pragma once

#include <vector>

#include "collective/cost.h"
#include "collective/themis.h"

namespace orrery::collective {

/// Chunks of a plan's collectives. Halving it costs about 2 % on three dimensions, doubling it
/// gains 1 % (docs/models/collective.md).
inline constexpr int kDefaultChunks = 64;

struct ChunkOptions {
  ChunkScheduler scheduler = ChunkScheduler::themis;
  int chunks = kDefaultChunks;
  /// Tries a quarter of the chunks, a sixteenth ... and one as well, and takes what ends first.
  /// Small buffers are not worth cutting: every chunk pays the launch and the protocol of a small
  /// message.
  bool or_fewer = true;
};

/// Kinds for which the order of dimensions decides where the bytes move.
inline bool reorders(graph::CollectiveKind kind) {
  return kind == graph::CollectiveKind::all_reduce ||
         kind == graph::CollectiveKind::reduce_scatter || kind == graph::CollectiveKind::all_gather;
}

/// Returns the order and predicted flow of the chunks, as many as asked for or_fewer, in the queue
/// with which they end first (natural: fifo); dimension i of its phases is extents[i]. The time of
/// a phase is that of plan_collective with `auto` in its dimension alone: busy = serialisation, so
/// latencies of one chunk hide behind the bytes of others.
ChunkSchedule chunk_schedule(graph::CollectiveKind kind, Bytes size,
                             const std::vector<Extent>& extents, const ChunkOptions& options,
                             const machine::Machine& machine);

/// Returns the same as a plan of one phase that uses all dimensions at once:
///
///   port i:   serialisation = time for which dimension i is busy
///   latency = predicted end - that of the busiest link (filling and draining, latencies)
///
/// Over one dimension, and of kinds that do not reorder(), cutting gains nothing: plan_collective
/// with `auto`. Ignores: what starting a chunk costs beyond the
/// launch in its protocol's latency; of what dimensions share (dimension.h), all but one port
/// (nic).
std::vector<CollectivePhase> plan_chunked(graph::CollectiveKind kind, Bytes size,
                                          const std::vector<Extent>& extents,
                                          const ChunkOptions& options,
                                          const machine::Machine& machine);

}  // namespace orrery::collective
