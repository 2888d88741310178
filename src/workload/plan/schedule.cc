// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/schedule.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <memory>
#include <tuple>

#include "workload/plan/schedule_row.h"
#include "workload/plan/schedule_runs.h"

namespace orrery::plan {
namespace {

PipelineSlot forward_slot(const PipelineShape& shape, std::int64_t k) {
  const std::int64_t round = shape.stages * shape.chunks;
  if (shape.chunks == 1) {
    return {Direction::forward, 0, k};
  }
  const std::int64_t within = k % round;
  return {Direction::forward, within / shape.stages,
          k / round * shape.stages + within % shape.stages};
}

PipelineSlot backward_slot(const PipelineShape& shape, std::int64_t k) {
  PipelineSlot slot = forward_slot(shape, k);
  return {Direction::backward, shape.chunks - 1 - slot.chunk, slot.microbatch};
}

}  // namespace

std::int64_t chunks_of(const Plan& plan) {
  const ScheduleRow& row = row_of(plan.schedule);
  return row.both_ends ? 2 : row.least_chunks == row.most_chunks ? row.least_chunks : plan.chunks;
}

PipelineShape pipeline_shape(const Plan& plan) {
  const ScheduleRow& row = row_of(plan.schedule);
  return {plan.schedule, plan.pp, chunks_of(plan), plan.microbatches() / (row.both_ends ? 2 : 1),
          plan.overlap_ep == OverlapExperts::microbatch && row.in_pairs && !row.runs};
}

std::int64_t part_count(const PipelineShape& shape) {
  return row_of(shape.schedule).both_ends ? shape.stages : shape.stages * shape.chunks;
}

std::int64_t part_of(const PipelineShape& shape, std::int64_t stage, std::int64_t chunk) {
  return flows_back(shape, chunk) ? part_count(shape) - 1 - stage : chunk * shape.stages + stage;
}

bool flows_back(const PipelineShape& shape, std::int64_t chunk) {
  return chunk == 1 && row_of(shape.schedule).folds;
}

bool turns(const PipelineShape& shape, std::int64_t stage) {
  const ScheduleRow& row = row_of(shape.schedule);
  return row.folds && !row.both_ends && stage + 1 == shape.stages;
}

bool ends_meet(const Plan& plan) {
  return plan.pp == 1 || row_of(plan.schedule).folds;
}

bool splits_backward(Schedule schedule) {
  return row_of(schedule).split_backwards;
}

bool has_pairs(const PipelineShape& shape) {
  return shape.pairs || row_of(shape.schedule).both_ends;
}

std::int64_t slot_count(const PipelineShape& shape, std::int64_t stage) {
  return shape.pieces() + (shape.pairs ? warmup(shape, stage) : shape.pieces());
}

std::int64_t warmup(const PipelineShape& shape, std::int64_t stage) {
  const ScheduleRow& row = row_of(shape.schedule);
  return row.forwards_first ? shape.pieces()
         : row.warmup       ? std::min(row.warmup(shape, stage), shape.pieces())
                            : 0;
}

namespace {

/// The index-th piece of work after `first` forwards.
PipelineSlot slot_after(const PipelineShape& shape, std::int64_t first, std::int64_t index) {
  const std::int64_t total = shape.pieces();
  if (index < first) {
    return forward_slot(shape, index);
  }
  if (shape.pairs) {
    const PipelineSlot back = backward_slot(shape, index - first);
    if (index >= total) {
      return back;
    }
    const PipelineSlot ahead = forward_slot(shape, index);
    return {Direction::forward_backward, ahead.chunk, ahead.microbatch, back.microbatch,
            back.chunk};
  }
  const std::int64_t pair = (index - first) / 2;
  if (pair >= total - first) {  // all forwards are done
    return backward_slot(shape, index - total);
  }
  return (index - first) % 2 == 0 ? forward_slot(shape, first + pair) : backward_slot(shape, pair);
}

/// Runs are made once for all plans of a search that have this shape.
std::shared_ptr<const RunList> known_runs(const PipelineShape& shape, std::int64_t stage) {
  using Key = std::tuple<Schedule, std::int64_t, std::int64_t, std::int64_t>;
  constexpr std::size_t kMost = 1024;
  thread_local std::map<Key, std::shared_ptr<const RunList>> known;
  if (known.size() == kMost) {
    known.clear();
  }
  auto& runs = known[{shape.schedule, shape.stages, shape.microbatches, stage}];
  if (!runs) {
    runs = std::make_shared<const RunList>(row_of(shape.schedule).runs(shape, stage));
  }
  return runs;
}

}  // namespace

PipelineSlot slot(const PipelineShape& shape, std::int64_t stage, std::int64_t index) {
  assert(index >= 0 && index < slot_count(shape, stage) && "an index of the issue list");
  return slot_after(shape, warmup(shape, stage), index);
}

StageSchedule::StageSchedule(const PipelineShape& shape, std::int64_t stage)
    : shape_(shape),
      warmup_(warmup(shape, stage)),
      runs_(row_of(shape.schedule).runs ? known_runs(shape, stage) : nullptr),
      size_(runs_ ? runs_->size() : slot_count(shape, stage)) {}

PipelineSlot StageSchedule::operator[](std::int64_t index) const {
  assert(index >= 0 && index < size_ && "an index of the issue list");
  return runs_ ? (*runs_)[index] : slot_after(shape_, warmup_, index);
}

std::optional<graph::Period> StageSchedule::period() const {
  if (runs_) {
    return runs_->period();
  }
  const std::int64_t total = shape_.pieces();
  const std::int64_t first = warmup_;
  if (row_of(shape_.schedule).forwards_first) {
    return graph::Period{.first = 0, .end = total, .length = 1, .microbatches = 1};
  }
  const bool interleaved = shape_.chunks > 1;
  const std::int64_t both = shape_.pairs ? 1 : 2;  // pieces of a forward and a backward
  return graph::Period{.first = first,
                       .end = first + both * (total - first),
                       .length = both * (interleaved ? shape_.stages * shape_.chunks : 1),
                       .microbatches = interleaved ? shape_.stages : 1};
}

}  // namespace orrery::plan
