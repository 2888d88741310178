// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace orrery {
namespace {

std::vector<PipelineSlot> all_slots(const PipelineShape& shape, std::int64_t stage) {
  std::vector<PipelineSlot> slots;
  for (std::int64_t i = 0; i < slot_count(shape); ++i) {
    slots.push_back(slot(shape, stage, i));
  }
  return slots;
}

rc::Gen<PipelineShape> any_shape() {
  return rc::gen::exec([] {
    PipelineShape shape;
    shape.schedule =
        *rc::gen::element(Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved);
    const bool interleaved = shape.schedule == Schedule::interleaved;
    shape.stages = *rc::gen::inRange<std::int64_t>(interleaved ? 2 : 1, 9);
    shape.chunks = interleaved ? *rc::gen::inRange<std::int64_t>(2, 6) : 1;
    shape.microbatches = *rc::gen::inRange<std::int64_t>(1, 6) * (interleaved ? shape.stages : 1);
    return shape;
  });
}

RC_GTEST_PROP(Schedule, EveryPieceRunsOnceForwardThenOnceBackward, ()) {
  const PipelineShape shape = *any_shape();
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    std::set<std::pair<std::int64_t, std::int64_t>> forward;
    std::set<std::pair<std::int64_t, std::int64_t>> backward;
    for (const PipelineSlot& work : all_slots(shape, stage)) {
      RC_ASSERT(work.chunk >= 0 && work.chunk < shape.chunks);
      RC_ASSERT(work.microbatch >= 0 && work.microbatch < shape.microbatches);
      const std::pair piece{work.chunk, work.microbatch};
      if (work.direction == Direction::forward) {
        RC_ASSERT(forward.insert(piece).second);
      } else {
        RC_ASSERT(forward.contains(piece));
        RC_ASSERT(backward.insert(piece).second);
      }
    }
    RC_ASSERT(std::ssize(forward) == shape.microbatches * shape.chunks);
    RC_ASSERT(forward == backward);
  }
}

std::int64_t counted_peak(const PipelineShape& shape, std::int64_t stage) {
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const PipelineSlot& work : all_slots(shape, stage)) {
    now += work.direction == Direction::forward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

RC_GTEST_PROP(Schedule, PeakInFlightIsTheCountedOne, ()) {
  const PipelineShape shape = *any_shape();
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    RC_ASSERT(peak_in_flight(shape, stage) == counted_peak(shape, stage));
  }
}

TEST(Schedule, OneForwardOneBackwardHoldsAtMostTheStagesBehind) {
  // p = 4, m = 3: min(p - s, m).
  const PipelineShape shape{Schedule::one_f_one_b, 4, 1, 3};
  EXPECT_EQ(peak_in_flight(shape, 0), 3);
  EXPECT_EQ(peak_in_flight(shape, 1), 3);
  EXPECT_EQ(peak_in_flight(shape, 2), 2);
  EXPECT_EQ(peak_in_flight(shape, 3), 1);
}

TEST(Schedule, InterleavedFirstStageHoldsOnePlusPMinusOneOverPVMore) {
  // Korthikanti et al. 2022, section 4.2.3: p (1 + (p-1)/(p v)) microbatches; in chunks, times v:
  // p v + p - 1. p = 8, v = 3: 31.
  const PipelineShape shape{Schedule::interleaved, 8, 3, 64};
  EXPECT_EQ(peak_in_flight(shape, 0), 31);
}

RC_GTEST_PROP(Schedule, PeakByChunkIsTheCountedOne, ()) {
  const PipelineShape shape = *any_shape();
  const auto weights = *rc::gen::container<std::vector<double>>(
      static_cast<std::size_t>(shape.chunks),
      rc::gen::map(rc::gen::inRange(0, 5), [](int w) { return static_cast<double>(w); }));
  const auto weigh = [&](const std::vector<std::int64_t>& pieces) {
    double sum = 0;
    for (std::size_t c = 0; c < pieces.size(); ++c) {
      sum += weights[c] * static_cast<double>(pieces[c]);
    }
    return sum;
  };
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    std::vector<std::int64_t> now(weights.size(), 0);
    double most = 0;
    for (const PipelineSlot& work : all_slots(shape, stage)) {
      now[static_cast<std::size_t>(work.chunk)] += work.direction == Direction::forward ? 1 : -1;
      most = std::max(most, weigh(now));
    }
    RC_ASSERT(weigh(peak_by_chunk(shape, stage, weights)) == most);
  }
}

// ---- A small executor: a stage runs its list in order, one time unit per piece of a stage's model
// part (1/v per chunk); a piece needs its message, which the neighbour sent when it was done.

struct Message {
  std::int64_t chunk;
  std::int64_t microbatch;
};

class Executor {
 public:
  explicit Executor(const PipelineShape& shape)
      : shape_(shape), next_(stages()), clock_(stages(), 0) {}

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
    return in_order_ && std::all_of(next_.begin(), next_.end(),
                                    [&](std::int64_t n) { return n == slot_count(shape_); });
  }
  /// In units of one chunk, forward = backward = 1.
  std::int64_t makespan() const { return *std::max_element(clock_.begin(), clock_.end()); }

 private:
  struct Arrival {
    Message message;
    std::int64_t time;
  };

  std::size_t stages() const { return static_cast<std::size_t>(shape_.stages); }

  bool step(std::int64_t stage) {
    const auto s = static_cast<std::size_t>(stage);
    if (next_[s] == slot_count(shape_)) {
      return false;
    }
    const PipelineSlot work = slot(shape_, stage, next_[s]);
    const bool forward = work.direction == Direction::forward;
    const std::int64_t part = work.chunk * shape_.stages + stage;
    const std::int64_t last = shape_.stages * shape_.chunks - 1;
    std::int64_t ready = clock_[s];
    if (forward ? part > 0 : part < last) {
      auto& channel = channels_[{stage, work.direction}];
      if (channel.empty()) {
        return false;
      }
      const Arrival arrival = channel.front();
      channel.pop_front();
      in_order_ = in_order_ && arrival.message.chunk == work.chunk &&
                  arrival.message.microbatch == work.microbatch;
      ready = std::max(ready, arrival.time);
    }
    clock_[s] = ready + 1;
    if (forward ? part < last : part > 0) {
      const std::int64_t to = forward ? part + 1 : part - 1;
      channels_[{to % shape_.stages, work.direction}].push_back(
          {{to / shape_.stages, work.microbatch}, clock_[s]});
    }
    ++next_[s];
    return true;
  }

  PipelineShape shape_;
  std::vector<std::int64_t> next_;
  std::vector<std::int64_t> clock_;
  std::map<std::pair<std::int64_t, Direction>, std::deque<Arrival>> channels_;
  bool in_order_ = true;
};

RC_GTEST_PROP(Schedule, NeverDeadlocksAndMessagesArriveInTheOrderWanted, ()) {
  const PipelineShape shape = *any_shape();
  RC_ASSERT(Executor(shape).run());
}

RC_GTEST_PROP(Schedule, BubbleIsPMinusOneOverVM, ()) {
  // Narayanan et al., SC'21, section 2.2: bubble / ideal = (p - 1) / (v m), with ideal 2 m v chunk
  // times and so a makespan of 2 m v + 2 (p - 1).
  const PipelineShape shape = *any_shape();
  Executor executor(shape);
  RC_ASSERT(executor.run());
  RC_ASSERT(executor.makespan() == 2 * shape.microbatches * shape.chunks + 2 * (shape.stages - 1));
}

}  // namespace
}  // namespace orrery
