// SPDX-License-Identifier: Apache-2.0
#include "estimate/lone_passes.h"

#include <gtest/gtest.h>

#include <vector>

#include "workload/plan/schedule_row.h"

namespace orrery::estimate {
namespace {

using Counts = std::vector<std::int64_t>;

TEST(LonePasses, InPairsTheWarmUpIsAlone) {
  // 1F1B in pairs, 4 stages, 8 microbatches: stage 1 has 2 (4-1-1) + 1 = 5 forwards before its
  // first pair and 5 backwards after its last; 1F1B has all 8 of both.
  plan::PipelineShape shape{
      .schedule = plan::Schedule::one_f_one_b, .stages = 4, .chunks = 1, .microbatches = 8};
  EXPECT_EQ(lone_passes(shape, 1).forwards, Counts{8});
  shape.pairs = true;
  EXPECT_EQ(lone_passes(shape, 1).forwards, Counts{5});
  EXPECT_EQ(lone_passes(shape, 1).backwards, Counts{5});
}

TEST(LonePasses, AreThoseOfTheWholeList) {
  for (const plan::ScheduleRow& row : plan::schedules()) {
    for (const std::int64_t microbatches : {4, 8, 24}) {
      for (const bool pairs : {false, row.in_pairs && !row.both_ends}) {
        const plan::PipelineShape shape{.schedule = row.value,
                                        .stages = 4,
                                        .chunks = row.both_ends ? 2 : row.least_chunks,
                                        .microbatches = microbatches,
                                        .pairs = pairs};
        for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
          const plan::StageSchedule schedule(shape, stage);
          const Counts none(static_cast<std::size_t>(shape.chunks));
          LonePasses counted{.forwards = none, .backwards = none};
          for (std::int64_t i = 0; i < schedule.size(); ++i) {
            const plan::PipelineSlot slot = schedule[i];
            const auto chunk = static_cast<std::size_t>(slot.chunk);
            counted.forwards[chunk] += slot.direction == plan::Direction::forward ? 1 : 0;
            counted.backwards[chunk] += slot.direction == plan::Direction::backward ? 1 : 0;
          }
          const LonePasses lone = lone_passes(shape, stage);
          EXPECT_EQ(lone.forwards, counted.forwards) << row.name << ' ' << microbatches;
          EXPECT_EQ(lone.backwards, counted.backwards) << row.name << ' ' << microbatches;
        }
      }
    }
  }
}

}  // namespace
}  // namespace orrery::estimate
