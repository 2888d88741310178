// SPDX-License-Identifier: Apache-2.0
/// Says which chunk runs next in a dimension of a rank.
#pragma once

#include <cstdint>
#include <vector>

#include "compat/astra/streams.h"

namespace orrery::astra {

/// Every rank has `per_rank` queues; each runs up to `active` streams at once.
///
/// Waiting streams stand in descending priority, ties in order of arrival. Smallest chunk first:
/// those of reduce-scatters and all-gathers stand before the first whose greater end (bytes in or
/// out) is not smaller than theirs; in the last but one phase at the end
/// (Quirk::smallest_chunk_insertion; off: by size too, and those of all-reduces); others before the
/// first of less priority. A running stream is never preempted.
class ChunkQueues {
 public:
  struct Rules {
    std::uint32_t per_rank = 1;
    std::uint32_t active = 1;
    bool smallest_first = false;
    bool last_but_one_at_end = true;
  };
  struct Waiting {
    const Phase& phase;
    std::int64_t priority;
    bool last_but_one;
  };

  ChunkQueues(std::size_t ranks, const Rules& rules);

  std::size_t of(const Stream& stream) const {
    return std::size_t{stream.rank} * rules_.per_rank + stream.queue;
  }
  /// Inserts a stream. `about(stream)` -> Waiting.
  template <class About>
  void insert(Blocks<Stream>& streams, std::size_t queue, std::uint32_t stream,
              const About& about) {
    StreamQueue& into = queues_[queue];
    const Waiting mine = about(stream);
    std::uint32_t after = into.tail;  // the stream to stand behind; kNone: at the head
    if (by_size(mine)) {
      if (!(mine.last_but_one && rules_.last_but_one_at_end)) {
        after = behind(streams, into, [&](std::uint32_t other) {
          return greater_end(about(other).phase) < greater_end(mine.phase);
        });
      }
    } else if (rules_.smallest_first) {  // not in order of priority
      after = behind(streams, into,
                     [&](std::uint32_t other) { return about(other).priority >= mine.priority; });
    } else {
      while (after != kNone && about(after).priority < mine.priority) {
        after = streams[after].previous;
      }
    }
    link(streams, into, stream, after);
  }

  /// Takes the next stream that may run, or kNone.
  std::uint32_t take(Blocks<Stream>& streams, std::size_t queue);
  void finished(std::size_t queue) { --queues_[queue].running; }
  /// Takes one stream of each queue in which any waits, beyond what may run.
  std::vector<std::uint32_t> take_from_all(Blocks<Stream>& streams);

 private:
  static Bytes greater_end(const Phase& phase) {
    return phase.in < phase.out ? phase.out : phase.in;
  }
  bool by_size(const Waiting& stream) const {
    return rules_.smallest_first &&
           (stream.phase.type == PhaseType::reduce_scatter ||
            stream.phase.type == PhaseType::all_gather ||
            (!rules_.last_but_one_at_end && stream.phase.type == PhaseType::all_reduce));
  }
  /// Returns the last of those at the head that go before.
  template <class GoesBefore>
  static std::uint32_t behind(const Blocks<Stream>& streams, const StreamQueue& queue,
                              const GoesBefore& goes_before) {
    std::uint32_t after = kNone;
    for (std::uint32_t other = queue.head; other != kNone && goes_before(other);
         other = streams[other].next) {
      after = other;
    }
    return after;
  }
  std::uint32_t unlink_head(Blocks<Stream>& streams, StreamQueue& queue);
  static void link(Blocks<Stream>& streams, StreamQueue& queue, std::uint32_t stream,
                   std::uint32_t after);

  Rules rules_;
  std::vector<StreamQueue> queues_;
};

}  // namespace orrery::astra
