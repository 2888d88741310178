// SPDX-License-Identifier: Apache-2.0
/// What happens in a run: plain data in one queue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "engine/bucket_queue.h"

namespace orrery::astra {

struct Event {
  enum class Kind : std::uint8_t {
    // of collectives; subject: a stream unless said otherwise
    begin,      ///< the first messages of a phase are ready to go
    arrive,     ///< message `step` of phase `phase` is there
    ready,      ///< rendezvous: the receiver of message `step` is ready
    processed,  ///< a received message has been copied or reduced
    bus,        ///< of a SharedBus; subject and step: its own
    // of custom collectives; subject: a collective
    custom_begin,  ///< member `step` starts
    custom_ready,  ///< rendezvous: the receiver of step `step` is ready
    custom_sent,   ///< the message of step `step` is there
    custom_done,   ///< step `step` is over
    // of programs; subject: a rank (representative)
    node_done,  ///< node `step`
    // of messages between two ranks; subject: a post
    sent,        ///< is there
    post_ready,  ///< rendezvous: its receiver is ready
    // of the network; subject and step: its own
    hop,
    link_free,
    // of Events
    batch
  };
  std::uint32_t subject = 0;
  std::uint32_t step = 0;
  std::uint16_t phase = 0;
  Kind kind = Kind::begin;
};

/// Pending events in ASTRA-sim's order: by time; at one instant in the order in which they were
/// pushed, but what a rank itself does then (ends of computation, of copies and reductions) comes
/// together, where the first of it was pushed.
class Events {
 public:
  explicit Events(std::size_t ranks) : open_(ranks) {}

  bool empty() const { return next_ == kNone && queue_.empty(); }
  Time now() const { return queue_.now(); }
  /// Events popped so far.
  std::uint64_t popped() const { return popped_; }
  /// Whether nothing more happens at now(). Events may still be pushed for it.
  bool instant_is_over() const { return next_ == kNone && queue_.instant_is_over(); }

  /// Requires when >= now().
  void push(Time when, const Event& event) { queue_.push(when, event); }

  /// What `rank` itself does at `when` >= now().
  void push_own(std::uint32_t rank, Time when, const Event& event) {
    const std::uint32_t added = take(nodes_, unused_nodes_);
    nodes_[added] = {event, kNone};
    for (const std::uint32_t index : open_[rank]) {
      Batch& batch = batches_[index];
      if (batch.when == when) {
        nodes_[batch.last].next = added;
        if (next_ == kNone && batch.last == running_) {
          next_ = added;
        }
        batch.last = added;
        return;
      }
    }
    const std::uint32_t opened = take(batches_, unused_batches_);
    batches_[opened] = {when, rank, added, added};
    open_[rank].push_back(opened);
    queue_.push(when, {opened, 0, 0, Event::Kind::batch});
  }

  /// Removes the earliest event and moves the clock to it. Requires !empty().
  Event pop() {
    ++popped_;
    if (next_ == kNone) {
      close();
      const Event event = queue_.pop();
      if (event.kind != Event::Kind::batch) {
        return event;
      }
      batch_ = event.subject;
      next_ = batches_[batch_].first;
    } else {
      unused_nodes_.push_back(running_);
    }
    running_ = next_;
    next_ = nodes_[running_].next;
    return nodes_[running_].event;
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Node {
    Event event;
    std::uint32_t next = kNone;
  };
  struct Batch {
    Time when{0};
    std::uint32_t rank = 0;
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };

  template <class T>
  static std::uint32_t take(std::vector<T>& all, std::vector<std::uint32_t>& unused) {
    if (unused.empty()) {
      all.emplace_back();
      return static_cast<std::uint32_t>(all.size() - 1);
    }
    const std::uint32_t index = unused.back();
    unused.pop_back();
    return index;
  }
  /// The batch that runs is over.
  void close() {
    if (batch_ == kNone) {
      return;
    }
    std::vector<std::uint32_t>& open = open_[batches_[batch_].rank];
    *std::find(open.begin(), open.end(), batch_) = open.back();
    open.pop_back();
    unused_nodes_.push_back(running_);
    unused_batches_.push_back(batch_);
    batch_ = running_ = kNone;
  }

  engine::BucketQueue<Event> queue_;
  std::vector<std::vector<std::uint32_t>> open_;  ///< batches by rank
  std::vector<Batch> batches_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> unused_batches_;
  std::vector<std::uint32_t> unused_nodes_;
  std::uint32_t batch_ = kNone;    ///< that runs
  std::uint32_t running_ = kNone;  ///< node popped last, of that batch
  std::uint32_t next_ = kNone;     ///< the one after it
  std::uint64_t popped_ = 0;
};

}  // namespace orrery::astra
