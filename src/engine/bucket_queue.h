// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/units.h"
#include "engine/plain_vector.h"

namespace orrery::engine {

/// Pending events in time order, ties in the order in which they were pushed; for simulations in
/// which many events share an instant (all ranks of a collective do the same at the same time).
///
/// Events of one instant lie in one bucket, a flat array, so push and pop cost a few nanoseconds;
/// only the instants are in a heap. Recently used buckets are found by a small lossy table: when
/// two instants fall on one entry the older bucket is closed, and a later event of its instant
/// opens another bucket behind it. With one event per instant the queue costs what a heap does.
///
/// `Event` is plain data.
template <class Event>
class BucketQueue {
 public:
  BucketQueue() : current_(&buckets_.emplace_back()) {}
  BucketQueue(const BucketQueue&) = delete;
  BucketQueue& operator=(const BucketQueue&) = delete;

  bool empty() const { return bucket_is_over() && instants_.empty(); }
  /// Returns the time of the last event popped.
  Time now() const { return now_; }
  /// Returns the number of events popped so far.
  std::uint64_t popped() const { return popped_ + next_; }

  /// Returns whether nothing more happens at now(). Events may still be pushed for it.
  bool instant_is_over() const {
    return bucket_is_over() && (instants_.empty() || instants_.front().when > now_);
  }

  /// Returns when the earliest events are. Requires bucket_is_over() and !empty().
  Time next_time() const {
    assert(bucket_is_over() && !empty() && "nothing is left of the instant, something after it");
    return instants_.front().when;
  }

  /// Events of one instant, or some of them, in order.
  struct Bucket : PlainVector<Event> {
    std::uint64_t opening = 0;  ///< of this time that it is in use; from 1
  };

  /// Requires when >= now().
  [[gnu::always_inline]] void push(Time when, const Event& event) {
    bucket_of(when).push_back(event);
  }
  /// Returns where an event of that time is pushed now. Requires when >= now().
  [[gnu::always_inline]] Bucket& bucket_of(Time when) {
    assert(when >= now_ && "an event cannot be in the past");
    Recent& recent = recent_[entry_of(when)];
    if (recent.when != when) {
      open(recent, when);
    }
    return *recent.bucket;
  }

  /// Returns whether the next pop() goes on to other events than those that begin_instant() gave.
  bool bucket_is_over() const { return next_ == current_->size(); }
  /// Returns the event of the next pop(). Requires !bucket_is_over().
  Event& next() { return (*current_)[next_]; }
  /// Moves the clock to the earliest events and gives those of that instant that are there so far:
  /// they may be put in another order. Requires bucket_is_over() and !empty().
  [[gnu::noinline]] PlainVector<Event>& begin_instant() {
    assert(bucket_is_over() && !empty() && "an instant begins when nothing is left of another");
    advance();
    while (!instants_.empty() && instants_.front().when == now_) {
      take_over(*instants_.front().bucket);
      std::pop_heap(instants_.begin(), instants_.end());
      instants_.pop_back();
    }
    return *current_;
  }

  /// Removes the earliest event and moves the clock to it. Requires !empty().
  Event pop() {
    assert(!empty() && "pop of an empty queue");
    if (bucket_is_over()) {
      advance();
    }
    return take();
  }
  /// Returns the next event, as pop() does. Requires !bucket_is_over().
  const Event& take() { return (*current_)[next_++]; }

 private:
  static constexpr unsigned kTableBits = 10;

  struct Recent {
    Time when{-1};
    Bucket* bucket = nullptr;
  };
  struct Instant {
    Time when{0};
    Bucket* bucket = nullptr;
    /// std::push_heap puts the greatest first.
    friend bool operator<(const Instant& a, const Instant& b) {
      return a.when > b.when || (a.when == b.when && a.bucket->opening > b.bucket->opening);
    }
  };

  static std::size_t entry_of(Time when) {
    constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
    return (static_cast<std::uint64_t>(when.value()) * kGoldenRatio) >> (64 - kTableBits);
  }

  [[gnu::noinline]] void open(Recent& recent, Time when) {
    if (free_.empty()) {
      free_.push_back(&buckets_.emplace_back());
    }
    recent = {when, free_.back()};
    free_.pop_back();
    recent.bucket->opening = ++opened_;
    instants_.push_back({when, recent.bucket});
    std::push_heap(instants_.begin(), instants_.end());
  }

  /// Takes the events of another bucket of the same instant.
  void take_over(Bucket& from) {
    current_->append(from);
    if (Recent& recent = recent_[entry_of(now_)]; recent.bucket == &from) {
      recent.bucket = current_;
    }
    set_free(from);
  }
  void set_free(Bucket& bucket) {
    bucket.clear();
    free_.push_back(&bucket);
  }

  [[gnu::noinline]] void advance() {
    Recent& recent = recent_[entry_of(now_)];
    if (recent.bucket == current_) {
      recent = {};
    }
    popped_ += next_;
    next_ = 0;
    set_free(*current_);
    std::pop_heap(instants_.begin(), instants_.end());
    current_ = instants_.back().bucket;
    now_ = instants_.back().when;
    instants_.pop_back();
  }

  std::array<Recent, std::size_t{1} << kTableBits> recent_;
  std::deque<Bucket> buckets_;  ///< stay where they are
  std::vector<Bucket*> free_;
  std::vector<Instant> instants_;
  Bucket* current_;
  std::size_t next_ = 0;      ///< of the current bucket
  std::uint64_t popped_ = 0;  ///< of buckets before it
  std::uint64_t opened_ = 0;
  Time now_{0};
};

}  // namespace orrery::engine
