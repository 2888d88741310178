// SPDX-License-Identifier: Apache-2.0
/// Orders of dimensions for the chunks of a collective (Rashidi et al., Themis, ISCA 2022,
/// arXiv:2110.04478).
///
/// A hierarchical collective in the natural order moves almost everything through the first
/// dimension: a reduce-scatter over p members leaves 1/p for the next. Whatever the order, a chunk
/// of c bytes moves c(1 - 1/N) in all, but *where* depends on the order, so chunks in different
/// orders can keep all dimensions equally long busy, and N devices take
///
///     2 S (1 - 1/N) / (sum of the bandwidths per device)
///
/// for an all-reduce of S, as over one dimension of that bandwidth.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/names.h"
#include "collective/chunk_flow.h"

namespace orrery::collective {

enum class ChunkScheduler : std::uint8_t { natural, baseline, round_robin, themis };
constexpr auto named_values(ChunkScheduler) {
  return std::to_array<Named<ChunkScheduler>>({
      {ChunkScheduler::natural, "natural",
       "reduce-scatter outwards, all-reduce in the last dimension, all-gather back"},
      {ChunkScheduler::baseline, "baseline", "all-reduce of the whole chunk in every dimension"},
      {ChunkScheduler::round_robin, "round_robin",
       "natural, beginning one dimension later per chunk"},
      {ChunkScheduler::themis, "themis",
       "per chunk the order that leaves the dimensions most evenly busy"},
  });
}

/// A ChunkedCollective is what is to be cut and over what. Requires: a dimension or more, each of
/// two members or more; chunks >= 1; kind all_reduce, reduce_scatter, all_gather or all_to_all.
struct ChunkedCollective {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  Bytes size{0};  ///< as Node::bytes counts it: the whole buffer, of all_gather the gathered one
  int chunks = 1;
  std::vector<std::int64_t> members;  ///< by dimension, innermost first
  std::vector<Bytes> sizes;           ///< of each chunk, in place of size and chunks; empty: equal
};

/// Returns the phases of a chunk of `size` bytes that meets the dimensions in `order`:
///
///   all_reduce      reduce_scatter in all but the last, all_reduce in the last, all_gather back
///   reduce_scatter  in that order; the buffer shrinks by the members
///   all_gather      in the reverse of that order, so that the last of it comes first; grows
///   all_to_all      in that order, whole buffer each
///
/// With `baseline` an all_reduce is one in every dimension of the order.
ChunkPath chunk_path(graph::CollectiveKind kind, Bytes size, std::span<const int> order,
                     std::span<const std::int64_t> members, bool baseline = false);

struct ChunkSchedule {
  std::vector<ChunkPath> chunks;
  ChunkScheduler scheduler = ChunkScheduler::natural;  ///< which one it is; see schedule_chunks
  ChunkFlow predicted;
};

/// Orders for every chunk, and what they take under `model`.
///
///   themis: greedy, chunk by chunk: of all orders (of more than four dimensions: by load, least
///   first) the one after which the busiest dimension is least busy, ties: the least sum of
///   latencies, then the natural order's rank. `model` gives the busy times, so a fully-connected
///   dimension counts with all links of a device.
///   Of that, round_robin and natural the one that `model` predicts to end first is returned: never
///   later than natural. all_to_all moves the same whatever the order, so themis is natural there.
///
/// The sizes of chunks are equal to a byte; of more chunks than bytes there is one per byte.
ChunkSchedule schedule_chunks(const ChunkedCollective& collective, ChunkScheduler scheduler,
                              ChunkQueue queue, const PhaseModel& model);

}  // namespace orrery::collective
