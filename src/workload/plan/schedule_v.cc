// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/schedule_v.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace orrery::plan {
namespace {

constexpr std::int64_t kRound = 6;  // passes of a microbatch on a stage: F, B and W of two chunks

/// VWay is how a microbatch passes the stages, in passes of equal length.
struct VWay {
  /// Passes from stage 0 to stage s on the way of forwards and of backwards, either direction.
  std::int64_t (*forwards)(std::int64_t stage);
  std::int64_t (*backwards)(std::int64_t stage);
  std::int64_t at_turn = 0;   ///< passes that it waits at the last stage between two forwards
  std::int64_t at_front = 0;  ///< and at stage 0 before its first backward
};

/// Says when a stage runs each pass of microbatch 0; microbatch k follows by 6 k.
struct TimedPiece {
  RunList::Piece piece;
  std::int64_t start = 0;

  std::int64_t round() const { return start / kRound; }
};

/// Returns the first time after `start` at which a round has its pass `place`.
std::int64_t next_at(std::int64_t start, std::int64_t place) {
  return start + 1 + ((place - start - 1) % kRound + kRound) % kRound;
}

/// Gives the two W the places of a round that are left, so that they wait least in sum.
std::array<TimedPiece, kRound> timed(const VWay& way, std::int64_t stages, std::int64_t stage) {
  const std::int64_t last = stages - 1;
  const std::int64_t down = way.forwards(last);
  const std::int64_t up = way.backwards(last);
  const std::int64_t forward_1 = 2 * down - way.forwards(stage) + 1 + way.at_turn;
  const std::int64_t turn_back = 2 * down + 2 + way.at_turn + way.at_front;  // first B of stage 0
  const std::int64_t inputs_1 = turn_back + way.backwards(stage);
  const std::int64_t inputs_0 = turn_back + 2 * up - way.backwards(stage) + 1;
  std::array<TimedPiece, kRound> pieces{{
      {{Direction::forward, 0}, way.forwards(stage)},
      {{Direction::forward, 1}, forward_1},
      {{Direction::input_gradient, 1}, inputs_1},
      {{Direction::input_gradient, 0}, inputs_0},
      {{Direction::weight_gradient, 1}, 0},
      {{Direction::weight_gradient, 0}, 0},
  }};
  std::vector<std::int64_t> left;
  for (std::int64_t place = 0; place < kRound; ++place) {
    const bool taken = std::any_of(pieces.begin(), pieces.begin() + 4, [&](const TimedPiece& one) {
      return one.start % kRound == place;
    });
    if (!taken) {
      left.push_back(place);
    }
  }
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t first = 0; first < 2; ++first) {
    const std::int64_t one = next_at(inputs_1, left[first]);
    const std::int64_t zero = next_at(inputs_0, left[1 - first]);
    if (one + zero < least) {
      least = one + zero;
      pieces[4].start = one;
      pieces[5].start = zero;
    }
  }
  std::sort(pieces.begin(), pieces.end(), [](const TimedPiece& a, const TimedPiece& b) {
    return a.start % kRound < b.start % kRound;
  });
  return pieces;
}

/// Rounds in time: those in which pieces of the first microbatches are still missing, whole ones,
/// those in which pieces of the last are gone.
RunList v_runs(const VWay& way, const PipelineShape& shape, std::int64_t stage) {
  const std::array<TimedPiece, kRound> pieces = timed(way, shape.stages, stage);
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t full = 0;  // the first round with a piece of every kind
  for (const TimedPiece& one : pieces) {
    first = std::min(first, one.round());
    full = std::max(full, one.round());
  }
  const std::int64_t m = std::max(shape.microbatches, full - first + 1);
  RunList runs;
  const auto add_round = [&](std::int64_t round, std::int64_t times) {
    std::vector<RunList::Piece> pattern;
    for (const TimedPiece& one : pieces) {
      if (round >= one.round() && round < one.round() + m) {
        pattern.push_back(one.piece);
      }
    }
    runs.add(times, pattern);
  };
  for (std::int64_t round = first; round < full; ++round) {
    add_round(round, 1);
  }
  add_round(full, first + m - full);
  for (std::int64_t round = first + m; round < full + m; ++round) {
    add_round(round, 1);
  }
  return m > shape.microbatches ? runs.with_fewer(shape.microbatches) : runs;
}

}  // namespace

RunList v_min_runs(const PipelineShape& shape, std::int64_t stage) {
  const auto pass = [](std::int64_t s) { return s; };
  const std::int64_t wait = shape.stages % 3 == 0 ? 2 : 0;
  return v_runs({.forwards = pass, .backwards = pass, .at_front = wait}, shape, stage);
}

RunList v_half_runs(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t wait = shape.stages % 2 == 0 ? 2 : 1;
  return v_runs({.forwards = [](std::int64_t s) { return (3 * s + 1) / 2; },
                 .backwards = [](std::int64_t s) { return 3 * s / 2; },
                 .at_turn = wait},
                shape, stage);
}

}  // namespace orrery::plan
