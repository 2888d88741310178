// SPDX-License-Identifier: Apache-2.0
/// This part of the loop handles chains (chain.h; members of Loop; loop_events.h includes it).
#pragma once

#include <cassert>
#include <memory>
#include <vector>

#include "simulate/chain.h"
#include "simulate/loop.h"

namespace orrery::simulate {

template <class Transport>
bool Loop<Transport>::begin_chain(RankIndex index, std::int64_t instance, const Chain& chain) {
  if (!streams_stand_at(index, instance, chain)) {
    return false;
  }
  RankState& rank = ranks_[index];
  for (std::size_t lane = 0; lane < chain.lane_count; ++lane) {
    rank.stream(chain.streams[lane]).busy = true;
  }
  rank.chain.chain = &chain;
  rank.chain.instance = instance;
  rank.chain.place = {};
  rank.chain.host_in_time = rank.host - queue_.now() <= chain.slack;
  rank.chain.end = Time::max();
  LedgerBook book{rank.ledger};
  walk_of(rank, book).begin(queue_.now());
  push_chain_end(index);
  return true;
}

/// Whether the next node on every other stream of the chain is the chain's first there.
template <class Transport>
bool Loop<Transport>::streams_stand_at(RankIndex index, std::int64_t instance, const Chain& chain) {
  for (std::size_t lane = 1; lane < chain.lane_count; ++lane) {
    const graph::StreamIndex stream = chain.streams[lane];
    const StreamState& state = ranks_[index].stream(stream);
    if (state.busy || head(index, stream) != chain.lanes[lane].front().node ||
        state.instance != instance) {
      return false;
    }
  }
  return true;
}

template <class Transport>
template <class Book>
ChainWalk<Book> Loop<Transport>::walk_of(RankState& rank, Book& book) {
  return {*rank.chain.chain, *rank.window[rank.chain.instance].shape,
          rank.chain.place,  rank.job,
          rank.host,         book};
}

/// To the nodes that run at `now`. What happens at this very instant changes speeds in settle(), as
/// everything else does.
template <class Transport>
void Loop<Transport>::walk_chain(RankIndex index, Time now) {
  RankState& rank = ranks_[index];
  LedgerBook book{rank.ledger};
  ChainWalk<LedgerBook> walk = walk_of(rank, book);
  while (!walk.over() && rank.chain.place.next() <= now) {
    const Time moment = rank.chain.place.next();
    walk.step();
    if (moment < now) {
      const bool skips = rank.chain.host_in_time && walk.joined(moment);
      walk.change_speed(skips ? walk.skip(moment, now) : moment);
    } else {
      touch(index);
    }
  }
}

template <class Transport>
void Loop<Transport>::push_chain_end(RankIndex index) {
  RankState& rank = ranks_[index];
  const ChainRun& run = rank.chain;
  const Time end = chain_end(run, *rank.window[run.instance].shape, rank.job, rank.host,
                             outside_of_chain(rank), run.host_in_time);
  if (end != run.end) {
    rank.chain.end = end;
    queue_.push(end, kChainDone, index, ++rank.chain.generation);
  }
}

/// Returns what runs beside the chain's kernels, apart from its own collectives.
template <class Transport>
Concurrent Loop<Transport>::outside_of_chain(const RankState& rank) const {
  const ChainRun& run = rank.chain;
  return rank.ledger.concurrent_without(
      running_in(*run.chain, *rank.window[run.instance].shape, run.place));
}

template <class Transport>
void Loop<Transport>::finish_chain(RankIndex index) {
  walk_chain(index, queue_.now());
  RankState& rank = ranks_[index];
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
