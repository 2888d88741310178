// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "pipeline_executor.h"
#include "workload/plan/schedule_row.h"

namespace orrery::plan {
namespace {

using testing::all_slots;
using testing::Costs;
using testing::most_in_flight;
using testing::PipelineExecutor;
using testing::Work;
using testing::works_of;

rc::Gen<PipelineShape> any_shape() {
  return rc::gen::exec([] {
    PipelineShape shape;
    shape.schedule =
        *rc::gen::element(Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved,
                          Schedule::zb_h1, Schedule::zb_v, Schedule::dualpipe,
                          *value_of<Schedule>("v-half"), *value_of<Schedule>("v-min"));
    const bool interleaved = shape.schedule == Schedule::interleaved;
    const bool dualpipe = shape.schedule == Schedule::dualpipe;
    const bool two = row_of(shape.schedule).folds;
    const bool one_stage =
        shape.schedule == Schedule::gpipe || shape.schedule == Schedule::one_f_one_b;
    shape.pairs =
        (interleaved || shape.schedule == Schedule::one_f_one_b) && *rc::gen::arbitrary<bool>();
    shape.stages = *rc::gen::inRange<std::int64_t>(one_stage ? 1 : 2, 9);
    shape.stages += dualpipe ? shape.stages % 2 : 0;
    shape.chunks = interleaved ? *rc::gen::inRange<std::int64_t>(2, 6) : two ? 2 : 1;
    shape.microbatches = interleaved ? *rc::gen::inRange<std::int64_t>(1, 6) * shape.stages
                                     : *rc::gen::inRange<std::int64_t>(1, 25);
    return shape;
  });
}

RC_GTEST_PROP(Schedule, EveryPieceRunsForwardThenInputThenWeightGradientsOnce, ()) {
  const PipelineShape shape = *any_shape();
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    std::map<std::pair<std::int64_t, std::int64_t>, int> done;  // kinds of work, in order
    for (const PipelineSlot& slot : all_slots(shape, stage)) {
      for (const Work& work : works_of(slot)) {
        RC_ASSERT(work.chunk >= 0 && work.chunk < shape.chunks);
        RC_ASSERT(work.microbatch >= 0 && work.microbatch < shape.microbatches);
        RC_ASSERT((done[{work.chunk, work.microbatch}]++) == static_cast<int>(work.kind));
      }
    }
    RC_ASSERT(std::ssize(done) == shape.microbatches * shape.chunks);
    RC_ASSERT(std::all_of(done.begin(), done.end(), [](const auto& d) { return d.second == 3; }));
  }
}

RC_GTEST_PROP(Schedule, GradientsOfAChunkTakeMicrobatchesInOrder, ()) {
  // So microbatch m-1 is the last of every chunk, whose reductions may begin.
  const PipelineShape shape = *any_shape();
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    std::map<std::pair<int, std::int64_t>, std::int64_t> next;
    for (const PipelineSlot& slot : all_slots(shape, stage)) {
      for (const Work& work : works_of(slot)) {
        RC_ASSERT((next[{static_cast<int>(work.kind), work.chunk}]++) == work.microbatch);
      }
    }
  }
}

RC_GTEST_PROP(Schedule, PairsHoldNeitherAFirstForwardNorALastBackward, ()) {
  const PipelineShape shape = *any_shape();
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    for (const PipelineSlot& slot : all_slots(shape, stage)) {
      if (slot.direction == Direction::forward_backward) {
        RC_ASSERT(slot.microbatch > 0);
        RC_ASSERT(slot.backward_microbatch + 1 < shape.microbatches);
      }
    }
  }
}

TEST(Schedule, OneForwardOneBackwardHoldsAtMostTheStagesBehind) {
  // p = 4, m = 3: min(p - s, m).
  const PipelineShape shape{Schedule::one_f_one_b, 4, 1, 3};
  EXPECT_EQ(most_in_flight(shape, 0), 3);
  EXPECT_EQ(most_in_flight(shape, 1), 3);
  EXPECT_EQ(most_in_flight(shape, 2), 2);
  EXPECT_EQ(most_in_flight(shape, 3), 1);
}

TEST(Schedule, InterleavedFirstStageHoldsOnePlusPMinusOneOverPVMore) {
  // Korthikanti et al. 2022, section 4.2.3: p (1 + (p-1)/(p v)) microbatches; in chunks, times v:
  // p v + p - 1. p = 8, v = 3: 31.
  const PipelineShape shape{Schedule::interleaved, 8, 3, 64};
  EXPECT_EQ(most_in_flight(shape, 0), 31);
}

RC_GTEST_PROP(Schedule, AfterAPeriodTheSameWorkComesBackForLaterMicrobatches, ()) {
  const PipelineShape shape = *any_shape();
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    const StageSchedule schedule(shape, stage);
    const std::optional<graph::Period> period = schedule.period();
    if (!period) {
      continue;
    }
    RC_ASSERT(period->first >= 0 && period->first <= period->end);
    RC_ASSERT(period->end <= schedule.size());
    RC_ASSERT(period->length > 0 && period->microbatches > 0);
    for (std::int64_t i = period->first; i + period->length < period->end; ++i) {
      PipelineSlot later = schedule[i + period->length];
      later.microbatch -= period->microbatches;
      later.backward_microbatch -=
          later.direction == Direction::forward_backward ? period->microbatches : 0;
      RC_ASSERT(later == schedule[i]);
    }
  }
}

RC_GTEST_PROP(Schedule, APeriodIsOfWholeMicrobatches, ()) {
  // Whoever leaves periods out then leaves out both ends of every message. gpipe's are forwards
  // alone, on every stage.
  const PipelineShape shape = *any_shape();
  RC_PRE(shape.schedule != Schedule::gpipe);
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    const StageSchedule schedule(shape, stage);
    const std::optional<graph::Period> period = schedule.period();
    if (!period || period->first + period->length > period->end) {
      continue;
    }
    std::map<std::pair<int, std::int64_t>, std::int64_t> pieces;  // by kind and chunk
    for (std::int64_t i = period->first; i < period->first + period->length; ++i) {
      for (const Work& work : works_of(schedule[i])) {
        ++pieces[{static_cast<int>(work.kind), work.chunk}];
      }
    }
    RC_ASSERT(std::ssize(pieces) == 3 * shape.chunks);
    for (const auto& [kind, count] : pieces) {
      RC_ASSERT(count == period->microbatches);
    }
  }
}

TEST(Schedule, ThePeriodOfZbH1IsItsSteadyRunHoweverShort) {
  // p = 8, m = 8, stage 4: 3 forwards, 4 times (F, B), once (F, B, W), 3 times (B, W), 4 W. Once
  // (F, B) was taken for a period here and (B, W) on stage 3, and messages went missing.
  EXPECT_EQ(StageSchedule({Schedule::zb_h1, 8, 1, 8}, 4).period(),
            (graph::Period{.first = 11, .end = 14, .length = 3, .microbatches = 1}));
}

RC_GTEST_PROP(Schedule, MoreMicrobatchesAreMorePeriods, ()) {
  // gpipe: m forwards as well as m backwards. Else only the ends stay.
  PipelineShape shape = *any_shape();
  shape.microbatches += 8 * shape.stages;
  PipelineShape longer = shape;
  longer.microbatches += 6 * shape.stages;
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    const auto outside = [&](const PipelineShape& of) {
      const StageSchedule schedule(of, stage);
      const graph::Period period = schedule.period().value();
      RC_ASSERT(period.end - period.first >= 2 * period.length);
      return schedule.size() - (period.end - period.first);
    };
    const std::int64_t others =
        shape.schedule == Schedule::gpipe ? longer.microbatches - shape.microbatches : 0;
    RC_ASSERT(outside(longer) == outside(shape) + others);
  }
}

TEST(Schedule, PeriodOf1F1BIsAPairAndOfInterleavedARoundOfEveryChunk) {
  // p = 4, m = 10, stage 1: 2 forwards, 8 pairs, 2 backwards.
  EXPECT_EQ(StageSchedule({Schedule::one_f_one_b, 4, 1, 10}, 1).period(),
            (graph::Period{.first = 2, .end = 18, .length = 2, .microbatches = 1}));
  // p = 2, v = 3, m = 20, stage 0: warm-up 2 + 2 * 2 = 6 of 60; a round is p v = 6 pairs.
  EXPECT_EQ(StageSchedule({Schedule::interleaved, 2, 3, 20}, 0).period(),
            (graph::Period{.first = 6, .end = 114, .length = 12, .microbatches = 2}));
}

TEST(Schedule, InPairsAForwardRunsBesideTheBackwardBefore) {
  // One stage, m = 3: forward 0, (1, 0), (2, 1), backward 2; two microbatches in flight.
  const PipelineShape one{Schedule::one_f_one_b, 1, 1, 3, true};
  EXPECT_EQ(all_slots(one, 0), (std::vector<PipelineSlot>{{Direction::forward, 0, 0},
                                                          {Direction::forward_backward, 0, 1, 0, 0},
                                                          {Direction::forward_backward, 0, 2, 1, 0},
                                                          {Direction::backward, 0, 2}}));
  // p = 2, v = 2, m = 4, stage 1: warm-up (v - 1) p + 1 = 3 of 8, 5 pairs, 3 backwards.
  const auto slots = all_slots({Schedule::interleaved, 2, 2, 4, true}, 1);
  ASSERT_EQ(slots.size(), 11U);
  EXPECT_EQ(slots[3], (PipelineSlot{Direction::forward_backward, 1, 1, 0, 1}));
  EXPECT_EQ(slots[5], (PipelineSlot{Direction::forward_backward, 0, 3, 0, 0}));
  EXPECT_EQ(slots[8], (PipelineSlot{Direction::backward, 1, 3}));
}

RC_GTEST_PROP(Schedule, NeverDeadlocksAndMessagesArriveInTheOrderWanted, ()) {
  const PipelineShape shape = *any_shape();
  RC_ASSERT(PipelineExecutor(shape).run());
}

RC_GTEST_PROP(Schedule, BubbleIsPMinusOneOverVM, ()) {
  // Narayanan et al., SC'21, section 2.2: bubble / ideal = (p - 1) / (v m), with ideal 2 m v chunk
  // times and so a makespan of 2 m v + 2 (p - 1).
  const PipelineShape shape = *any_shape();
  RC_PRE(!splits_backward(shape.schedule));
  PipelineExecutor executor(shape);
  RC_ASSERT(executor.run());
  RC_ASSERT(executor.makespan() == 2 * shape.microbatches * shape.chunks + 2 * (shape.stages - 1));
}

// ---- Schedules that split the backward. F, B, W: time of one stage's forward, input gradients and
// weight gradients of a microbatch.

/// Makespan less m (F + B + W) of every device.
std::int64_t bubble(const PipelineShape& shape, const Costs& costs) {
  PipelineExecutor executor(shape, costs);
  RC_ASSERT(executor.run());
  return executor.makespan() - shape.chunks * shape.microbatches * costs.all();
}

Costs any_costs() {
  return {*rc::gen::inRange<std::int64_t>(1, 20), *rc::gen::inRange<std::int64_t>(1, 20),
          *rc::gen::inRange<std::int64_t>(0, 20)};
}

RC_GTEST_PROP(ZeroBubble, BubbleOf1F1BIsPMinusOneTimesForwardAndBackward, ()) {
  const std::int64_t p = *rc::gen::inRange<std::int64_t>(1, 9);
  const std::int64_t m = *rc::gen::inRange<std::int64_t>(1, 30);
  const Costs costs = any_costs();
  RC_ASSERT(bubble({Schedule::one_f_one_b, p, 1, m}, costs) == (p - 1) * costs.all());
}

RC_GTEST_PROP(ZeroBubble, H1SavesTwoWeightGradientsPerStage, ()) {
  // Qi et al. 2023, table 2: (p-1) (F + B - W), where B does not include W; with B' = B + W that is
  // (p-1) (F + B' - 2W). W fills no more than the wait for F or for B, so at least (p-1) times the
  // longer of them stays.
  const std::int64_t p = *rc::gen::inRange<std::int64_t>(2, 9);
  const std::int64_t m = p + *rc::gen::inRange<std::int64_t>(0, 30);
  const Costs costs = any_costs();
  const auto& [forward, input, weight] = costs;
  RC_ASSERT(bubble({Schedule::zb_h1, p, 1, m}, costs) ==
            (p - 1) * std::max({forward + input - weight, forward, input}));
}

TEST(ZeroBubble, H1HoldsPMicrobatchesOnEveryStage) {
  // 1F1B holds p - s; the delay of W by s microbatches makes it p everywhere, the most of 1F1B.
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(most_in_flight({Schedule::zb_h1, 4, 1, 10}, stage), 4);
    EXPECT_EQ(most_in_flight({Schedule::zb_h1, 4, 1, 3}, stage), 3);
  }
}

TEST(ZeroBubble, H1OfThreeStagesByHand) {
  // p = 3, m = 3. Stage 0: no delay; stage 2: every W waits for two more B.
  using enum Direction;
  const auto order = [](std::int64_t stage) {
    std::vector<std::pair<Direction, std::int64_t>> result;
    for (const PipelineSlot& slot : all_slots({Schedule::zb_h1, 3, 1, 3}, stage)) {
      result.emplace_back(slot.direction, slot.microbatch);
    }
    return result;
  };
  using Order = std::vector<std::pair<Direction, std::int64_t>>;
  EXPECT_EQ(order(0), (Order{{forward, 0},
                             {forward, 1},
                             {forward, 2},
                             {input_gradient, 0},
                             {weight_gradient, 0},
                             {input_gradient, 1},
                             {weight_gradient, 1},
                             {input_gradient, 2},
                             {weight_gradient, 2}}));
  EXPECT_EQ(order(2), (Order{{forward, 0},
                             {input_gradient, 0},
                             {forward, 1},
                             {input_gradient, 1},
                             {forward, 2},
                             {input_gradient, 2},
                             {weight_gradient, 0},
                             {weight_gradient, 1},
                             {weight_gradient, 2}}));
}

RC_GTEST_PROP(ZeroBubble, VOfEqualPassesWaitsOnlyUntilTheLastDeviceHasWork, ()) {
  // F = B = W = 1 per chunk: p - 1 forwards of a chunk until device p-1 has its first microbatch;
  // then no device waits.
  const std::int64_t p = *rc::gen::inRange<std::int64_t>(2, 9);
  const std::int64_t m = 2 * p - 1 + *rc::gen::inRange<std::int64_t>(0, 20);
  const std::int64_t each = *rc::gen::inRange<std::int64_t>(1, 9);
  RC_ASSERT(bubble({Schedule::zb_v, p, 2, m}, {each, each, each}) == (p - 1) * each);
}

RC_GTEST_PROP(ZeroBubble, VIsNeverWorseThanH1ThanOneFOneB, ()) {
  // While W is not longer than F and B, as in every dense model.
  const std::int64_t p = *rc::gen::inRange<std::int64_t>(2, 9);
  const std::int64_t m = 2 * p + *rc::gen::inRange<std::int64_t>(0, 20);
  Costs half = any_costs();  // of one of zb-v's two chunks
  half.weight_gradient = std::min({half.forward, half.input_gradient, half.weight_gradient});
  const Costs whole{2 * half.forward, 2 * half.input_gradient, 2 * half.weight_gradient};
  const std::int64_t v = bubble({Schedule::zb_v, p, 2, m}, half);
  const std::int64_t h1 = bubble({Schedule::zb_h1, p, 1, m}, whole);
  RC_ASSERT(v <= h1);
  RC_ASSERT(h1 <= bubble({Schedule::one_f_one_b, p, 1, m}, whole));
}

TEST(ZeroBubble, VHoldsPWholeMicrobatches) {
  // 2p chunks, each half of the device's layers: as the first stage of 1F1B.
  for (std::int64_t stage = 0; stage < 5; ++stage) {
    EXPECT_EQ(most_in_flight({Schedule::zb_v, 5, 2, 20}, stage), 10);
  }
}

/// Schedules that no code names.
PipelineShape v_shape(std::string_view name, std::int64_t stages, std::int64_t microbatches) {
  return {*value_of<Schedule>(name), stages, 2, microbatches};
}

double most_chunks_in_flight(const PipelineShape& shape) {
  double most = 0;
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    most = std::max(most, most_in_flight(shape, stage));
  }
  return most;
}

RC_GTEST_PROP(ControllableMemory, HalfAndMinHoldTheMicrobatchesOfTheirPaper, ()) {
  // Qi et al. 2024: (p+2)/2 and (p+4)/3 whole microbatches, rounded down, where 1F1B holds p; two
  // chunks each. Bubbles of about 1/2 and 2/3 of 1F1B's (p-1) (F + B + W), here 6 (p-1) passes, at
  // F = B = W: squeezed ends take four passes (one where p is odd) and up to three off.
  const std::int64_t p = *rc::gen::inRange<std::int64_t>(3, 17);
  const std::int64_t m = p + 1 + *rc::gen::inRange<std::int64_t>(0, 20);
  RC_ASSERT(most_chunks_in_flight(v_shape("v-half", p, m)) == 2 * ((p + 2) / 2));
  RC_ASSERT(most_chunks_in_flight(v_shape("v-min", p, m)) == 2 * ((p + 4) / 3));
  RC_ASSERT(bubble(v_shape("v-half", p, m), {1, 1, 1}) == 3 * (p - 1) - (p % 2 == 0 ? 4 : 1));
  RC_ASSERT(bubble(v_shape("v-min", p, m), {1, 1, 1}) == 4 * (p - 1) - (p + 2) % 3 - 1);
}

TEST(ControllableMemory, MinOfTwoStagesByHand) {
  // p = 2, stage 0: F0 . . F1 B1 W1 F0 B0 W0 F1 B1 W1 F0 B0 W0 F1 B1 W1 . B0 W0. Four chunks may be
  // held: both later F0 move to slots 1 and 2, the second F1 into slot 6 that one of them leaves.
  std::string order;
  for (const PipelineSlot& slot : all_slots(v_shape("v-min", 2, 3), 0)) {
    const bool forward = slot.direction == Direction::forward;
    order += forward ? 'F' : slot.direction == Direction::input_gradient ? 'B' : 'W';
    order += std::to_string(slot.chunk);
  }
  EXPECT_EQ(order, "F0F0F0F1B1W1F1B0W0B1W1B0W0F1B1W1B0W0");
}

TEST(ControllableMemory, UnequalPassesTakeWhatThePublishedOrdersTake) {
  // p = 8, m = 32, chunks of F, B, W = 8, 9, 6: the order laid out by hand for the paper's building
  // block gives so much when its passes run as early as they can.
  const Costs costs{8, 9, 6};
  EXPECT_EQ(bubble(v_shape("v-half", 8, 32), costs), 228);
  EXPECT_EQ(bubble(v_shape("v-min", 8, 32), costs), 464);
}

RC_GTEST_PROP(DualPipe, BubbleIsThatOfItsPaper, ()) {
  // DeepSeek-AI 2024, table 2: (p/2 - 1) (F&B + B' - 3W), B' = B + W, here with F&B = F + B + W;
  // drawn there for F = B >= W.
  const std::int64_t p = 2 * *rc::gen::inRange<std::int64_t>(1, 6);
  const std::int64_t m = 2 * p + 2 * *rc::gen::inRange<std::int64_t>(0, 10);
  const std::int64_t forward = *rc::gen::inRange<std::int64_t>(1, 20);
  const std::int64_t weight = *rc::gen::inRange<std::int64_t>(0, forward + 1);
  const Costs costs{forward, forward, weight};
  const std::int64_t whole = forward + weight;  // B'
  RC_ASSERT(bubble({Schedule::dualpipe, p, 2, m / 2}, costs) ==
            (p / 2 - 1) * (forward + whole + whole - 3 * weight));
}

TEST(DualPipe, HoldsPPlusOneMicrobatches) {
  // DeepSeek-AI 2024, table 2.
  for (std::int64_t stage = 0; stage < 8; ++stage) {
    EXPECT_EQ(most_in_flight({Schedule::dualpipe, 8, 2, 10}, stage), 9);
  }
}

TEST(PartOf, EveryScheduleCoversTheModel) {
  // p = 4. interleaved by c p + s; zb-v down and back; dualpipe down, and the mirror image.
  const auto parts = [](Schedule schedule, std::int64_t chunks) {
    std::vector<std::int64_t> result;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      for (std::int64_t stage = 0; stage < 4; ++stage) {
        result.push_back(part_of({schedule, 4, chunks, 8}, stage, chunk));
      }
    }
    return result;
  };
  using Parts = std::vector<std::int64_t>;
  EXPECT_EQ(parts(Schedule::zb_h1, 1), (Parts{0, 1, 2, 3}));
  EXPECT_EQ(parts(Schedule::interleaved, 2), (Parts{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(parts(Schedule::zb_v, 2), (Parts{0, 1, 2, 3, 7, 6, 5, 4}));
  EXPECT_EQ(parts(Schedule::dualpipe, 2), (Parts{0, 1, 2, 3, 3, 2, 1, 0}));
}

}  // namespace
}  // namespace orrery::plan
