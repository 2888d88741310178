// SPDX-License-Identifier: Apache-2.0
#include "estimate/schedule_run.h"

#include <algorithm>

#include "workload/plan/schedule_row.h"

namespace orrery::estimate {
namespace {

constexpr Time kUnknown = Time(-1);

class ScheduleRun {
 public:
  explicit ScheduleRun(const ScheduleTimes& times)
      : times_(times),
        shape_(times.shape),
        twice_(row_of(shape_.schedule).both_ends),
        parts_(plan::part_count(shape_)),
        forwards_(table_size(), kUnknown),
        backwards_(table_size(), kUnknown) {
    for (std::int64_t stage = 0; stage < shape_.stages; ++stage) {
      schedules_.emplace_back(shape_, stage);
    }
    next_.resize(schedules_.size(), 0);
    lanes_.resize(schedules_.size(), Time(0));
    ends_.resize(schedules_.size());
    for (StageEnds& stage : ends_) {
      stage.last_backward.resize(static_cast<std::size_t>(shape_.chunks), Time(0));
    }
    for (std::int64_t copy = 0; copy < (twice_ ? 2 : 1); ++copy) {
      for (std::int64_t i = 0; i < shape_.microbatches; ++i) {
        forwards_[place(copy, 0, i)] = Time(0);  // the first part waits for nobody
        backwards_[place(copy, parts_ - 1, i)] = Time(0);
      }
    }
  }

  std::vector<StageEnds> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < schedules_.size(); ++stage) {
        while (next_[stage] < schedules_[stage].size() && step(stage)) {
          moved = true;
        }
      }
    }
    return std::move(ends_);
  }

 private:
  std::size_t table_size() const {
    return static_cast<std::size_t>((twice_ ? 2 : 1) * parts_ * shape_.microbatches);
  }
  /// A part of the model is on both copies of a stage, each with microbatches of its own.
  std::size_t place(std::int64_t chunk, std::int64_t part, std::int64_t microbatch) const {
    const std::int64_t copy = twice_ ? chunk : 0;
    return static_cast<std::size_t>((copy * parts_ + part) * shape_.microbatches + microbatch);
  }
  std::int64_t part(std::size_t stage, std::int64_t chunk) const {
    return plan::part_of(shape_, static_cast<std::int64_t>(stage), chunk);
  }
  const PieceTimes& piece(std::size_t stage, std::int64_t chunk) const {
    return times_.pieces[stage][static_cast<std::size_t>(chunk)];
  }

  Time time_of(std::size_t stage, const plan::PipelineSlot& slot) const {
    const PieceTimes& own = piece(stage, slot.chunk);
    switch (slot.direction) {
      case plan::Direction::forward:
        return own.forward;
      case plan::Direction::backward:
        return own.backward + own.weights;
      case plan::Direction::input_gradient:
        return own.backward;
      case plan::Direction::weight_gradient:
        return own.weights;
      case plan::Direction::forward_backward:
        return own.paired_forward + piece(stage, slot.backward_chunk).paired_backward;
    }
    return Time(0);
  }

  /// False: what the stage's next piece waits for is not known yet.
  bool step(std::size_t stage) {
    const plan::PipelineSlot slot = schedules_[stage][next_[stage]];
    StageEnds& own = ends_[stage];
    const bool pair = slot.direction == plan::Direction::forward_backward;
    const bool forward = pair || slot.direction == plan::Direction::forward;
    const bool weights = slot.direction == plan::Direction::weight_gradient;
    const bool backward = !weights && slot.direction != plan::Direction::forward;
    const std::int64_t back_chunk = pair ? slot.backward_chunk : slot.chunk;
    const std::int64_t back_microbatch = pair ? slot.backward_microbatch : slot.microbatch;
    Time begin = own.end;
    if (forward) {
      const Time ready = forwards_[place(slot.chunk, part(stage, slot.chunk), slot.microbatch)];
      if (ready == kUnknown) {
        return false;
      }
      begin = std::max(begin, ready);
    }
    if (backward) {
      const Time ready = backwards_[place(back_chunk, part(stage, back_chunk), back_microbatch)];
      if (ready == kUnknown) {
        return false;
      }
      begin = std::max(begin, ready);
    }
    const Time time = time_of(stage, slot);
    own.begin = next_[stage] == 0 ? begin : own.begin;
    own.busy += time;
    own.end = begin + time;
    ++next_[stage];
    if (backward || weights) {
      own.last_backward[static_cast<std::size_t>(back_chunk)] = own.end;
    }
    const Time done = own.end;
    const std::int64_t ahead = part(stage, slot.chunk);
    if (forward && ahead + 1 < parts_) {
      forwards_[place(slot.chunk, ahead + 1, slot.microbatch)] =
          send(stage, done, piece(stage, slot.chunk).activations);
    }
    const std::int64_t behind = part(stage, back_chunk);
    if (backward && behind > 0) {
      backwards_[place(back_chunk, behind - 1, back_microbatch)] =
          send(stage, done, piece(stage, back_chunk).gradients);
    }
    return true;
  }

  /// Returns when a message arrives that the stage has ready at `done`.
  Time send(std::size_t stage, Time done, Time message) {
    if (message == Time(0)) {
      return done;
    }
    Time& lane = lanes_[stage];
    lane = std::max(lane, done) + message;
    if (times_.waits_for_sends) {
      ends_[stage].end = std::max(ends_[stage].end, lane);
    }
    return lane;
  }

  const ScheduleTimes& times_;
  plan::PipelineShape shape_;
  bool twice_;
  std::int64_t parts_;
  std::vector<plan::StageSchedule> schedules_;
  std::vector<std::int64_t> next_;  ///< piece, by stage
  std::vector<Time> lanes_;         ///< when a stage's messages so far are there
  std::vector<Time> forwards_;      ///< arrivals, by place()
  std::vector<Time> backwards_;
  std::vector<StageEnds> ends_;
};

}  // namespace

std::vector<StageEnds> run_schedule(const ScheduleTimes& times) {
  return ScheduleRun(times).run();
}

std::int64_t pieces_of(const plan::PipelineShape& shape) {
  return (plan::splits_backward(shape.schedule) ? 3 : 2) * shape.microbatches * shape.chunks *
         shape.stages;
}

}  // namespace orrery::estimate
