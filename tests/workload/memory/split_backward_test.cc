// SPDX-License-Identifier: Apache-2.0
// Schedules that split the backward: what their stages hold.
#include <gtest/gtest.h>

#include <vector>

#include "../plan/cases.h"
#include "workload/memory/footprint.h"

namespace orrery {
namespace {

using cases::small_gpt;
using cases::small_llama;

Plan zero_bubble(Schedule schedule, std::int64_t pp, std::int64_t microbatches) {
  return {.pp = pp,
          .schedule = schedule,
          .chunks = schedule == Schedule::zb_v ? 2 : 1,
          .global_batch = microbatches};
}

TEST(MemoryOfSplitBackward, VeeAndDualPipeHoldOneTiedEmbedding) {
  // First and last part of the model are on one device: no second table.
  for (const Schedule schedule : {Schedule::zb_v, Schedule::dualpipe}) {
    const std::int64_t layers = schedule == Schedule::dualpipe ? 4 : 2;
    const auto memory = memory_footprint(small_gpt(4), zero_bubble(schedule, 2, 8)).value();
    EXPECT_EQ(memory.front()[MemoryCategory::parameters],
              2_B * (cases::kEmbedding + cases::kNorm + layers * cases::kLayer));
  }
}

TEST(MemoryOfSplitBackward, MicrobatchesInFlightAreThoseOfThePapers) {
  // p = 4: p of ZB-H1 and ZB-V on every stage, p + 1 of DualPipe; m or fewer when m < p.
  const auto in_flight = [](Schedule schedule, std::int64_t microbatches) {
    std::vector<double> result;
    const auto stages =
        memory_footprint(small_gpt(8), zero_bubble(schedule, 4, microbatches)).value();
    for (const StageMemory& stage : stages) {
      result.push_back(stage.microbatches_in_flight);
    }
    return result;
  };
  EXPECT_EQ(in_flight(Schedule::zb_h1, 20), std::vector<double>(4, 4));
  EXPECT_EQ(in_flight(Schedule::zb_h1, 3), std::vector<double>(4, 3));
  EXPECT_EQ(in_flight(Schedule::zb_v, 20), std::vector<double>(4, 4));
  EXPECT_EQ(in_flight(Schedule::dualpipe, 20), std::vector<double>(4, 5));
}

TEST(MemoryOfSplitBackward, PeaksDoNotGrowWithMicrobatches) {
  for (const Schedule schedule : {Schedule::zb_h1, Schedule::zb_v, Schedule::dualpipe}) {
    const auto few = memory_footprint(small_gpt(8), zero_bubble(schedule, 4, 16)).value();
    const auto many = memory_footprint(small_gpt(8), zero_bubble(schedule, 4, 100)).value();
    for (std::size_t stage = 0; stage < 4; ++stage) {
      EXPECT_EQ(few[stage].total(), many[stage].total());
    }
  }
}

TEST(MemoryOfSplitBackward, H1TakesNoMoreThanTheFirstStageOf1F1B) {
  // Its last stage holds p microbatches too, but all but one only what weight gradients need.
  const auto activations = [](Schedule schedule, std::size_t stage) {
    return memory_footprint(small_llama(12), zero_bubble(schedule, 4, 16))
        .value()[stage]
        .highest[MemoryCategory::activations];
  };
  for (const std::size_t stage : {1, 2}) {
    EXPECT_LE(activations(Schedule::zb_h1, stage), activations(Schedule::one_f_one_b, 0));
    EXPECT_GT(activations(Schedule::zb_h1, stage), activations(Schedule::one_f_one_b, stage));
  }
}

TEST(MemoryOfDualPipe, EveryStageIsThereTwice) {
  const auto states = [](Schedule schedule) {
    return memory_footprint(small_llama(8), zero_bubble(schedule, 4, 16)).value();
  };
  const auto once = states(Schedule::one_f_one_b);
  const auto twice = states(Schedule::dualpipe);
  for (std::size_t stage = 0; stage < 4; ++stage) {
    for (const MemoryCategory category : {MemoryCategory::parameters, MemoryCategory::gradients}) {
      EXPECT_EQ(twice[stage][category], once[stage][category] + once[3 - stage][category]);
    }
  }
}

}  // namespace
}  // namespace orrery
