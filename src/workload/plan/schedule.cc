// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/schedule.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>

#include "workload/plan/schedule_runs.h"

namespace orrery::plan {
namespace {

std::int64_t pieces(const PipelineShape& shape) {
  return shape.microbatches * shape.chunks;
}

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

/// Returns how many of the first `count` forwards are of `chunk`.
std::int64_t forwards_of(const PipelineShape& shape, std::int64_t chunk, std::int64_t count) {
  const std::int64_t round = shape.stages * shape.chunks;
  const std::int64_t rest = count % round - chunk * shape.stages;
  return count / round * shape.stages + std::clamp<std::int64_t>(rest, 0, shape.stages);
}

/// Pieces of `chunk` in flight after `forwards` forwards and `backwards` backwards.
std::int64_t in_flight(const PipelineShape& shape, std::int64_t chunk, std::int64_t forwards,
                       std::int64_t backwards) {
  return forwards_of(shape, chunk, forwards) -
         forwards_of(shape, shape.chunks - 1 - chunk, backwards);
}

/// When after the warm-up the weighted sum of pieces in flight is largest, in pairs done.
std::int64_t heaviest_pair(const PipelineShape& shape, std::int64_t first,
                           const std::vector<double>& weights) {
  // After j pairs `first + j` forwards and j backwards are done; the pattern repeats every pv
  // pairs.
  const std::int64_t round = shape.stages * shape.chunks;
  const std::int64_t last = std::min(pieces(shape) - first, round);
  double most = -1;
  std::int64_t best = 0;
  const auto consider = [&](std::int64_t j) {
    if (j < 0 || j > last) {
      return;
    }
    double sum = 0;
    for (std::int64_t c = 0; c < shape.chunks; ++c) {
      sum += static_cast<double>(in_flight(shape, c, first + j, j)) *
             weights[static_cast<std::size_t>(c)];
    }
    if (sum > most || (sum == most && j < best)) {
      most = sum;
      best = j;
    }
  };
  consider(0);
  for (std::int64_t corner = 0; corner <= round; corner += shape.stages) {
    consider(corner - first % shape.stages);  // a forward's run of p ends
    consider(corner);                         // a backward's run of p ends
  }
  consider(last);
  return best;
}

}  // namespace

std::int64_t chunks_of(const Plan& plan) {
  const bool two = plan.schedule == Schedule::zb_v || plan.schedule == Schedule::dualpipe;
  return two ? 2 : plan.schedule == Schedule::interleaved ? plan.chunks : 1;
}

PipelineShape pipeline_shape(const Plan& plan) {
  const std::int64_t ways_in = plan.schedule == Schedule::dualpipe ? 2 : 1;
  const bool pairs =
      plan.overlap_ep == OverlapExperts::microbatch &&
      (plan.schedule == Schedule::one_f_one_b || plan.schedule == Schedule::interleaved);
  return {plan.schedule, plan.pp, chunks_of(plan), plan.microbatches() / ways_in, pairs};
}

std::int64_t part_count(const PipelineShape& shape) {
  return shape.schedule == Schedule::dualpipe ? shape.stages : shape.stages * shape.chunks;
}

std::int64_t part_of(const PipelineShape& shape, std::int64_t stage, std::int64_t chunk) {
  return flows_back(shape, chunk) ? part_count(shape) - 1 - stage : chunk * shape.stages + stage;
}

bool flows_back(const PipelineShape& shape, std::int64_t chunk) {
  return chunk == 1 && (shape.schedule == Schedule::zb_v || shape.schedule == Schedule::dualpipe);
}

bool ends_meet(const Plan& plan) {
  return plan.pp == 1 || plan.schedule == Schedule::zb_v || plan.schedule == Schedule::dualpipe;
}

bool splits_backward(Schedule schedule) {
  return schedule == Schedule::zb_h1 || schedule == Schedule::zb_v ||
         schedule == Schedule::dualpipe;
}

std::int64_t slot_count(const PipelineShape& shape, std::int64_t stage) {
  return pieces(shape) + (shape.pairs ? warmup(shape, stage) : pieces(shape));
}

std::int64_t warmup(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t behind = shape.stages - 1 - stage;
  switch (shape.schedule) {
    case Schedule::gpipe:
      return pieces(shape);
    case Schedule::one_f_one_b:
      return std::min(shape.pairs ? 2 * behind + 1 : behind, pieces(shape));
    case Schedule::interleaved:
      return std::min(2 * behind + (shape.chunks - 1) * shape.stages + (shape.pairs ? 1 : 0),
                      pieces(shape));
    case Schedule::zb_h1:
    case Schedule::zb_v:
    case Schedule::dualpipe:
      break;
  }
  return 0;
}

PipelineSlot slot(const PipelineShape& shape, std::int64_t stage, std::int64_t index) {
  assert(index >= 0 && index < slot_count(shape, stage) && "an index of the issue list");
  const std::int64_t total = pieces(shape);
  const std::int64_t first = warmup(shape, stage);
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

namespace {

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
    runs = std::make_shared<const RunList>(schedule_runs(shape, stage));
  }
  return runs;
}

}  // namespace

StageSchedule::StageSchedule(const PipelineShape& shape, std::int64_t stage)
    : shape_(shape), stage_(stage), size_(0) {
  if (splits_backward(shape.schedule)) {
    runs_ = known_runs(shape, stage);
  }
  size_ = runs_ ? runs_->size() : slot_count(shape, stage);
}

PipelineSlot StageSchedule::operator[](std::int64_t index) const {
  return runs_ ? (*runs_)[index] : slot(shape_, stage_, index);
}

std::optional<graph::Period> StageSchedule::period() const {
  if (runs_) {
    return runs_->period();
  }
  const std::int64_t total = pieces(shape_);
  const std::int64_t first = warmup(shape_, stage_);
  if (shape_.schedule == Schedule::gpipe) {
    return graph::Period{.first = 0, .end = total, .length = 1, .microbatches = 1};
  }
  const bool interleaved = shape_.chunks > 1;
  const std::int64_t both = shape_.pairs ? 1 : 2;  // pieces of a forward and a backward
  return graph::Period{.first = first,
                       .end = first + both * (total - first),
                       .length = both * (interleaved ? shape_.stages * shape_.chunks : 1),
                       .microbatches = interleaved ? shape_.stages : 1};
}

std::int64_t peak_in_flight(const PipelineShape& shape, std::int64_t stage) {
  if (splits_backward(shape.schedule)) {
    const std::vector<double> equal(static_cast<std::size_t>(shape.chunks), 1.0);
    const std::vector<std::int64_t> peak = known_runs(shape, stage)->peak(equal);
    return std::accumulate(peak.begin(), peak.end(), std::int64_t{0});
  }
  return std::min(warmup(shape, stage) + 1, pieces(shape));
}

std::vector<std::int64_t> peak_by_chunk(const PipelineShape& shape, std::int64_t stage,
                                        const std::vector<double>& weights) {
  assert(weights.size() == static_cast<std::size_t>(shape.chunks) && "a weight per chunk");
  if (splits_backward(shape.schedule)) {
    return known_runs(shape, stage)->peak(weights);
  }
  const std::int64_t first = peak_in_flight(shape, stage);
  const bool equal = std::all_of(weights.begin(), weights.end(),
                                 [&](double weight) { return weight == weights.front(); });
  const std::int64_t pair = equal ? 0 : heaviest_pair(shape, first, weights);
  std::vector<std::int64_t> by_chunk(weights.size());
  for (std::int64_t c = 0; c < shape.chunks; ++c) {
    by_chunk[static_cast<std::size_t>(c)] = in_flight(shape, c, first + pair, pair);
  }
  return by_chunk;
}

}  // namespace orrery::plan
