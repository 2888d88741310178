// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/memory_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "../plan/cases.h"
#include "workload/memory/footprint.h"

namespace orrery::footprint {
namespace {

constexpr auto kActivationBytes = plan::MemoryCategory::activations;
constexpr auto kBuffers = plan::MemoryCategory::buffers;

double in_flight(plan::Schedule schedule, std::int64_t stages, std::int64_t stage) {
  plan::Plan plan{.pp = stages, .schedule = schedule, .global_batch = 6 * stages};
  return memory_of_checked(cases::small_gpt(2 * stages), plan)[static_cast<std::size_t>(stage)]
      .microbatches_in_flight;
}

TEST(MemoryTimelinePublished, MicrobatchesInFlight) {
  // DeepSeek-AI 2024 (DeepSeek-V3), table 2: 1F1B and ZB1P keep PP microbatches of a stage's
  // activations, DualPipe PP + 1. Qi et al. 2023: ZB-H1 and ZB-V as much as 1F1B.
  for (const std::int64_t stages : {2, 4, 8}) {
    EXPECT_EQ(in_flight(plan::Schedule::one_f_one_b, stages, 0), static_cast<double>(stages));
    EXPECT_EQ(in_flight(plan::Schedule::zb_h1, stages, 0), static_cast<double>(stages));
    EXPECT_EQ(in_flight(plan::Schedule::zb_v, stages, 0), static_cast<double>(stages));
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      EXPECT_LE(in_flight(plan::Schedule::dualpipe, stages, stage),
                static_cast<double>(stages + 1));
    }
    EXPECT_EQ(in_flight(plan::Schedule::dualpipe, stages, 0), static_cast<double>(stages + 1));
  }
}

TEST(MemoryTimelinePublished, DualPipeHoldsParametersTwice) {
  // DeepSeek-AI 2024, table 2: 2x parameters. In all stages together: every layer twice.
  const auto parameters = [](plan::Schedule schedule) {
    plan::Plan plan{.pp = 4, .schedule = schedule, .global_batch = 16};
    Bytes sum{0};
    for (const StageMemory& stage : memory_of_checked(cases::small_llama(8), plan)) {
      sum += stage[plan::MemoryCategory::parameters];
    }
    return sum;
  };
  EXPECT_EQ(parameters(plan::Schedule::dualpipe), 2 * parameters(plan::Schedule::one_f_one_b));
  EXPECT_EQ(parameters(plan::Schedule::zb_v), parameters(plan::Schedule::one_f_one_b));
}

/// One stage with an embedding, two layers and a head; bytes that are easy to add.
struct ByHand {
  BlockMemories model;
  std::vector<StageChunk> chunks{{{plan::kEmbeddingBlock, 2, 2, plan::kHeadBlock}, 0}};
  plan::Plan plan{.global_batch = 2};

  ByHand() {
    model.blocks.assign(3, {});
    model.blocks[plan::kEmbeddingBlock] = {.parameters = 10, .kept = 1_B};
    model.blocks[plan::kHeadBlock] = {
        .parameters = 10, .kept = 2_B, .logits = 40_B, .logits_work = 20_B};
    model.blocks[2] = {.parameters = 100,
                       .kept = 30_B,
                       .recomputed = 70_B,
                       .forward_work = 5_B,
                       .backward_work = 9_B};
    model.plain = model.blocks;
  }
  MemoryTimeline timeline() const {
    return memory_timeline(model, plan, 0, chunks, {.points = 99});
  }
};

TEST(MemoryTimeline, NamesTheFirstFullestMoment) {
  // State 18 x 220 = 3960. Backward of the second layer: kept 1 + 30 + 30 + recomputed 70 + work 9
  // = 140; of the head, logits included: 63 + 40 + 20 = 123; forward of the head the same.
  const MemoryTimeline timeline = ByHand().timeline();
  EXPECT_EQ(timeline.peak.total(), Bytes(3960 + 140));
  EXPECT_EQ(to_string(timeline.moment, false), "backward of microbatch 0, layer 1");
  EXPECT_EQ(timeline.peak[kActivationBytes], 61_B);
  EXPECT_EQ(timeline.peak[kBuffers], 79_B);
  EXPECT_EQ(timeline.highest[plan::MemoryCategory::logits], 60_B);
  ASSERT_EQ(timeline.points.size(), 5);  // two microbatches forward and backward, optimizer
  EXPECT_EQ(timeline.points[0].bytes, Bytes(3960 + 123));
  EXPECT_EQ(timeline.points[1].bytes, Bytes(3960 + 140));
  EXPECT_EQ(timeline.points[4].bytes, Bytes(3960));
}

TEST(MemoryTimeline, APairGoesLayerByLayer) {
  // DualPipe of 4 stages, 3 layers of 30 in each chunk. Beside each other a forward keeps another
  // layer when the backward frees one: 4 microbatches and a layer; else 5 microbatches.
  ByHand by_hand;
  by_hand.chunks = {{{2, 2, 2}, 0}, {{2, 2, 2}, 3}};
  by_hand.plan = {.pp = 4, .schedule = plan::Schedule::dualpipe, .global_batch = 24};
  EXPECT_EQ(by_hand.timeline().highest[kActivationBytes], Bytes(5 * 3 * 30));
  by_hand.plan.overlap_ep = plan::OverlapExperts::shared;
  const MemoryTimeline timeline = by_hand.timeline();
  EXPECT_EQ(timeline.highest[kActivationBytes], Bytes((4 * 3 + 1) * 30));
  EXPECT_EQ(timeline.pieces, 5);
  // 18 x 600, 13 layers, work of both and what the backward's layer recomputes.
  EXPECT_EQ(timeline.peak.total(), Bytes(18 * 600 + 13 * 30 + 5 + 9 + 70));
  EXPECT_EQ(timeline.moment.work, MemoryMoment::Work::backward);
}

TEST(MemoryTimeline, TheUpdateIsAMomentOfItsOwn) {
  // 16-bit gradients are copied to fp32 for the update: 4 x 220 beside a state of 16 x 220.
  ByHand by_hand;
  by_hand.plan.grad_type = graph::DataType::bf16;
  const MemoryTimeline timeline = by_hand.timeline();
  EXPECT_EQ(timeline.peak.total(), Bytes((16 + 4) * 220));
  EXPECT_EQ(to_string(timeline.moment, false), "optimizer");
  by_hand.plan.offload_optimizer = plan::Offload::cpu;  // the copy goes with the states
  EXPECT_EQ(by_hand.timeline().peak.total(), Bytes((2 + 2) * 220 + 140));
  EXPECT_EQ(by_hand.timeline().lower[0], Bytes((12 + 2) * 220));
}

TEST(MemoryTimeline, OffloadKeepsTwoLayersOnTheDevice) {
  // All of it: the layer that runs and its neighbour's 30 + 30, embedding and head always.
  ByHand by_hand;
  by_hand.plan.offload_activations = 1;
  const MemoryTimeline timeline = by_hand.timeline();
  EXPECT_EQ(timeline.highest[kActivationBytes], 61_B);
  EXPECT_EQ(timeline.lower[0], 60_B);
  by_hand.chunks.front().blocks = {plan::kEmbeddingBlock, 2, 2, 2, 2, plan::kHeadBlock};
  EXPECT_EQ(by_hand.timeline().highest[kActivationBytes], 61_B);
  EXPECT_EQ(by_hand.timeline().lower[0], 120_B);
}

TEST(MemoryTimeline, UnshardedParametersStayForTheBackward) {
  // Fullest in the first layer's backward, where gradients wait: 2 bytes x 220 gathered, with
  // resharding the layer's 200 and ahead of it the embedding's 20.
  ByHand by_hand;
  by_hand.plan = {.dp = 2, .global_batch = 2, .zero = 3, .overlap_param_gather = true};
  const Bytes resharded = by_hand.timeline().highest[kBuffers];
  by_hand.plan.reshard_after_forward = false;
  EXPECT_EQ(by_hand.timeline().highest[kBuffers] - resharded, Bytes(440 - 220));
}

TEST(MemoryTimeline, AGreatManyMicrobatchesTakeNoTime) {
  ByHand by_hand;
  by_hand.plan.global_batch = std::int64_t{1} << 30;
  EXPECT_EQ(by_hand.timeline().peak.total(), Bytes(3960 + 140));
  by_hand.plan.schedule = plan::Schedule::gpipe;
  const MemoryTimeline all = by_hand.timeline();
  EXPECT_EQ(all.pieces, std::int64_t{1} << 30);
  // Every microbatch keeps 63 and logits 40; in the first backward the head's 42 make way for the
  // second layer's 79.
  EXPECT_EQ(all.peak.total(), Bytes(3960 - 42 + 79) + Bytes(103) * (std::int64_t{1} << 30));
  EXPECT_EQ(all.end.total(), Bytes(3960));
}

TEST(MemoryTimeline, ALongListIsCutIntoPartsThatKeepTheirLargest) {
  ByHand by_hand;
  by_hand.plan.global_batch = 5;
  const MemoryTimeline timeline =
      memory_timeline(by_hand.model, by_hand.plan, 0, by_hand.chunks, {.points = 3});
  ASSERT_EQ(timeline.points.size(), 3);  // of 11
  const auto most = [](const MemoryPoint& a, const MemoryPoint& b) { return a.bytes < b.bytes; };
  EXPECT_EQ(std::max_element(timeline.points.begin(), timeline.points.end(), most)->bytes,
            timeline.peak.total());
}

TEST(MemoryTimeline, ChunksAreNamedWhereThereAreSeveral) {
  const MemoryMoment moment{.work = MemoryMoment::Work::backward,
                            .microbatch = 3,
                            .chunk = 1,
                            .kind = plan::kFirstLayerBlock,
                            .layer = 12};
  EXPECT_EQ(to_string(moment, true), "backward of microbatch 3, chunk 1, layer 12");
  EXPECT_EQ(to_string({.work = MemoryMoment::Work::optimizer}, true), "optimizer");
}

}  // namespace
}  // namespace orrery::footprint
