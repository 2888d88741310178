// SPDX-License-Identifier: Apache-2.0
#include "estimate/schedule_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <vector>

namespace orrery::estimate {
namespace {

constexpr Time kForward = 300_us;
constexpr Time kBackward = 500_us;

ScheduleTimes uniform(plan::Schedule schedule, std::int64_t stages, std::int64_t chunks,
                      std::int64_t microbatches, const PieceTimes& piece) {
  ScheduleTimes times;
  times.shape = {
      .schedule = schedule, .stages = stages, .chunks = chunks, .microbatches = microbatches};
  times.pieces.assign(static_cast<std::size_t>(stages),
                      std::vector<PieceTimes>(static_cast<std::size_t>(chunks), piece));
  return times;
}

Time end_of(const ScheduleTimes& times) {
  Time end{0};
  for (const StageEnds& stage : run_schedule(times)) {
    end = std::max(end, stage.end);
  }
  return end;
}

/// (m + p - 1)(F + B): every stage is idle while the pipeline fills and drains (Narayanan et al.,
/// SC'21, section 2.2.1).
TEST(ScheduleRun, UniformStagesFillAndDrainOnce) {
  const PieceTimes piece{.forward = kForward, .backward = kBackward};
  for (const auto schedule : {plan::Schedule::one_f_one_b, plan::Schedule::gpipe}) {
    EXPECT_EQ(end_of(uniform(schedule, 4, 1, 16, piece)), (kForward + kBackward) * (16 + 3));
  }
}

/// m (F + B) + (p - 1)(F + B)/v with F and B of all v chunks of a stage (section 2.2.2).
TEST(ScheduleRun, ChunksShortenFillAndDrain) {
  const PieceTimes piece{.forward = kForward, .backward = kBackward};
  EXPECT_EQ(end_of(uniform(plan::Schedule::interleaved, 4, 3, 16, piece)),
            (kForward + kBackward) * (3 * 16 + 3));
}

/// ZB-H1 is idle for (p - 1)(F + B - W): with three equal pieces p - 1 of them (Qi et al. 2023,
/// table 2).
TEST(ScheduleRun, WeightGradientsFillTheDrain) {
  const PieceTimes piece{.forward = 1_ms, .backward = 1_ms, .weights = 1_ms};
  EXPECT_EQ(end_of(uniform(plan::Schedule::zb_h1, 4, 1, 16, piece)), 1_ms * (3 * 16 + 3));
}

/// One microbatch on two stages crosses to the second and back.
TEST(ScheduleRun, AMessageIsOnTheWayOfItsMicrobatch) {
  const PieceTimes piece{
      .forward = kForward, .backward = kBackward, .activations = 70_us, .gradients = 40_us};
  EXPECT_EQ(end_of(uniform(plan::Schedule::one_f_one_b, 2, 1, 1, piece)),
            (kForward + kBackward) * 2 + 70_us + 40_us);
}

/// gpipe, two microbatches: the first stage sends at F and waits until F + M, then computes the
/// second to 2F + M, which arrives at 2F + 2M, when the second stage, free since 2F + M, takes it:
/// 3F + 2M. Without waiting the second message arrives at max(2F, F + M) + M = 2F + M.
TEST(ScheduleRun, ComputeMayWaitForItsOwnMessages) {
  const PieceTimes piece{.forward = kForward, .activations = 70_us};
  ScheduleTimes times = uniform(plan::Schedule::gpipe, 2, 1, 2, piece);
  EXPECT_EQ(end_of(times), kForward * 3 + 70_us);
  times.waits_for_sends = true;
  EXPECT_EQ(end_of(times), kForward * 3 + 140_us);
}

/// A stage's messages follow one another: of gpipe's two, each longer than a forward, the second
/// arrives at F + 2M.
TEST(ScheduleRun, MessagesOfAStageAreInOrder) {
  const PieceTimes piece{.forward = kForward, .activations = kForward * 4};
  EXPECT_EQ(end_of(uniform(plan::Schedule::gpipe, 2, 1, 2, piece)),
            kForward + kForward * 8 + kForward);
}

/// Ends as a fixed point: every piece begins at 0, then no earlier than what it waits for has
/// ended, until nothing moves.
class Reference {
 public:
  explicit Reference(const ScheduleTimes& times) : times_(times) {
    for (std::int64_t stage = 0; stage < times.shape.stages; ++stage) {
      const plan::StageSchedule schedule(times.shape, stage);
      for (std::int64_t i = 0; i < schedule.size(); ++i) {
        slots_.push_back({stage, schedule[i]});
      }
    }
    ends_.assign(slots_.size(), Time(0));
  }

  Time end() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < slots_.size(); ++i) {
        const Time end = begin(i) + time(i);
        moved = moved || end != ends_[i];
        ends_[i] = end;
        tell(i);
      }
    }
    return *std::max_element(ends_.begin(), ends_.end());
  }

 private:
  using Key = std::tuple<bool, std::int64_t, std::int64_t, std::int64_t>;
  struct Placed {
    std::int64_t stage = 0;
    plan::PipelineSlot slot;
  };

  bool has(std::size_t i, bool forward) const {
    const auto direction = slots_[i].slot.direction;
    return direction == plan::Direction::forward_backward ||
           (forward ? direction == plan::Direction::forward
                    : direction == plan::Direction::backward ||
                          direction == plan::Direction::input_gradient);
  }
  /// The chunk, of dualpipe, tells copies of a part apart.
  Key key(std::size_t i, bool forward, std::int64_t step) const {
    const plan::PipelineSlot& slot = slots_[i].slot;
    const bool pair = slot.direction == plan::Direction::forward_backward;
    const std::int64_t chunk = !forward && pair ? slot.backward_chunk : slot.chunk;
    const std::int64_t microbatch = !forward && pair ? slot.backward_microbatch : slot.microbatch;
    const bool twice = times_.shape.schedule == plan::Schedule::dualpipe;
    return {forward, twice ? chunk : 0, plan::part_of(times_.shape, slots_[i].stage, chunk) + step,
            microbatch};
  }
  Time begin(std::size_t i) const {
    Time begin = i > 0 && slots_[i - 1].stage == slots_[i].stage ? ends_[i - 1] : Time(0);
    for (const bool forward : {true, false}) {
      const auto known = has(i, forward) ? ready_.find(key(i, forward, 0)) : ready_.end();
      begin = known == ready_.end() ? begin : std::max(begin, known->second);
    }
    return begin;
  }
  Time time(std::size_t i) const {
    const auto& [stage, slot] = slots_[i];
    const auto& pieces = times_.pieces[static_cast<std::size_t>(stage)];
    const PieceTimes& own = pieces[static_cast<std::size_t>(slot.chunk)];
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
        return own.paired_forward +
               pieces[static_cast<std::size_t>(slot.backward_chunk)].paired_backward;
    }
    return Time(0);
  }
  void tell(std::size_t i) {
    for (const bool forward : {true, false}) {
      if (has(i, forward)) {
        ready_[key(i, forward, forward ? 1 : -1)] = ends_[i];
      }
    }
  }

  const ScheduleTimes& times_;
  std::vector<Placed> slots_;
  std::vector<Time> ends_;
  std::map<Key, Time> ready_;
};

TEST(ScheduleRun, IsTheFixedPointOfWhatWaitsForWhat) {
  std::mt19937_64 random(7);
  for (const auto& [schedule, chunks, pairs] : {std::tuple(plan::Schedule::gpipe, 1, false),
                                                {plan::Schedule::one_f_one_b, 1, false},
                                                {plan::Schedule::one_f_one_b, 1, true},
                                                {plan::Schedule::interleaved, 3, false},
                                                {plan::Schedule::interleaved, 2, true},
                                                {plan::Schedule::zb_h1, 1, false},
                                                {plan::Schedule::zb_v, 2, false},
                                                {plan::Schedule::dualpipe, 2, false}}) {
    ScheduleTimes times = uniform(schedule, 4, chunks, 12, {});
    times.shape.pairs = pairs;
    for (std::vector<PieceTimes>& stage : times.pieces) {
      for (PieceTimes& piece : stage) {
        for (const auto member : {&PieceTimes::forward, &PieceTimes::backward, &PieceTimes::weights,
                                  &PieceTimes::paired_forward, &PieceTimes::paired_backward}) {
          piece.*member = Time(static_cast<std::int64_t>(1 + random() % 1000));
        }
      }
    }
    EXPECT_EQ(end_of(times), Reference(times).end()) << name_of(schedule) << " " << pairs;
  }
}

}  // namespace
}  // namespace orrery::estimate
