// SPDX-License-Identifier: Apache-2.0
/// What the event loop knows of one simulated rank.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "graph/workload.h"
#include "simulate/bind.h"
#include "simulate/ledger.h"
#include "simulate/timeline.h"

namespace orrery {

struct InstanceSlot {
  const BoundTemplate* shape = nullptr;
  Instance instance;
  std::uint32_t unfinished = 0;        ///< nodes
  std::vector<std::uint16_t> pending;  ///< dependencies left, by node
};

/// The instances of one rank from issue until their last node is done: a ring buffer that grows
/// when communication of old instances lags behind, and never with the number of microbatches.
class InstanceWindow {
 public:
  std::int64_t issued() const { return issued_; }
  std::int64_t oldest() const { return oldest_; }
  InstanceSlot& operator[](std::int64_t number) { return slots_[index(number)]; }
  const InstanceSlot& operator[](std::int64_t number) const { return slots_[index(number)]; }

  InstanceSlot& push(const Instance& instance, const BoundTemplate& shape) {
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

/// Where one in-order stream is.
struct Cursor {
  std::int64_t instance = 0;   ///< number of the instance in the rank's issue list
  std::uint32_t position = 0;  ///< in the instance's list of this stream
  bool busy = false;
  bool queued = false;  ///< waits to be looked at
  Time begin{0};        ///< of what runs
  Time ready{0};        ///< when what runs had its stream and its dependencies
  Time host_begin{0};   ///< the host issued what runs from here ...
  Time host_end{0};     ///< ... to here

  void post(Time now, Time host) {
    busy = true;
    begin = ready = now;
    host_begin = host_end = host;
  }
};

/// The compute node that runs. Its kernels take `remaining` at full speed; it cannot end before the
/// host has issued the last one. Only kernels are slowed down by communication, not the host.
struct Job {
  double remaining = 0;  ///< picoseconds of work left at `since`
  double slowdown = 1;
  Time since{0};
  Time begin{0};
  Time host_end{0};  ///< the earliest end that the host allows
  Time stretch{0};   ///< time beyond the work that slowness, not the host, has cost so far
  Time work{0};
  Contention contention;
  std::uint32_t generation = 0;
  bool running = false;
  bool touched = false;  ///< its speed may change in this instant

  /// Both return when the node will be done.
  Time start(Time now, Time host_limit, const BoundNode& node, double initial_slowdown) {
    work = node.work;
    remaining = static_cast<double>(work.value());
    slowdown = initial_slowdown;
    since = begin = now;
    host_end = host_limit;
    stretch = Time(0);
    contention = node.contention;
    running = true;
    ++generation;
    return std::max(host_end, now + (slowdown > 1 ? left() : work));
  }
  Time change_speed(Time now, double new_slowdown) {
    const Time elapsed = std::min(now - since, left());
    const double done = static_cast<double>(elapsed.value()) / slowdown;
    stretch += elapsed - Time::from_double(done);
    remaining = std::max(0.0, remaining - done);
    since = now;
    slowdown = new_slowdown;
    ++generation;
    return std::max(host_end, now + left());
  }
  /// Part of [begin, now] in which no kernel ran. Requires that the node is done.
  Time stall(Time now) const {
    const Time last = slowdown > 1 ? left() - Time::from_double(remaining) : Time(0);
    return std::max(Time(0), now - begin - work - stretch - last);
  }

 private:
  Time left() const { return Time::from_double(remaining * slowdown); }
};

struct RankState {
  int role = 0;
  std::int64_t number = 0;
  bool source_done = false;
  Time host{0};  ///< when the host is free to issue the next kernel
  Job job;
  Ledger ledger;
  InstanceWindow window;
  std::array<Cursor, kStreamCount> cursors;
  std::array<std::int64_t, kChannelCount> arrived{};  ///< messages not yet received

  Cursor& cursor(Stream stream) { return cursors[static_cast<std::size_t>(stream)]; }
  const Cursor& cursor(Stream stream) const { return cursors[static_cast<std::size_t>(stream)]; }
  /// Number in its template of the node that `stream` runs. Requires a busy stream.
  std::uint32_t running_node(Stream stream) const {
    const Cursor& at = cursor(stream);
    return window[at.instance].shape->by_stream[static_cast<std::size_t>(stream)][at.position];
  }
};

/// What `stream` has run, ending now. Requires a busy stream.
inline Span span_of(const RankState& rank, Stream stream, Time end, Time stall) {
  const Cursor& cursor = rank.cursor(stream);
  const InstanceSlot& slot = rank.window[cursor.instance];
  const std::uint32_t number = rank.running_node(stream);
  const BoundNode& node = slot.shape->nodes[number];
  return {.rank = rank.number,
          .stream = stream,
          .axis = node.kind == Node::Kind::send ? Axis::pp : node.axis,
          .phase = node.phase,
          .template_index = slot.instance.template_index,
          .node = static_cast<int>(number),
          .chunk = slot.instance.chunk,
          .microbatch = slot.instance.microbatch,
          .begin = cursor.begin,
          .end = end,
          .host_stall = stall,
          .ready = cursor.ready,
          .host_begin = cursor.host_begin,
          .host_end = cursor.host_end};
}

}  // namespace orrery
