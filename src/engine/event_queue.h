// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace orrery::engine {

/// Pending events in time order. Two events at one instant come out in the order in which they were
/// pushed, so a run is a pure function of its inputs.
///
/// An event is plain data; what `kind`, `subject` and `generation` mean is the user's choice (a
/// subject whose generation has moved on makes the event stale: that is how events are cancelled).
///
/// A 4-ary heap in one flat array: half the levels of a binary heap, and the four children lie side
/// by side.
class EventQueue {
 public:
  struct Event {
    Time when{0};
    std::uint64_t order = 0;
    std::uint32_t kind = 0;
    std::uint32_t subject = 0;
    std::uint32_t generation = 0;
  };

  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  /// Returns the time of the last event popped.
  Time now() const { return now_; }

  /// Returns whether nothing more happens at now(). Events may still be pushed for it.
  bool instant_is_over() const { return heap_.empty() || heap_.front().when > now_; }

  /// Returns when the earliest pending event is. Requires !empty().
  Time next_time() const {
    assert(!heap_.empty() && "an empty queue has no next event");
    return heap_.front().when;
  }

  /// Returns the pending events, in no order.
  const std::vector<Event>& pending() const { return heap_; }
  /// Moves the clock and every pending event on.
  void shift(Time by) {
    now_ += by;
    for (Event& event : heap_) {
      event.when += by;
    }
  }

  /// Requires when >= now().
  void push(Time when, std::uint32_t kind, std::uint32_t subject, std::uint32_t generation = 0) {
    assert(when >= now_ && "an event cannot be in the past");
    heap_.push_back({when, next_order_++, kind, subject, generation});
    sift_up(heap_.size() - 1);
  }

  /// Removes the earliest event and moves the clock to it. Requires !empty().
  Event pop() {
    assert(!heap_.empty() && "pop of an empty queue");
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) {
      sift_down(last);
    }
    now_ = first.when;
    return first;
  }

 private:
  static constexpr std::size_t kArity = 4;

  static bool before(const Event& a, const Event& b) {
    return a.when < b.when || (a.when == b.when && a.order < b.order);
  }

  void sift_up(std::size_t at) {
    const Event moving = heap_[at];
    while (at > 0) {
      const std::size_t parent = (at - 1) / kArity;
      if (!before(moving, heap_[parent])) {
        break;
      }
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = moving;
  }

  /// Fills the hole at the root with `moving`.
  void sift_down(const Event& moving) {
    const std::size_t size = heap_.size();
    std::size_t at = 0;
    for (;;) {
      const std::size_t first = at * kArity + 1;
      if (first >= size) {
        break;
      }
      std::size_t least = first;
      const std::size_t end = first + kArity < size ? first + kArity : size;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (before(heap_[child], heap_[least])) {
          least = child;
        }
      }
      if (!before(heap_[least], moving)) {
        break;
      }
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = moving;
  }

  std::vector<Event> heap_;
  std::uint64_t next_order_ = 0;
  Time now_{0};
};

}  // namespace orrery::engine
