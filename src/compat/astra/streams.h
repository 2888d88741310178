// SPDX-License-Identifier: Apache-2.0
/// State of collectives in flight: flat arrays, addressed by index.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/units.h"
#include "compat/astra/planner.h"

namespace orrery::astra {

inline constexpr std::uint32_t kNone = 0xffffffff;

/// One chunk on one NPU, on one line of the cache.
struct alignas(64) Stream {
  const Phase* phase = nullptr;  ///< the present one; null before it starts
  std::uint32_t rank = 0;        ///< representative
  std::uint32_t local = 0;       ///< index in the communicator
  std::uint32_t instance = 0;    ///< collective
  std::uint32_t position = 0;    ///< on the phase's axis
  std::uint32_t origin = 0;      ///< stream of position 0 of the axis
  std::uint32_t spacing = 0;     ///< streams between neighbours of the axis; 0 when folded
  std::uint32_t queue = 0;       ///< of the rank
  std::uint32_t posted = 0;      ///< messages sent, receives posted
  std::uint32_t received = 0;    ///< in a tree: messages from children
  std::uint32_t processed = 0;   ///< + window at the start; in a tree: as `received`
  std::uint32_t word = 0;        ///< first word of the present phase
  std::uint32_t next = kNone;    ///< in the queue
  union {
    std::uint32_t previous = kNone;
    std::uint32_t in_flight;  ///< runs, in a tree that holds senders: messages sent, not there yet
  };
  std::uint16_t phase_index = 0;
  bool waiting = true;  ///< in a queue, or before its first phase
  bool anticlockwise = false;

  bool is_in(std::uint16_t number) const { return phase_index == number && !waiting; }
};
static_assert(sizeof(Stream) == 64);

/// One collective of a communicator.
struct Instance {
  const CollectivePlan* plan = nullptr;
  std::uint32_t communicator = 0;
  std::uint32_t sequence = 0;
  CollectiveRequest request;     ///< of the first to issue it
  std::uint32_t first_rank = 0;  ///< who that was
  std::uint32_t first_node = 0;
  std::uint32_t members = 0;
  std::uint32_t unfinished = 0;  ///< members
  std::uint32_t streams = 0;     ///< stream of chunk j at member i: streams + i * chunks + j
  std::uint32_t words = 0;       ///< of streams in that order
  std::uint32_t first_member = 0;
  std::uint32_t chunks() const { return static_cast<std::uint32_t>(plan->chunks.size()); }
};

/// A collective at one of its members.
struct Member {
  std::uint32_t unfinished = 0;  ///< chunks
  std::uint32_t rank = 0;
  std::uint32_t node = 0;
  std::uint32_t turns = 0;  ///< QueueTurns::begin
  std::int64_t priority = 0;
  std::int64_t number = 0;  ///< of the collectives that this rank has issued
};

/// Blocks of equal elements in one growing array; freed blocks are used again for their size.
template <class T>
class Blocks {
 public:
  /// Elements are as default-constructed.
  std::uint32_t allocate(std::size_t count) {
    std::vector<std::uint32_t>& unused = unused_[count];
    if (unused.empty()) {
      elements_.resize(elements_.size() + count);
      return static_cast<std::uint32_t>(elements_.size() - count);
    }
    const std::uint32_t first = unused.back();
    unused.pop_back();
    std::fill_n(elements_.begin() + first, count, T{});
    return first;
  }
  void free(std::uint32_t first, std::size_t count) { unused_[count].push_back(first); }
  T& operator[](std::size_t index) { return elements_[index]; }
  const T& operator[](std::size_t index) const { return elements_[index]; }
  std::size_t size() const { return elements_.size(); }

 private:
  std::vector<T> elements_;
  std::map<std::size_t, std::vector<std::uint32_t>> unused_;  ///< by count
};

/// Streams of one rank that wait for, or run in, one dimension. Those that wait stand in descending
/// priority.
struct StreamQueue {
  std::uint32_t head = kNone;
  std::uint32_t tail = kNone;
  std::uint32_t running = 0;
};

}  // namespace orrery::astra
