// SPDX-License-Identifier: Apache-2.0
// Schedules that split the backward: what their stages hold.
#include <gtest/gtest.h>

#include <vector>

#include "../plan/cases.h"
#include "workload/memory/footprint.h"

namespace orrery::footprint {
namespace {

using cases::small_gpt;
using cases::small_llama;

plan::Plan zero_bubble(plan::Schedule schedule, std::int64_t pp, std::int64_t microbatches) {
  return {.pp = pp,
          .schedule = schedule,
          .chunks = schedule == plan::Schedule::zb_v ? 2 : 1,
          .global_batch = microbatches};
}

TEST(MemoryOfSplitBackward, VeeAndDualPipeHoldOneTiedEmbedding) {
  // First and last part of the model are on one device: no second table.
  for (const plan::Schedule schedule : {plan::Schedule::zb_v, plan::Schedule::dualpipe}) {
    const std::int64_t layers = schedule == plan::Schedule::dualpipe ? 4 : 2;
    const auto memory = memory_footprint(small_gpt(4), zero_bubble(schedule, 2, 8)).value();
    EXPECT_EQ(memory.front()[plan::MemoryCategory::parameters],
              2_B * (cases::kEmbedding + cases::kNorm + layers * cases::kLayer));
  }
}

TEST(MemoryOfSplitBackward, MicrobatchesInFlightAreThoseOfThePapers) {
  // p = 4: p of ZB-H1 and ZB-V on every stage, p + 1 of DualPipe; m or fewer when m < p.
  const auto in_flight = [](plan::Schedule schedule, std::int64_t microbatches) {
    std::vector<double> result;
    const auto stages =
        memory_footprint(small_gpt(8), zero_bubble(schedule, 4, microbatches)).value();
    for (const StageMemory& stage : stages) {
      result.push_back(stage.microbatches_in_flight);
    }
    return result;
  };
  EXPECT_EQ(in_flight(plan::Schedule::zb_h1, 20), std::vector<double>(4, 4));
  EXPECT_EQ(in_flight(plan::Schedule::zb_h1, 3), std::vector<double>(4, 3));
  EXPECT_EQ(in_flight(plan::Schedule::zb_v, 20), std::vector<double>(4, 4));
  EXPECT_EQ(in_flight(plan::Schedule::dualpipe, 20), std::vector<double>(4, 5));
}

TEST(MemoryOfSplitBackward, PeaksDoNotGrowWithMicrobatches) {
  for (const plan::Schedule schedule :
       {plan::Schedule::zb_h1, plan::Schedule::zb_v, plan::Schedule::dualpipe}) {
    const auto few = memory_footprint(small_gpt(8), zero_bubble(schedule, 4, 16)).value();
    const auto many = memory_footprint(small_gpt(8), zero_bubble(schedule, 4, 100)).value();
    for (std::size_t stage = 0; stage < 4; ++stage) {
      EXPECT_EQ(few[stage].total(), many[stage].total());
    }
  }
}

TEST(MemoryOfSplitBackward, H1TakesNoMoreThanTheFirstStageOf1F1B) {
  // Its last stage holds p microbatches too, but all but one only what weight gradients need.
  const auto activations = [](plan::Schedule schedule, std::size_t stage) {
    return memory_footprint(small_llama(12), zero_bubble(schedule, 4, 16))
        .value()[stage]
        .highest[plan::MemoryCategory::activations];
  };
  for (const std::size_t stage : {1U, 2U}) {
    EXPECT_LE(activations(plan::Schedule::zb_h1, stage),
              activations(plan::Schedule::one_f_one_b, 0));
    EXPECT_GT(activations(plan::Schedule::zb_h1, stage),
              activations(plan::Schedule::one_f_one_b, stage));
  }
}

TEST(MemoryOfDualPipe, EveryStageIsThereTwice) {
  const auto states = [](plan::Schedule schedule) {
    return memory_footprint(small_llama(8), zero_bubble(schedule, 4, 16)).value();
  };
  const auto once = states(plan::Schedule::one_f_one_b);
  const auto twice = states(plan::Schedule::dualpipe);
  for (std::size_t stage = 0; stage < 4; ++stage) {
    for (const plan::MemoryCategory category :
         {plan::MemoryCategory::parameters, plan::MemoryCategory::gradients}) {
      EXPECT_EQ(twice[stage][category], once[stage][category] + once[3 - stage][category]);
    }
  }
}

}  // namespace
}  // namespace orrery::footprint
