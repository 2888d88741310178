// SPDX-License-Identifier: Apache-2.0
/// A small executor of pipeline schedules: every stage runs its list in order, a piece needs the
/// message that the stage before (backward: after) sent when it was done, and messages take no
/// time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "workload/plan/schedule.h"

namespace orrery::testing {

inline std::vector<plan::PipelineSlot> all_slots(const plan::PipelineShape& shape,
                                                 std::int64_t stage) {
  const plan::StageSchedule schedule(shape, stage);
  std::vector<plan::PipelineSlot> slots;
  for (std::int64_t i = 0; i < schedule.size(); ++i) {
    slots.push_back(schedule[i]);
  }
  return slots;
}

/// The kinds of work of one slot, each with its chunk and microbatch, in the order in which they
/// run; a whole backward is its two halves.
struct Work {
  enum Kind : std::uint8_t { forward, input_gradient, weight_gradient } kind;
  std::int64_t chunk;
  std::int64_t microbatch;
};
inline std::vector<Work> works_of(const plan::PipelineSlot& slot) {
  const auto backward = [](std::int64_t chunk, std::int64_t microbatch) {
    return std::vector<Work>{{Work::input_gradient, chunk, microbatch},
                             {Work::weight_gradient, chunk, microbatch}};
  };
  switch (slot.direction) {
    case plan::Direction::forward:
      return {{Work::forward, slot.chunk, slot.microbatch}};
    case plan::Direction::backward:
      return backward(slot.chunk, slot.microbatch);
    case plan::Direction::input_gradient:
      return {{Work::input_gradient, slot.chunk, slot.microbatch}};
    case plan::Direction::weight_gradient:
      return {{Work::weight_gradient, slot.chunk, slot.microbatch}};
    case plan::Direction::forward_backward: {
      std::vector<Work> works = backward(slot.backward_chunk, slot.backward_microbatch);
      works.insert(works.begin(), {Work::forward, slot.chunk, slot.microbatch});
      return works;
    }
  }
  return {};
}

struct Costs {
  std::int64_t forward = 1;
  std::int64_t input_gradient = 1;
  std::int64_t weight_gradient = 0;

  std::int64_t of(const Work& work) const {
    return work.kind == Work::forward          ? forward
           : work.kind == Work::input_gradient ? input_gradient
                                               : weight_gradient;
  }
  std::int64_t all() const { return forward + input_gradient + weight_gradient; }
};

/// The most that is in flight on a stage, whose forward has run and whose weight gradients are not
/// there; pieces of a chunk weigh as much as is given, else 1.
inline double most_in_flight(const plan::PipelineShape& shape, std::int64_t stage,
                             std::vector<double> weights = {}) {
  weights.resize(static_cast<std::size_t>(shape.chunks), 1);
  double now = 0;
  double most = 0;
  for (const plan::PipelineSlot& slot : all_slots(shape, stage)) {
    for (const Work& work : works_of(slot)) {
      const double weight = weights[static_cast<std::size_t>(work.chunk)];
      now += work.kind == Work::forward ? weight : work.kind == Work::weight_gradient ? -weight : 0;
      most = std::max(most, now);
    }
  }
  return most;
}

class PipelineExecutor {
 public:
  explicit PipelineExecutor(const plan::PipelineShape& shape, Costs costs = {})
      : shape_(shape), costs_(costs), next_(stages(), 0), clock_(stages(), 0) {
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      slots_.push_back(all_slots(shape, stage));
    }
  }

  /// False on a deadlock or when a message is not the one that the receiver expects next.
  bool run() {
    bool progress = true;
    while (progress) {
      progress = false;
      for (std::int64_t stage = 0; stage < shape_.stages; ++stage) {
        while (step(stage)) {
          progress = true;
        }
      }
    }
    for (std::size_t s = 0; s < stages(); ++s) {
      in_order_ = in_order_ && next_[s] == slots_[s].size();
    }
    return in_order_;
  }
  std::int64_t makespan() const { return *std::max_element(clock_.begin(), clock_.end()); }

 private:
  struct Arrival {
    std::int64_t part;
    std::int64_t microbatch;
    std::int64_t time;
  };
  /// Stage that receives, whether activations, whether they come from the next stage's side.
  using Channel = std::tuple<std::int64_t, bool, bool>;

  std::size_t stages() const { return static_cast<std::size_t>(shape_.stages); }

  bool enters_or_leaves(const Work& work, std::int64_t part, bool arriving) const {
    const bool down = (work.kind == Work::forward) == arriving;
    return work.kind == Work::weight_gradient || part == (down ? 0 : plan::part_count(shape_) - 1);
  }

  bool step(std::int64_t stage) {
    const auto s = static_cast<std::size_t>(stage);
    if (next_[s] == slots_[s].size()) {
      return false;
    }
    const std::vector<Work> works = works_of(slots_[s][next_[s]]);
    const auto channel_of = [&](const Work& work) {
      return Channel{stage, work.kind == Work::forward, plan::flows_back(shape_, work.chunk)};
    };
    for (const Work& work : works) {
      const std::int64_t part = plan::part_of(shape_, stage, work.chunk);
      if (!enters_or_leaves(work, part, true) && channels_[channel_of(work)].empty()) {
        return false;
      }
    }
    std::int64_t ready = clock_[s];
    for (const Work& work : works) {
      const std::int64_t part = plan::part_of(shape_, stage, work.chunk);
      if (!enters_or_leaves(work, part, true)) {
        const Arrival arrival = channels_[channel_of(work)].front();
        channels_[channel_of(work)].pop_front();
        in_order_ = in_order_ && arrival.part == part && arrival.microbatch == work.microbatch;
        ready = std::max(ready, arrival.time);
      }
    }
    clock_[s] = ready;
    for (const Work& work : works) {
      clock_[s] += costs_.of(work);
    }
    for (const Work& work : works) {
      publish(stage, work);
    }
    ++next_[s];
    return true;
  }

  void publish(std::int64_t stage, const Work& work) {
    const std::int64_t part = plan::part_of(shape_, stage, work.chunk);
    if (enters_or_leaves(work, part, false)) {
      return;
    }
    const bool forward = work.kind == Work::forward;
    const std::int64_t to = forward ? part + 1 : part - 1;
    for (std::int64_t other = 0; other < shape_.stages; ++other) {
      for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
        const bool copy = shape_.schedule == plan::Schedule::dualpipe && chunk != work.chunk;
        if (plan::part_of(shape_, other, chunk) == to && !copy) {
          channels_[{other, forward, plan::flows_back(shape_, chunk)}].push_back(
              {to, work.microbatch, clock_[static_cast<std::size_t>(stage)]});
        }
      }
    }
  }

  plan::PipelineShape shape_;
  Costs costs_;
  std::vector<std::vector<plan::PipelineSlot>> slots_;
  std::vector<std::size_t> next_;
  std::vector<std::int64_t> clock_;
  std::map<Channel, std::deque<Arrival>> channels_;
  bool in_order_ = true;
};

}  // namespace orrery::testing
