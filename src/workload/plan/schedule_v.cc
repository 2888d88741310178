// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/schedule_v.h"

#include <algorithm>
#include <array>
#include <vector>

namespace orrery::plan {
namespace {

constexpr std::int64_t kRound = 6;  // passes of a microbatch on a stage: F, B and W of two chunks
constexpr std::int64_t kFree = -1;

enum Kind : std::int64_t { kForward, kInput, kWeight, kKinds };
constexpr std::array<Direction, kKinds> kDirections = {
    Direction::forward, Direction::input_gradient, Direction::weight_gradient};
constexpr std::array<std::int64_t, kKinds> kHeld = {1, 0, -1};  ///< chunks that a pass adds

/// VWay is how a microbatch passes the stages, in passes of equal length.
struct VWay {
  std::int64_t down = 1;      ///< passes from stage to stage towards the last one
  std::int64_t up = 1;        ///< and back
  std::int64_t at_front = 0;  ///< that it waits at stage 0 before its first backward
  std::int64_t at_turn = 0;   ///< and at the last stage between two backwards

  bool operator==(const VWay&) const = default;
};

struct Pass {
  Kind kind = kForward;
  std::int64_t chunk = 0;
  std::int64_t microbatch = 0;
};

/// VStage is the timeline of a stage: which pass each slot has.
struct VStage {
  std::vector<std::int64_t> at;     ///< index of the pass of a slot
  std::vector<std::int64_t> start;  ///< slot of a pass
  std::vector<std::int64_t> held;   ///< chunks that are held after a slot
  std::int64_t drains_after = 0;    ///< the slot of the last forward
  std::vector<bool> drains;         ///< passes after it
};

/// VOrder gives every pass of all stages a slot.
class VOrder {
 public:
  VOrder(const VWay& way, std::int64_t stages, std::int64_t microbatches)
      : stages_(stages), microbatches_(microbatches), way_(way) {
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      rows_.push_back(repeated(stage));
      fill_weights(rows_.back());
    }
    squeeze();
    drain();
  }

  bool is_of(const VWay& way, std::int64_t stages, std::int64_t microbatches) const {
    return way == way_ && stages == stages_ && microbatches == microbatches_;
  }

  /// Returns the passes of a stage in order; `before`: how many have slots before this one.
  std::vector<RunList::Piece> pieces(std::int64_t stage, std::int64_t slot,
                                     std::ptrdiff_t& before) const;

 private:
  VStage& row(std::int64_t stage) { return rows_[static_cast<std::size_t>(stage)]; }
  std::int64_t index(const Pass& pass) const {
    return (pass.kind * 2 + pass.chunk) * microbatches_ + pass.microbatch;
  }
  Pass pass(std::int64_t index) const {
    return {static_cast<Kind>(index / microbatches_ / 2), index / microbatches_ % 2,
            index % microbatches_};
  }
  std::int64_t start(std::int64_t stage, const Pass& pass) const {
    return rows_[static_cast<std::size_t>(stage)].start[static_cast<std::size_t>(index(pass))];
  }
  std::array<std::int64_t, 4> first_starts(std::int64_t stage) const;
  VStage repeated(std::int64_t stage) const;
  void fill_weights(VStage& row) const;
  std::int64_t earliest(std::int64_t stage, const Pass& pass) const;
  void squeeze();
  void drain();

  std::int64_t stages_;
  std::int64_t microbatches_;
  VWay way_;
  std::vector<VStage> rows_;
};

void put(VStage& row, std::int64_t index, std::int64_t slot) {
  row.at[static_cast<std::size_t>(slot)] = index;
  row.start[static_cast<std::size_t>(index)] = slot;
}

bool is_free(const VStage& row, std::int64_t slot) {
  return row.at[static_cast<std::size_t>(slot)] == kFree;
}

/// Returns the slots of microbatch 0 on a stage: F of chunk 0 and 1, B of chunk 1 and 0.
std::array<std::int64_t, 4> VOrder::first_starts(std::int64_t stage) const {
  const std::int64_t last = stages_ - 1;
  const std::int64_t turn = last * way_.down + 1;
  const std::int64_t front = turn + last * way_.up + 1 + way_.at_front;
  const std::int64_t back = front + last * way_.down + 1 + way_.at_turn;
  return {stage * way_.down, turn + (last - stage) * way_.up, front + stage * way_.down,
          back + (last - stage) * way_.up};
}

/// A microbatch follows the one before by a round.
VStage VOrder::repeated(std::int64_t stage) const {
  const std::array<std::int64_t, 4> first = first_starts(stage);
  const std::int64_t slots = first[3] + kRound * microbatches_ + 2;
  VStage row{
      .at = std::vector<std::int64_t>(static_cast<std::size_t>(slots), kFree),
      .start = std::vector<std::int64_t>(static_cast<std::size_t>(kKinds * 2 * microbatches_), 0),
      .held = std::vector<std::int64_t>(static_cast<std::size_t>(slots), 0),
      .drains_after = first[1] + kRound * (microbatches_ - 1),
      .drains = {}};
  for (std::int64_t m = 0; m < microbatches_; ++m) {
    put(row, index({kForward, 0, m}), first[0] + kRound * m);
    put(row, index({kForward, 1, m}), first[1] + kRound * m);
    put(row, index({kInput, 1, m}), first[2] + kRound * m);
    put(row, index({kInput, 0, m}), first[3] + kRound * m);
  }
  return row;
}

/// W take the slots that are free, first in, first out.
void VOrder::fill_weights(VStage& row) const {
  std::vector<std::int64_t> waiting;
  std::size_t next = 0;
  std::int64_t held = 0;
  row.drains.assign(row.start.size(), false);
  for (std::size_t slot = 0; slot < row.at.size(); ++slot) {
    if (row.at[slot] == kFree && next < waiting.size()) {
      put(row, waiting[next++], static_cast<std::int64_t>(slot));
    }
    if (row.at[slot] != kFree) {
      const Pass one = pass(row.at[slot]);
      held += kHeld[static_cast<std::size_t>(one.kind)];
      if (one.kind == kInput) {
        waiting.push_back(index({kWeight, one.chunk, one.microbatch}));
      }
      row.drains[static_cast<std::size_t>(row.at[slot])] =
          static_cast<std::int64_t>(slot) > row.drains_after;
    }
    row.held[slot] = held;
  }
}

/// Returns the first slot after all that the pass waits for.
std::int64_t VOrder::earliest(std::int64_t stage, const Pass& pass) const {
  const auto& [kind, chunk, m] = pass;
  const std::int64_t after = m > 0 ? start(stage, {kind, chunk, m - 1}) : -1;
  if (kind == kWeight) {
    return 1 + std::max(after, start(stage, {kInput, chunk, m}));
  }
  const bool goes_down = (chunk == 0) == (kind == kForward);
  const std::int64_t from = goes_down ? stage - 1 : stage + 1;
  if (from >= 0 && from < stages_) {
    return 1 + std::max(after, start(from, pass));
  }
  if (from == stages_) {
    return 1 + std::max(after, start(stage, {kind, 1 - chunk, m}));
  }
  return 1 + std::max(after, kind == kInput ? start(stage, {kForward, chunk, m}) : -1);
}

/// Moves passes into free slots before them, while no stage holds more than the fullest one.
void VOrder::squeeze() {
  std::int64_t most = 0;
  std::size_t slots = 0;
  for (const VStage& row : rows_) {
    most = std::max(most, *std::max_element(row.held.begin(), row.held.end()));
    slots = std::max(slots, row.at.size());
  }
  for (std::int64_t place = 0; place < std::int64_t(slots) * stages_; ++place) {
    const std::int64_t slot = place / stages_;
    const std::int64_t stage = place % stages_;
    VStage& row = this->row(stage);
    if (slot >= std::ssize(row.at) || is_free(row, slot)) {
      continue;
    }
    const std::int64_t index = row.at[static_cast<std::size_t>(slot)];
    const Pass one = pass(index);
    const std::int64_t more = kHeld[static_cast<std::size_t>(one.kind)];
    const auto end = row.held.begin() + slot;
    std::int64_t to = earliest(stage, one);
    const auto fits = [&] {
      return more <= 0 || *std::max_element(row.held.begin() + to, end) + more <= most;
    };
    while (to < slot && !(is_free(row, to) && fits())) {
      ++to;
    }
    if (to < slot) {
      std::for_each(row.held.begin() + to, end, [more](std::int64_t& held) { held += more; });
      row.at[static_cast<std::size_t>(slot)] = kFree;
      put(row, index, to);
    }
  }
}

/// After the last forward of a stage its B come as early as they can, and W after them.
void VOrder::drain() {
  std::vector<std::vector<std::int64_t>> weights(static_cast<std::size_t>(stages_));
  std::size_t slots = 0;
  for (const VStage& row : rows_) {
    slots = std::max(slots, row.at.size());
  }
  const auto first_free = [&](std::int64_t stage, std::int64_t index) {
    std::int64_t to = earliest(stage, pass(index));
    while (!is_free(row(stage), to)) {
      ++to;
    }
    return to;
  };
  for (std::int64_t slot = 0; slot < std::int64_t(slots); ++slot) {
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      VStage& row = this->row(stage);
      if (slot >= std::ssize(row.at) || is_free(row, slot)) {
        continue;
      }
      std::int64_t& here = row.at[static_cast<std::size_t>(slot)];
      const std::int64_t index = here;
      if (!row.drains[static_cast<std::size_t>(index)]) {
        continue;
      }
      here = kFree;
      if (pass(index).kind == kWeight) {
        weights[static_cast<std::size_t>(stage)].push_back(index);
      } else {
        put(row, index, first_free(stage, index));
      }
    }
  }
  for (std::int64_t stage = 0; stage < stages_; ++stage) {
    for (const std::int64_t index : weights[static_cast<std::size_t>(stage)]) {
      put(row(stage), index, first_free(stage, index));
    }
  }
}

std::vector<RunList::Piece> VOrder::pieces(std::int64_t stage, std::int64_t slot,
                                           std::ptrdiff_t& before) const {
  const VStage& row = rows_[static_cast<std::size_t>(stage)];
  std::vector<RunList::Piece> all;
  before = 0;
  for (std::int64_t at = 0; at < std::ssize(row.at); ++at) {
    if (is_free(row, at)) {
      continue;
    }
    const Pass one = pass(row.at[static_cast<std::size_t>(at)]);
    before += at < slot ? 1 : 0;
    all.push_back({kDirections[static_cast<std::size_t>(one.kind)], one.chunk});
  }
  return all;
}

/// Returns the order that was made last, or makes it: the stages of a pipeline ask one by one.
const VOrder& order_of(const VWay& way, std::int64_t stages, std::int64_t microbatches) {
  thread_local VOrder last(way, stages, microbatches);
  if (!last.is_of(way, stages, microbatches)) {
    last = VOrder(way, stages, microbatches);
  }
  return last;
}

/// Rounds in the middle are all the same, so that more microbatches repeat one of them.
RunList v_runs(const VWay& way, const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t enough = 2 * shape.stages + 8;
  const std::int64_t few = std::min(shape.microbatches, enough);
  std::ptrdiff_t middle = 0;
  const std::vector<RunList::Piece> pieces =
      order_of(way, shape.stages, few).pieces(stage, kRound * (shape.stages + 2), middle);
  RunList runs;
  for (std::ptrdiff_t i = 0; i < std::ssize(pieces); ++i) {
    if (few == enough && i == middle) {
      runs.add(1 + shape.microbatches - few,
               {pieces.begin() + middle, pieces.begin() + middle + kRound});
      i += kRound;
    }
    runs.add(1, {pieces[static_cast<std::size_t>(i)]});
  }
  return runs;
}

}  // namespace

RunList v_min_runs(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t wait = shape.stages % 3 == 0 ? 2 : 0;
  return v_runs({.down = 1, .up = 1, .at_front = wait}, shape, stage);
}

RunList v_half_runs(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t wait = shape.stages % 2 == 0 ? 3 : 0;
  return v_runs({.down = 2, .up = 1, .at_front = wait, .at_turn = 1}, shape, stage);
}

}  // namespace orrery::plan
