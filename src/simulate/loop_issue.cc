// SPDX-License-Identifier: Apache-2.0
/// Says how the loop asks for instances (members of Loop).
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "simulate/loop.h"

namespace orrery::simulate {

/// Keeps one instance visible beyond the one that computes, so that the next receive is posted and
/// prefetches can start.
void Loop::issue_ahead(RankIndex rank, std::uint32_t cause) {
  while (ranks_[rank].window.issued() <= ranks_[rank].stream(graph::kComputeStream).instance + 1 &&
         issue_one(rank, cause)) {
  }
}

bool Loop::issue_one(RankIndex index, std::uint32_t cause) {
  RankState& rank = ranks_[index];
  if (rank.source_done) {
    return false;
  }
  const graph::Next next = source_->next(rank.role, rank.window.issued(), queue_.now());
  if (next.kind != graph::Next::Kind::issue) {
    rank.source_done = next.kind == graph::Next::Kind::done;
    rank.asks = next.kind == graph::Next::Kind::wait;
    if (rank.asks && next.until < Time::max()) {
      queue_.push(next.until, kAskSource, index);
    }
    return false;
  }
  const BoundTemplate& shape = bound_.shape(rank.program, next.instance.template_index);
  const std::int64_t number = rank.window.issued();
  spans_.note_issued(rank.role, number, next.instance);
  InstanceSlot& slot = rank.window.push(next.instance, shape);
  slot.chains = options_.shortcuts
                    ? &chains_.of(rank.program, next.instance.template_index, rows_, ranks_)
                    : nullptr;
  for (const graph::StreamIndex stream : shape.streams) {
    if (!rank.stream(stream).busy) {
      enqueue(index, stream, cause);
    }
  }
  for (const std::uint32_t node : shape.free_nodes) {
    make_ready(index, number, node, cause);
  }
  ++instances_;
  return true;
}

/// The ranks to which the source had nothing to give.
void Loop::ask_again() {
  for (RankIndex rank = 0; rank < ranks_.size(); ++rank) {
    if (std::exchange(ranks_[rank].asks, false)) {
      issue_ahead(rank, Span::kNone);
    }
  }
}

std::optional<std::uint32_t> Loop::head(RankIndex index, graph::StreamIndex stream) {
  RankState& rank = ranks_[index];
  StreamState& cursor = rank.stream(stream);
  for (;;) {
    if (cursor.instance >= rank.window.issued()) {
      if (stream != graph::kComputeStream || !issue_one(index, cursor.trigger)) {
        return std::nullopt;
      }
    }
    if (cursor.instance < rank.window.oldest()) {  // retired while this stream had nothing in it
      cursor.instance = rank.window.oldest();
      cursor.position = 0;
      continue;
    }
    const auto& list = rank.window[cursor.instance].shape->by_stream[*stream];
    if (cursor.position < list.size()) {
      return list[cursor.position];
    }
    ++cursor.instance;
    cursor.position = 0;
    if (stream == graph::kComputeStream) {
      issue_ahead(index, cursor.trigger);
    }
  }
}

const RankState* Loop::left_over() const {
  const auto found = std::ranges::find_if(ranks_, [&](const RankState& rank) {
    return !rank.source_done && source_->next(rank.role, rank.window.issued(), queue_.now()).kind ==
                                    graph::Next::Kind::issue;
  });
  return found == ranks_.end() ? nullptr : &*found;
}

}  // namespace orrery::simulate
