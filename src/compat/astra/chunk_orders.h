// SPDX-License-Identifier: Apache-2.0
/// Themis as it should be: orders of dimensions for chunks, by predicted phase times
/// (collective/themis.h).
#pragma once

#include <functional>
#include <vector>

#include "collective/themis.h"
#include "compat/astra/phase.h"

namespace orrery::astra {

/// Returns the time that a phase takes when nothing else runs. With T_k of message k
/// (Wires::along), d the delay and r_k the reductions, n messages in rounds of `window`:
///
///   sequences  d + sum over rounds (T + d) + sum of r_k
///   trees      d + levels (T + d + r), up and down
Time alone(const Phase& phase, const Wires& wires);

struct ChunkOrdersRequest {
  PhaseType type = PhaseType::all_reduce;
  std::vector<Bytes> chunks;          ///< as CollectiveRequest::size counts; at least one
  std::vector<int> dimensions;        ///< that take part, innermost first
  std::vector<std::int64_t> members;  ///< of each
  collective::ChunkQueue queue = collective::ChunkQueue::fifo;
};

/// Returns the dimensions of each chunk in the order in which it meets them (all-reduce: on the way
/// out). `time`: of a phase in dimensions[place] with `size` bytes going in. A phase holds its
/// place in the dimension's queue from its first to its last message, so all of its time counts as
/// busy.
std::vector<std::vector<int>> chunk_orders(
    const ChunkOrdersRequest& request,
    const std::function<Time(PhaseType type, int place, Bytes size)>& time);

}  // namespace orrery::astra
