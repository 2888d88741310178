// SPDX-License-Identifier: Apache-2.0
/// RankState is what the event loop knows of one simulated rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "graph/workload.h"
#include "simulate/bind.h"
#include "simulate/chain.h"
#include "simulate/ledger.h"
#include "simulate/timeline.h"
#include "simulate/waiting_line.h"

namespace orrery::simulate {

/// Position of a rank among the simulated ones.
using RankIndex = std::uint32_t;
/// A RunningId names a node that runs, from its start until it is complete.
using RunningId = std::uint32_t;
inline constexpr RunningId kNoRunning = UINT32_MAX;

struct Running {
  RankIndex rank = 0;
  std::uint32_t node = 0;     ///< of its template
  std::int64_t instance = 0;  ///< of the rank's
  std::uint32_t cause = Span::kNone;
  std::uint32_t span = Span::kNone;  ///< its own, if spans are recorded
};

struct InstanceSlot {
  const BoundTemplate* shape = nullptr;
  const ChainTable* chains = nullptr;  ///< of the shape; none where nothing is taken together
  graph::Instance instance;
  std::uint32_t unfinished = 0;        ///< nodes
  std::vector<std::uint32_t> pending;  ///< dependencies left, by node
};

/// The instances of one rank from issue until their last node is done: a ring buffer that grows
/// when communication of old instances lags behind, and never with the number of microbatches.
class InstanceWindow {
 public:
  std::int64_t issued() const { return issued_; }
  std::int64_t oldest() const { return oldest_; }
  InstanceSlot& operator[](std::int64_t number) { return slots_[index(number)]; }
  const InstanceSlot& operator[](std::int64_t number) const { return slots_[index(number)]; }

  InstanceSlot& push(const graph::Instance& instance, const BoundTemplate& shape) {
    while (oldest_ < issued_ && (*this)[oldest_].unfinished == 0) {
      ++oldest_;
    }
    if (issued_ - oldest_ == static_cast<std::int64_t>(slots_.size())) {
      grow();
    }
    InstanceSlot& slot = (*this)[issued_++];
    slot.shape = &shape;
    slot.instance = instance;
    slot.unfinished = static_cast<std::uint32_t>(shape.nodes.size());
    slot.pending = shape.pending;
    return slot;
  }

  /// Every instance becomes a later one of the same kind.
  void shift(std::int64_t numbers, std::int64_t microbatches, std::int64_t steps) {
    std::vector<InstanceSlot> moved(slots_.size());
    for (std::int64_t i = oldest_; i < issued_; ++i) {
      InstanceSlot& slot = (*this)[i];
      slot.instance.microbatch += microbatches;
      slot.instance.step += steps;
      moved[index(i + numbers)] = std::move(slot);
    }
    slots_ = std::move(moved);
    oldest_ += numbers;
    issued_ += numbers;
  }

 private:
  std::size_t index(std::int64_t number) const {
    return static_cast<std::size_t>(number) & (slots_.size() - 1);
  }
  void grow() {
    std::vector<InstanceSlot> larger(slots_.size() * 2);
    for (std::int64_t i = oldest_; i < issued_; ++i) {
      larger[static_cast<std::size_t>(i) & (larger.size() - 1)] = std::move((*this)[i]);
    }
    slots_ = std::move(larger);
  }

  std::vector<InstanceSlot> slots_{4};  // a power of two
  std::int64_t issued_ = 0;
  std::int64_t oldest_ = 0;
};

/// Says where one stream of a rank is.
struct StreamState {
  std::int64_t instance = 0;       ///< order issue: number of the instance in the rank's issue list
  std::uint32_t position = 0;      ///< order issue: in the instance's list of this stream
  bool busy = false;               ///< of order none: never
  bool queued = false;             ///< waits to be looked at
  RunningId running = kNoRunning;  ///< while busy
  std::uint32_t trigger = Span::kNone;  ///< the span whose end made it be looked at
  /// Other orders: what is ready.
  struct Ready {
    std::int64_t instance = 0;
    std::uint32_t node = 0;
    std::uint32_t cause = Span::kNone;
  };
  WaitingLine<Ready> ready;
};

struct RankState {
  explicit RankState(const LedgerRows& rows, std::size_t stream_count)
      : ledger(rows), streams(stream_count) {}

  int role = 0;
  std::size_t program = 0;
  std::int64_t number = 0;
  bool source_done = false;
  bool asks = false;     ///< the source had nothing to give
  bool touched = false;  ///< the speed of what computes may change in this instant
  Time host{0};          ///< when the host is free to issue the next kernel
  std::uint32_t host_cause = Span::kNone;
  bool host_waited = false;  ///< for the end of host_cause, not for its issue
  Job job;
  ChainRun chain;
  Ledger ledger;
  InstanceWindow window;
  std::vector<StreamState> streams;
  std::int64_t steps_ended = 0;  ///< whose kernels are done, with those of steps before them

  StreamState& stream(graph::StreamIndex index) { return streams[*index]; }
  const StreamState& stream(graph::StreamIndex index) const { return streams[*index]; }
  const BoundNode& node(const Running& running) const {
    return window[running.instance].shape->nodes[running.node];
  }
  /// The host issues a node, whose span that is.
  void take_host(std::uint32_t span, Time cost) {
    host += cost;
    if (cost > Time(0)) {
      host_cause = span;
      host_waited = false;
    }
  }
};

/// Says whether the rank does nothing until it comes back, if ever.
inline bool is_gone(const RankState& rank) {
  return rank.job.pace == std::numeric_limits<double>::infinity();
}

}  // namespace orrery::simulate
