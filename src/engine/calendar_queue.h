// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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
/// Time is cut into slots of `width`; each of the next kSlots has a list of its events, unsorted,
/// which is sorted when its turn comes. What lies further ahead waits in an EventQueue. Best when
/// most events are pushed for less than kSlots * width ahead and a slot has a few of them.
///
/// Source: Brown, Calendar queues, CACM 31(10), 1988.
class CalendarQueue {
 public:
  using Event = EventQueue::Event;
  static constexpr std::size_t kSlots = std::size_t{1} << 15;

  /// Requires width > 0.
  explicit CalendarQueue(Time width)
      : width_(width.value()), first_(kSlots, kNone), used_(kSlots / 64) {
    assert(width_ > 0 && "slots have a width");
  }

  bool empty() const { return size_ == 0; }
  /// Time of the last event popped.
  Time now() const { return now_; }

  /// Requires when >= now().
  void push(Time when, std::uint32_t kind, std::uint32_t subject, std::uint32_t generation = 0) {
    assert(when >= now_ && "an event cannot be in the past");
    ++size_;
    const std::int64_t slot = when.value() / width_;
    const Event event{when, next_order_++, kind, subject, generation};
    if (slot <= slot_) {
      due_.insert(std::upper_bound(due_.begin(), due_.end(), event, kLater), event);
    } else if (slot - slot_ < static_cast<std::int64_t>(kSlots)) {
      put(static_cast<std::size_t>(slot) % kSlots, event);
    } else {
      far_.push_back(event);
      std::push_heap(far_.begin(), far_.end(), kLater);
    }
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

  /// An event of a slot's list.
  struct Node {
    Event event;
    std::uint32_t next = kNone;
  };

  static constexpr auto kLater = [](const Event& a, const Event& b) {
    return a.when > b.when || (a.when == b.when && a.order > b.order);
  };

  void put(std::size_t slot, const Event& event) {
    std::uint32_t node = free_;
    if (node == kNone) {
      node = static_cast<std::uint32_t>(nodes_.size());
      nodes_.emplace_back();
    } else {
      free_ = nodes_[node].next;
    }
    nodes_[node] = {event, first_[slot]};
    first_[slot] = node;
    used_[slot / 64] |= std::uint64_t{1} << (slot % 64);
  }

  /// The events of the next slot that has any.
  void advance() {
    const std::int64_t near = next_used();
    const std::int64_t far = far_.empty() ? INT64_MAX : far_.front().when.value() / width_;
    slot_ = std::min(near, far);
    if (near == slot_) {
      take(static_cast<std::size_t>(slot_) % kSlots);
    }
    while (!far_.empty() && far_.front().when.value() / width_ == slot_) {
      due_.push_back(far_.front());
      std::pop_heap(far_.begin(), far_.end(), kLater);
      far_.pop_back();
    }
    std::sort(due_.begin(), due_.end(), kLater);
  }

  void take(std::size_t slot) {
    for (std::uint32_t node = first_[slot]; node != kNone;) {
      due_.push_back(nodes_[node].event);
      const std::uint32_t next = nodes_[node].next;
      nodes_[node].next = free_;
      free_ = node;
      node = next;
    }
    first_[slot] = kNone;
    used_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
  }

  /// INT64_MAX: no list has any.
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
  std::vector<Event> far_;  ///< a heap
  std::vector<Node> nodes_;
  std::uint32_t free_ = kNone;
  std::vector<std::uint32_t> first_;  ///< by slot: of its list
  std::vector<std::uint64_t> used_;   ///< by slot, a bit: it has a list
  std::size_t size_ = 0;
  std::uint64_t next_order_ = 0;
  Time now_{0};
};

}  // namespace orrery::engine
