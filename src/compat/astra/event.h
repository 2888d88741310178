// SPDX-License-Identifier: Apache-2.0
/// Events are what happens in a run: plain data in one queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/units.h"
#include "engine/bucket_queue.h"

namespace orrery::astra {

struct Event {
  enum class Kind : std::uint8_t {
    // of collectives; subject: a stream unless said otherwise
    begin,      ///< the first messages of a phase are ready to go
    deliver,    ///< as arrive, of a tree that holds its senders
    arrive,     ///< message `step` of phase `phase` is there
    ready,      ///< rendezvous: the receiver of message `step` is ready
    processed,  ///< a received message, in a tree of direction `phase`, has been copied or reduced
    bus,        ///< of a SharedBus; subject and phase: its own
    // of custom collectives; subject: a collective unless said otherwise
    custom_begin,  ///< a member starts; subject: see CustomRuns
    custom_ready,  ///< rendezvous: the receiver of step `step` is ready
    custom_sent,   ///< the message of step `step` is there
    custom_done,   ///< a step is over; subject: see CustomRuns
    // of programs
    node_done,  ///< node `subject` of the (representative) rank `step`
    // of messages between two ranks; subject: a post
    sent,        ///< is there
    post_ready,  ///< rendezvous: its receiver is ready
    // of the network; subject and step: its own
    hop,
    link_free
  };
  static constexpr std::uint32_t kNobody = 0xffffffff;
  std::uint32_t subject = 0;
  std::uint32_t step = 0;  ///< of own events: the rank
  std::uint16_t phase = 0;
  Kind kind = Kind::begin;
  std::uint8_t own = 0;  ///< what a rank itself does, so many times; see Events

  std::uint32_t rank() const { return own > 0 ? step : kNobody; }
  bool does_the_same(const Event& other) const {
    return subject == other.subject && phase == other.phase && kind == other.kind;
  }
};
static_assert(sizeof(Event) == 12, "half a million wait at one instant of a direct all-reduce");

/// Pending events in ASTRA-sim's order: by time; at one instant in the order in which they were
/// pushed, but what a rank itself does then (ends of computation, of copies and reductions) comes
/// together, where the first of it was pushed, with what it adds for the same instant behind. What
/// a rank does several times in a row is one event.
class Events {
 public:
  explicit Events(std::size_t ranks) : lasts_(ranks), places_(ranks) {}

  bool empty() const { return added_.empty() && queue_.empty(); }
  Time now() const { return queue_.now(); }
  /// Returns the number of events popped so far.
  std::uint64_t popped() const { return queue_.popped() + repeated_ + popped_added_; }
  /// Returns whether nothing more happens at now(). Events may still be pushed for it.
  bool instant_is_over() const { return added_.empty() && queue_.instant_is_over(); }

  /// Returns the time of the earliest event. Requires instant_is_over() and !empty().
  Time next_time() const { return queue_.next_time(); }

  /// Requires when >= now().
  [[gnu::always_inline]] void push(Time when, const Event& event) { queue_.push(when, event); }

  /// Pushes what `rank` itself does at `when` >= now(); becomes the event's `step`.
  [[gnu::always_inline]] void push_own(std::uint32_t rank, Time when, Event event) {
    event.step = rank;
    event.own = 1;
    if (rank == running_ && when == now()) {
      added_.push_back(event);
      return;
    }
    engine::BucketQueue<Event>::Bucket& bucket = queue_.bucket_of(when);
    Last& last = lasts_[rank];
    if (last.opening == bucket.opening && when > now() && bucket[last.place].does_the_same(event) &&
        bucket[last.place].own < kMostTimes) {
      ++bucket[last.place].own;
    } else {
      last = {bucket.opening, bucket.size()};
      bucket.push_back(event);
    }
  }

  /// Removes the earliest event and moves the clock to it. Requires !empty().
  [[gnu::always_inline]] Event pop() {
    if (!added_.empty() && added_is_next()) {
      return pop_added();
    }
    if (queue_.bucket_is_over()) {
      bring_together(queue_.begin_instant());
    }
    const Event event = queue_.next();
    if (event.own > 1) {
      --queue_.next().own;
      ++repeated_;
    } else {
      queue_.take();
    }
    running_ = event.rank();
    return event;
  }

 private:
  static constexpr std::uint8_t kMostTimes = UINT8_MAX;

  /// Last tells which of a rank's own events was pushed last: in which bucket and where.
  struct Last {
    std::uint64_t opening = 0;
    std::size_t place = 0;
  };
  /// Place tells of a rank in the instant of this number how many events it has, or where its next
  /// one goes.
  struct Place {
    std::uint32_t instant = 0;
    std::uint32_t next = 0;
  };

  // Rare, and apart from pop() so that this is small enough to be inlined.
  bool added_is_next() { return queue_.bucket_is_over() || queue_.next().rank() != running_; }
  [[gnu::noinline]] Event pop_added() {
    ++popped_added_;
    const Event event = added_[taken_++];
    if (taken_ == added_.size()) {
      added_.clear();
      taken_ = 0;
    }
    return event;
  }
  /// Brings the events of each rank together, once for an instant.
  [[gnu::noinline]] void bring_together(engine::PlainVector<Event>& events) {
    if (events.size() > 2 && any_apart(events.span())) {
      sorted_.resize(events.size());
      sort(events.span(), sorted_.span());
      std::swap(events, sorted_);
    }
  }
  /// Returns whether events of one rank have others between them.
  bool any_apart(std::span<const Event> events) {
    if (ranks_ascend(events)) {
      return false;
    }
    ++instant_;
    std::uint32_t before = Event::kNobody;
    for (const Event& event : events) {
      const std::uint32_t rank = event.rank();
      if (rank != Event::kNobody && rank != before) {
        if (places_[rank].instant == instant_) {
          return true;
        }
        places_[rank].instant = instant_;
      }
      before = rank;
    }
    return false;
  }
  /// Each has one event, in order: the usual case.
  static bool ranks_ascend(std::span<const Event> events) {
    std::uint32_t next = 0;
    for (const Event& event : events) {
      if (event.own) {
        if (event.step < next) {
          return false;
        }
        next = event.step + 1;
      }
    }
    return true;
  }
  /// Events of a rank go where its first one stands, in order.
  void sort(std::span<const Event> events, std::span<Event> sorted) {
    ++instant_;
    for (const Event& event : events) {
      if (event.own) {
        Place& place = places_[event.step];
        place.next = place.instant == instant_ ? place.next + 1 : 1;
        place.instant = instant_;
      }
    }
    const std::uint32_t counted = instant_++;
    std::uint32_t end = 0;
    for (const Event& event : events) {
      if (!event.own) {
        sorted[end++] = event;
        continue;
      }
      Place& place = places_[event.step];
      if (place.instant == counted) {
        const std::uint32_t begin = end;
        end += place.next;
        place = {instant_, begin};
      }
      sorted[place.next++] = event;
    }
  }

  engine::BucketQueue<Event> queue_;
  std::uint32_t running_ = Event::kNobody;  ///< whose events come together now
  engine::PlainVector<Event> added_;        ///< by it for now(), from taken_ on
  std::size_t taken_ = 0;
  std::uint64_t popped_added_ = 0;
  std::uint64_t repeated_ = 0;
  std::vector<Last> lasts_;    ///< by rank
  std::vector<Place> places_;  ///< by rank
  std::uint32_t instant_ = 0;
  engine::PlainVector<Event> sorted_;
};

}  // namespace orrery::astra
