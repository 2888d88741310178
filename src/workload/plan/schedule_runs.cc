// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/schedule_runs.h"

#include <algorithm>
#include <deque>

namespace orrery::plan {
namespace {

constexpr std::size_t at(std::int64_t chunk) {
  return static_cast<std::size_t>(chunk);
}

bool runs_forward(Direction direction) {
  return direction == Direction::forward || direction == Direction::forward_backward;
}

constexpr RunList::Piece forward(std::int64_t chunk) {
  return {Direction::forward, chunk};
}
constexpr RunList::Piece backward(std::int64_t chunk) {
  return {Direction::backward, chunk};
}
constexpr RunList::Piece inputs(std::int64_t chunk) {
  return {Direction::input_gradient, chunk};
}
constexpr RunList::Piece weights(std::int64_t chunk) {
  return {Direction::weight_gradient, chunk};
}
/// Returns a forward of `chunk` and a backward of the other one.
constexpr RunList::Piece both(std::int64_t chunk) {
  return {Direction::forward_backward, chunk};
}

RunList zb_v(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t p = shape.stages;
  const std::int64_t m = std::max(shape.microbatches, 2 * p - 1);
  const std::int64_t ahead = 2 * p - 1 - stage;  // forwards of chunk 0 before the steady part
  RunList runs;
  runs.add(2 * (p - stage) - 1, {forward(0)});
  runs.add(stage, {forward(1), forward(0)});
  runs.add(p - stage, {forward(1), inputs(1), weights(1)});
  runs.add(m - ahead, {forward(0), inputs(0), weights(0), forward(1), inputs(1), weights(1)});
  runs.add(ahead - p, {inputs(0), weights(0), forward(1), inputs(1), weights(1)});
  runs.add(stage, {inputs(0), inputs(1)});
  runs.add(p - stage, {inputs(0), weights(0)});
  runs.add(stage, {weights(1)});
  runs.add(stage, {weights(0)});
  return runs;
}

/// The last backwards of DualPipe: from the middle on they leave their W, first in, first out.
void dualpipe_end(RunList& runs, std::int64_t near, std::int64_t half, std::int64_t rest) {
  const std::int64_t far = 1 - near;
  const std::int64_t rounds = half + 1;
  std::deque<std::int64_t> left;
  for (std::int64_t i = 0; i < 2 * rounds; ++i) {
    const std::int64_t chunk = i % 2 == 0 ? far : near;
    if (i < rounds) {
      runs.add(1, {backward(chunk)});
    } else {
      runs.add(1, {inputs(chunk)});
      left.push_back(chunk);
    }
  }
  for (std::int64_t i = 0; i < rest; ++i) {
    runs.add(1, {weights(left.front()), inputs(near)});
    left.pop_front();
    left.push_back(near);
  }
  for (const std::int64_t chunk : left) {
    runs.add(1, {weights(chunk)});
  }
}

RunList dualpipe(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t p = shape.stages;
  const std::int64_t m = std::max(shape.microbatches, p);
  const std::int64_t half = std::min(stage, p - 1 - stage);
  const std::int64_t rest = p / 2 - 1 - half;
  const std::int64_t near = stage < p / 2 ? 0 : 1;  // whose microbatches enter at the nearer end
  const std::int64_t far = 1 - near;
  RunList runs;
  runs.add(2 * rest, {forward(near)});
  runs.add(half + 1, {forward(near), forward(far)});
  runs.add(rest, {inputs(far), weights(far), forward(far)});
  const std::int64_t steady = m - p + half + 1;
  const bool middle = rest == 0;  // its first forward must not wait for its neighbour's
  if (middle) {
    runs.add(1, {forward(near), backward(far), both(far)});
  }
  runs.add(steady - (middle ? 1 : 0), {both(near), both(far)});
  runs.add(rest, {backward(far), both(far)});
  dualpipe_end(runs, near, half, rest);
  return runs;
}

}  // namespace

void RunList::Counts::add(const Piece& piece) {
  const bool pair = piece.direction == Direction::forward_backward;
  const std::size_t back = at(pair ? 1 - piece.chunk : piece.chunk);
  const bool whole = pair || piece.direction == Direction::backward;
  if (runs_forward(piece.direction)) {
    ++of[kForward][at(piece.chunk)];
  }
  if (whole || piece.direction == Direction::input_gradient) {
    ++of[kInput][back];
  }
  if (whole || piece.direction == Direction::weight_gradient) {
    ++of[kWeight][back];
  }
}

std::int64_t RunList::Counts::own(const Piece& piece) const {
  const auto kind = runs_forward(piece.direction)                   ? kForward
                    : piece.direction == Direction::weight_gradient ? kWeight
                                                                    : kInput;
  return of[kind][at(piece.chunk)];
}

std::int64_t RunList::Counts::concurrent_backward(const Piece& piece) const {
  return piece.direction == Direction::forward_backward ? of[kInput][at(1 - piece.chunk)] : 0;
}

void RunList::add(std::int64_t times, const std::vector<Piece>& pattern) {
  if (times <= 0) {
    return;
  }
  Run run{.start = size_, .times = times, .places = {}};
  Counts reached = counts_;
  for (const Piece& piece : pattern) {
    run.places.push_back({.piece = piece,
                          .first = reached.own(piece),
                          .backward_first = reached.concurrent_backward(piece)});
    reached.add(piece);
  }
  for (Place& place : run.places) {
    place.step = reached.own(place.piece) - counts_.own(place.piece);
    place.backward_step =
        reached.concurrent_backward(place.piece) - counts_.concurrent_backward(place.piece);
  }
  for (std::size_t kind = 0; kind < Counts::kKinds; ++kind) {
    for (std::size_t c = 0; c < kChunks; ++c) {
      counts_.of[kind][c] += (reached.of[kind][c] - counts_.of[kind][c]) * times;
    }
  }
  size_ += times * std::ssize(run.places);
  runs_.push_back(std::move(run));
}

PipelineSlot RunList::operator[](std::int64_t index) const {
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), index,
                                      [](std::int64_t i, const Run& run) { return i < run.start; });
  const Run& run = *std::prev(after);
  const std::int64_t length = std::ssize(run.places);
  const std::int64_t round = (index - run.start) / length;
  const Place& place = run.places[static_cast<std::size_t>((index - run.start) % length)];
  const bool pair = place.piece.direction == Direction::forward_backward;
  return {place.piece.direction, place.piece.chunk, place.first + round * place.step,
          place.backward_first + round * place.backward_step, pair ? 1 - place.piece.chunk : 0};
}

std::optional<std::int64_t> RunList::step_of(const Run& run) const {
  Counts once;
  for (const Place& place : run.places) {
    once.add(place.piece);
  }
  std::optional<std::int64_t> step;
  for (std::size_t kind = 0; kind < Counts::kKinds; ++kind) {
    for (std::size_t c = 0; c < kChunks; ++c) {
      const bool exists = counts_.of[kind][c] > 0;
      if (exists && once.of[kind][c] != step.value_or(once.of[kind][c])) {
        return std::nullopt;
      }
      step = exists ? once.of[kind][c] : step;
    }
  }
  return step;
}

std::optional<graph::Period> RunList::period() const {
  std::optional<graph::Period> longest;
  for (const Run& run : runs_) {
    const std::optional<std::int64_t> step = step_of(run);
    const std::int64_t length = std::ssize(run.places);
    if (step && (!longest || run.times * length > longest->end - longest->first)) {
      longest = graph::Period{.first = run.start,
                              .end = run.start + run.times * length,
                              .length = length,
                              .microbatches = *step};
    }
  }
  return longest;
}

RunList RunList::with_fewer(std::int64_t microbatches) const {
  RunList fewer;
  for (std::int64_t i = 0; i < size_; ++i) {
    const PipelineSlot work = (*this)[i];
    const bool runs = work.microbatch < microbatches;
    if (work.direction != Direction::forward_backward) {
      fewer.add(runs ? 1 : 0, {{work.direction, work.chunk}});
      continue;
    }
    const bool beside = work.backward_microbatch < microbatches;
    if (runs && beside) {
      fewer.add(1, {both(work.chunk)});
    } else {
      fewer.add(runs ? 1 : 0, {forward(work.chunk)});
      fewer.add(beside ? 1 : 0, {backward(1 - work.chunk)});
    }
  }
  return fewer;
}

RunList zb_h1_runs(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t m = shape.microbatches;
  const std::int64_t ahead = std::min(shape.stages - 1 - stage, m);
  const std::int64_t delaying = std::min(stage, m - ahead);
  const std::int64_t late = std::min(ahead, stage - delaying);
  RunList runs;
  runs.add(ahead, {forward(0)});
  runs.add(delaying, {forward(0), inputs(0)});
  runs.add(m - ahead - delaying, {forward(0), inputs(0), weights(0)});
  runs.add(late, {inputs(0)});
  runs.add(ahead - late, {inputs(0), weights(0)});
  runs.add(std::min(stage, m), {weights(0)});
  return runs;
}

RunList zb_v_runs(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t m = shape.microbatches;
  return m < 2 * shape.stages - 1 ? zb_v(shape, stage).with_fewer(m) : zb_v(shape, stage);
}

RunList dualpipe_runs(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t m = shape.microbatches;
  return m < shape.stages ? dualpipe(shape, stage).with_fewer(m) : dualpipe(shape, stage);
}

}  // namespace orrery::plan
