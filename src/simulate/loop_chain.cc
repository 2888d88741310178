// SPDX-License-Identifier: Apache-2.0
/// This part of the loop handles chains (chain.h; members of Loop).
#include <cassert>

#include "simulate/chain.h"
#include "simulate/loop.h"

namespace orrery::simulate {

/// Begins the chain if the next node on every other stream of it is its first there.
bool Loop::try_chain(RankIndex index, std::int64_t instance, const Chain& chain) {
  RankState& rank = ranks_[index];
  for (std::size_t lane = 1; lane < chain.lane_count; ++lane) {
    const StreamState& state = rank.stream(chain.streams[lane]);
    if (state.busy || head(index, chain.streams[lane]) != chain.lanes[lane].front().node ||
        state.instance != instance) {
      return false;
    }
  }
  for (std::size_t lane = 0; lane < chain.lane_count; ++lane) {
    rank.stream(chain.streams[lane]).busy = true;
  }
  begin_chain(rank, chain, instance, queue_.now());
  push_chain_end(index);
  return true;
}

void Loop::push_chain_end(RankIndex index) {
  RankState& rank = ranks_[index];
  const Time end = chain_end(rank);
  if (end != rank.chain.end) {
    rank.chain.end = end;
    queue_.push(end, kChainDone, index, ++rank.chain.generation);
  }
}

void Loop::finish_chain(RankIndex index) {
  RankState& rank = ranks_[index];
  if (walk_chain(rank, queue_.now())) {
    touch(index);
  }
  const Chain& chain = *rank.chain.chain;
  assert(rank.chain.place.done[0] == chain.lanes[0].size() && "the chain ends when it was to end");
  rank.chain.chain = nullptr;
  ++rank.chain.generation;
  const std::uint32_t inside = chain.count - 1;  // release() completes the last
  completions_ += inside;
  rank.window[rank.chain.instance].unfinished -= inside;
  for (std::size_t lane = 0; lane < chain.lane_count; ++lane) {
    StreamState& state = rank.stream(chain.streams[lane]);
    state.busy = false;
    state.position += static_cast<std::uint32_t>(chain.lanes[lane].size());
    if (lane > 0) {
      enqueue(index, chain.streams[lane], Span::kNone);
    }
  }
  --rank.stream(graph::kComputeStream).position;
  release({.rank = index, .node = chain.last(), .instance = rank.chain.instance}, Span::kNone);
}

}  // namespace orrery::simulate
