// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "engine/event_queue.h"

namespace orrery::engine {

/// An EventQueue for very many pending events that lie near to one another, as packets on links do:
/// the same order of events, at a cost that does not grow with their number.
///
/// Time is cut into slots of `width`; each of the next kSlots has its events in chunks of two lines
/// of the cache, unsorted, which are sorted when its turn comes. What lies further ahead waits in a
/// heap. Best when most events are pushed for less than kSlots * width ahead and a slot has a few
/// of them: memory is then read a slot ahead, and `coming` lets the user do the same.
///
/// Source: Brown, Calendar queues, CACM 31(10), 1988.
class CalendarQueue {
 public:
  struct Event {
    Time when{0};
    std::uint32_t kind = 0;
    std::uint32_t subject = 0;
    std::uint32_t generation = 0;
    std::uint32_t place = 0;  ///< among those of its slot at one instant
  };
  static constexpr std::size_t kSlots = std::size_t{1} << 15;

  /// Requires width > 0.
  explicit CalendarQueue(Time width)
      : width_(width.value()), first_(kSlots, kNone), used_(kSlots / 64) {
    assert(width_ > 0 && "slots have a width");
  }

  bool empty() const { return size_ == 0; }
  /// Returns the time of the last event popped.
  Time now() const { return now_; }

  /// Requires when >= now().
  void push(Time when, std::uint32_t kind, std::uint32_t subject, std::uint32_t generation = 0) {
    assert(when >= now_ && "an event cannot be in the past");
    ++size_;
    const std::int64_t slot = when.value() / width_;
    const Event event{when, kind, subject, generation, 0};
    if (slot <= slot_) {
      const auto after = [](const Event& a, Time b) { return a.when > b; };
      due_.insert(std::lower_bound(due_.begin(), due_.end(), when, after), event);
    } else if (slot - slot_ < static_cast<std::int64_t>(kSlots)) {
      put(static_cast<std::size_t>(slot) % kSlots, event);
    } else {
      far_.push(when, kind, subject, generation);
    }
  }

  /// Returns when the earliest pending event is. Requires !empty().
  Time next_time() const {
    assert(size_ > 0 && "an empty queue has no next event");
    if (!due_.empty()) {
      return due_.back().when;
    }
    Time next = far_.empty() ? Time::max() : far_.next_time();
    if (const std::int64_t slot = next_used(); slot != INT64_MAX) {
      for (std::uint32_t number = first_[static_cast<std::size_t>(slot) % kSlots]; number != kNone;
           number = chunks_[number].next) {
        const Chunk& chunk = chunks_[number];
        for (std::uint32_t i = 0; i < chunk.count; ++i) {
          next = std::min(next, chunk.events[i].when);
        }
      }
    }
    return next;
  }

  /// Removes the earliest event and moves the clock to it. Requires !empty().
  Event pop() {
    assert(size_ > 0 && "pop of an empty queue");
    if (due_.empty()) {
      advance();
    }
    const Event event = due_.back();
    due_.pop_back();
    --size_;
    now_ = event.when;
    return event;
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  /// Places of a slot's own events: those from the heap were pushed before and come first.
  static constexpr std::uint32_t kFirstPlace = std::uint32_t{1} << 31U;

  /// Some events of a slot, the latest chunk first.
  struct alignas(64) Chunk {
    static constexpr std::uint32_t kEvents = 5;
    std::array<Event, kEvents> events;
    std::uint32_t count = 0;
    std::uint32_t next = kNone;
  };
  static_assert(sizeof(Chunk) == 128);

  static constexpr auto kLater = [](const Event& a, const Event& b) {
    return a.when > b.when || (a.when == b.when && a.place > b.place);
  };

  void put(std::size_t slot, const Event& event) {
    const std::uint32_t latest = first_[slot];
    std::uint32_t place = kFirstPlace;
    if (latest != kNone) {
      Chunk& chunk = chunks_[latest];
      place = chunk.events[chunk.count - 1].place + 1;
      if (chunk.count < Chunk::kEvents) {
        Event& last = chunk.events[chunk.count++];
        last = event;
        last.place = place;
        return;
      }
    }
    std::uint32_t fresh = free_;
    if (fresh == kNone) {
      fresh = static_cast<std::uint32_t>(chunks_.size());
      chunks_.emplace_back();
    } else {
      free_ = chunks_[fresh].next;
    }
    Chunk& chunk = chunks_[fresh];
    chunk.events[0] = event;
    chunk.events[0].place = place;
    chunk.count = 1;
    chunk.next = latest;
    first_[slot] = fresh;
    used_[slot / 64] |= std::uint64_t{1} << (slot % 64);
  }

  /// Advances to the events of the next slot that has any.
  void advance() {
    const std::int64_t near = next_used();
    const std::int64_t far = far_.empty() ? INT64_MAX : far_.next_time().value() / width_;
    slot_ = std::min(near, far);
    if (near == slot_) {
      take(static_cast<std::size_t>(slot_) % kSlots);
    }
    std::uint32_t place = 0;
    while (!far_.empty() && far_.next_time().value() / width_ == slot_) {
      const EventQueue::Event event = far_.pop();
      due_.push_back({event.when, event.kind, event.subject, event.generation, place++});
    }
    std::sort(due_.begin(), due_.end(), kLater);
    if (const std::int64_t next = next_used(); next != INT64_MAX) {
      const Chunk& chunk = chunks_[first_[static_cast<std::size_t>(next) % kSlots]];
      __builtin_prefetch(&chunk);
      __builtin_prefetch(&chunk.next);
    }
  }

  void take(std::size_t slot) {
    for (std::uint32_t number = first_[slot]; number != kNone;) {
      Chunk& chunk = chunks_[number];
      const std::uint32_t next = chunk.next;
      if (next != kNone) {
        __builtin_prefetch(&chunks_[next]);
        __builtin_prefetch(&chunks_[next].next);
      }
      due_.insert(due_.end(), chunk.events.begin(), chunk.events.begin() + chunk.count);
      chunk.next = free_;
      free_ = number;
      number = next;
    }
    first_[slot] = kNone;
    used_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
  }

  /// Returns the next slot that is used; INT64_MAX: no slot has any.
  std::int64_t next_used() const {
    const auto begin = static_cast<std::size_t>(slot_ + 1) % kSlots;
    for (std::size_t ahead = 0; ahead <= kSlots;) {
      const std::size_t slot = (begin + ahead) % kSlots;
      const std::uint64_t word = used_[slot / 64] >> (slot % 64);
      if (word != 0) {
        const auto found = ahead + static_cast<std::size_t>(std::countr_zero(word));
        return slot_ + 1 + static_cast<std::int64_t>(found);
      }
      ahead += 64 - slot % 64;
    }
    return INT64_MAX;
  }

  std::int64_t width_;
  std::int64_t slot_ = -1;  ///< whose events are due_
  std::vector<Event> due_;  ///< the earliest last
  EventQueue far_;
  std::vector<Chunk> chunks_;
  std::uint32_t free_ = kNone;
  std::vector<std::uint32_t> first_;  ///< by slot: its latest chunk
  std::vector<std::uint64_t> used_;   ///< by slot, a bit: it has one
  std::size_t size_ = 0;
  Time now_{0};
};

}  // namespace orrery::engine
