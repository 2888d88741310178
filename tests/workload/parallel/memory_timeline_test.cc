// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/memory_timeline.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "cases.h"
#include "workload/parallel/memory.h"
#include "workload/parallel/memory_work.h"

namespace orrery {
namespace {

constexpr auto kActivations = MemoryCategory::activations;
constexpr auto kBuffers = MemoryCategory::buffers;

/// Blocks with numbers of their own, so that no two sums agree by chance.
BlockMemories made_blocks() {
  const auto bytes = [](std::int64_t most) {
    return Bytes(*rc::gen::inRange<std::int64_t>(0, most));
  };
  const auto block = [&] {
    BlockMemory made;
    made.parameters = *rc::gen::inRange<std::int64_t>(1, 1000);
    made.expert_parameters = made.parameters / 2;
    made.kept = bytes(10000);
    made.recomputed = bytes(5000);
    made.held = bytes(5000);
    made.held_gradients = made.held / 2;
    made.forward_work = bytes(2000);
    made.backward_work = bytes(4000);
    return made;
  };
  BlockMemories model;
  for (int kind = 0; kind < 4; ++kind) {
    model.blocks.push_back(block());
    model.plain.push_back(block());
    model.plain.back().parameters = model.blocks.back().parameters;
    model.plain.back().expert_parameters = model.blocks.back().expert_parameters;
  }
  model.blocks[kHeadBlock].logits = bytes(20000);
  model.blocks[kHeadBlock].logits_work = bytes(10000);
  model.boundary = bytes(3000);
  return model;
}

Plan made_plan() {
  const auto flip = [] { return *rc::gen::arbitrary<bool>(); };
  Plan plan;
  plan.schedule = *rc::gen::element(Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved);
  plan.pp = plan.schedule == Schedule::interleaved ? *rc::gen::inRange<std::int64_t>(2, 5)
                                                   : *rc::gen::inRange<std::int64_t>(1, 5);
  plan.chunks = plan.schedule == Schedule::interleaved ? *rc::gen::inRange<std::int64_t>(2, 4) : 1;
  plan.dp = *rc::gen::inRange<std::int64_t>(1, 4);
  plan.global_batch = plan.dp * plan.pp * *rc::gen::inRange<std::int64_t>(1, 9);
  plan.zero = plan.pp == 1 ? *rc::gen::inRange<std::int64_t>(0, 4) : 0;
  plan.reshard_after_forward = flip();
  plan.overlap_param_gather = plan.zero > 0 && flip();
  plan.overlap_grad_reduce = flip();
  plan.bucket = *rc::gen::element(0_B, 1000_B, 5000_B);
  plan.recompute_layers = *rc::gen::inRange<std::int64_t>(0, 3);
  plan.offload_activations = *rc::gen::element(0.0, 0.5, 1.0);
  plan.grad_type = *rc::gen::element(DataType::fp32, DataType::bf16);
  return plan;
}

std::vector<StageChunk> made_chunks(const Plan& plan, std::int64_t stage) {
  std::vector<StageChunk> chunks;
  for (std::int64_t chunk = 0; chunk < plan.chunks; ++chunk) {
    const std::int64_t layers = *rc::gen::inRange<std::int64_t>(1, 4);
    StageChunk made;
    if (stage == 0 && chunk == 0) {
      made.blocks.push_back(kEmbeddingBlock);
    }
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      made.blocks.push_back(static_cast<BlockKind>(*rc::gen::inRange(2, 4)));
    }
    if (stage == plan.pp - 1 && chunk == plan.chunks - 1) {
      made.blocks.push_back(kHeadBlock);
    }
    chunks.push_back(made);
  }
  return chunks;
}

/// The rules of memory_timeline.h read literally: a list of what is allocated, summed at every
/// block of every piece of work.
class Reference {
 public:
  Reference(const BlockMemories& model, const Plan& plan, const std::vector<StageChunk>& chunks)
      : model_(model), plan_(plan), chunks_(chunks), state_(state_memory(model, plan, chunks)) {}

  void run(std::int64_t stage) {
    const PipelineShape shape = pipeline_shape(plan_);
    for (std::int64_t i = 0; i < slot_count(shape); ++i) {
      const PipelineSlot piece = slot(shape, stage, i);
      const StageChunk& chunk = chunks_[static_cast<std::size_t>(piece.chunk)];
      const auto count = static_cast<std::int64_t>(chunk.blocks.size());
      for (std::int64_t step = 0; step < count; ++step) {
        piece.direction == Direction::forward ? forward(piece, step)
                                              : backward(piece, count - 1 - step);
      }
    }
    consider(state_.reduction, {});
    consider(state_.update, {});
  }

  Bytes peak{0};
  Bytes host{0};
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, BlockMemory> live{};

 private:
  const BlockMemory& block(const StageChunk& chunk, std::int64_t i) const {
    const auto at = static_cast<std::size_t>(i);
    const auto layers = std::count_if(chunk.blocks.begin(), chunk.blocks.begin() + i,
                                      [](BlockKind kind) { return kind >= kFirstLayerBlock; });
    const BlockKind kind = chunk.blocks[at];
    const bool plain =
        kind >= kFirstLayerBlock && plan_.recompute_layers > 0 && layers >= plan_.recompute_layers;
    return (plain ? model_.plain : model_.blocks)[kind];
  }
  Bytes away(const StageChunk& chunk, std::int64_t i) const {
    const bool layer = i >= 0 && chunk.blocks[static_cast<std::size_t>(i)] >= kFirstLayerBlock;
    return layer ? block(chunk, i).kept * plan_.offload_activations : 0_B;
  }
  /// Parameters of block i as gathered, when zero 3 shards them.
  Bytes whole(const StageChunk& chunk, std::int64_t i) const {
    const bool inside = i >= 0 && i < static_cast<std::int64_t>(chunk.blocks.size());
    const bool sharded = plan_.zero == 3 && plan_.dp > 1 && inside;
    return sharded ? Bytes(2 * block(chunk, i).parameters) : 0_B;
  }
  Bytes gathered(const StageChunk& chunk, std::int64_t i, std::int64_t next) const {
    if (!plan_.reshard_after_forward) {  // the whole chunk; pp = 1 here, one microbatch at a time
      Bytes sum{0};
      for (std::int64_t b = 0; b < static_cast<std::int64_t>(chunk.blocks.size()); ++b) {
        sum += whole(chunk, b);
      }
      return sum;
    }
    const bool inside = next >= 0 && next < static_cast<std::int64_t>(chunk.blocks.size());
    const std::int64_t ahead = inside ? next : i;
    return whole(chunk, i) + (plan_.overlap_param_gather ? whole(chunk, ahead) : 0_B);
  }
  Bytes unreduced(const StageChunk& chunk, std::int64_t from) const {
    if (plan_.zero < 2 || plan_.dp == 1) {
      return 0_B;
    }
    Bytes done{0};
    Bytes all{0};
    Bytes largest{0};
    for (std::int64_t b = 0; b < static_cast<std::int64_t>(chunk.blocks.size()); ++b) {
      const Bytes one(4 * block(chunk, b).parameters);
      all += one;
      largest = std::max(largest, one);
      done += b >= from ? one : 0_B;
    }
    if (!plan_.overlap_grad_reduce && plan_.bucket == 0_B) {
      return done;
    }
    return std::min(
        {done, all, std::max(largest, plan_.bucket) * (plan_.overlap_grad_reduce ? 2 : 1)});
  }

  void forward(const PipelineSlot& piece, std::int64_t i) {
    const StageChunk& chunk = chunks_[static_cast<std::size_t>(piece.chunk)];
    const BlockMemory& one = block(chunk, i);
    consider(one.kept + one.logits + one.logits_work + one.forward_work + away(chunk, i - 1) +
                 gathered(chunk, i, i + 1) + messages(),
             {});
    live[{piece.chunk, piece.microbatch, i}] = one;
    track_host();
  }
  void backward(const PipelineSlot& piece, std::int64_t i) {
    const StageChunk& chunk = chunks_[static_cast<std::size_t>(piece.chunk)];
    const BlockMemory& one = block(chunk, i);
    consider(one.recomputed + one.logits_work + one.backward_work + away(chunk, i) +
                 away(chunk, i - 1) + gathered(chunk, i, i - 1) + unreduced(chunk, i) + messages(),
             {});
    live.erase({piece.chunk, piece.microbatch, i});
  }
  Bytes messages() const {
    int most = 0;
    for (const StageChunk& chunk : chunks_) {
      most = std::max(most, (chunk.blocks.front() == kEmbeddingBlock ? 0 : 2) +
                                (chunk.blocks.back() == kHeadBlock ? 0 : 2));
    }
    return plan_.pp > 1 ? most * model_.boundary : 0_B;
  }
  void consider(Bytes beside, const CategoryBytes& /*unused*/) {
    Bytes sum = state_.device.total() + beside;
    for (const auto& [key, one] : live) {
      const StageChunk& chunk = chunks_[static_cast<std::size_t>(std::get<0>(key))];
      sum += one.kept + one.logits - away(chunk, std::get<2>(key));
    }
    peak = std::max(peak, sum);
  }
  void track_host() {
    Bytes sum{0};
    for (const auto& [key, one] : live) {
      sum += away(chunks_[static_cast<std::size_t>(std::get<0>(key))], std::get<2>(key));
    }
    host = std::max(host, sum);
  }

  const BlockMemories& model_;
  const Plan& plan_;
  const std::vector<StageChunk>& chunks_;
  StateMemory state_;
};

RC_GTEST_PROP(MemoryTimelineLaws, PeakEqualsBruteForceOverEveryBlockOfEveryPiece, ()) {
  const BlockMemories model = made_blocks();
  const Plan plan = made_plan();
  const std::int64_t stage = *rc::gen::inRange<std::int64_t>(0, plan.pp);
  const auto chunks = made_chunks(plan, stage);
  Reference reference(model, plan, chunks);
  reference.run(stage);
  const MemoryTimeline timeline = memory_timeline(model, plan, stage, chunks);
  RC_ASSERT(timeline.peak.total() == reference.peak);
  RC_ASSERT(timeline.lower[0] == reference.host);
  RC_ASSERT(reference.live.empty());
}

RC_GTEST_PROP(MemoryTimelineLaws, ReturnsToItsStartAndIsNeverNegative, ()) {
  const BlockMemories model = made_blocks();
  const Plan plan = made_plan();
  const std::int64_t stage = *rc::gen::inRange<std::int64_t>(0, plan.pp);
  const auto chunks = made_chunks(plan, stage);
  const MemoryTimeline timeline =
      memory_timeline(model, plan, stage, chunks, {.points = 1'000'000});
  const Bytes state = state_memory(model, plan, chunks).device.total();
  RC_ASSERT(timeline.end == state_memory(model, plan, chunks).device);
  Bytes most{0};
  for (const MemoryPoint& point : timeline.points) {
    RC_ASSERT(point.bytes >= state);
    most = std::max(most, point.bytes);
  }
  RC_ASSERT(most == timeline.peak.total());
  for (const auto& category : kNames<MemoryCategory>) {
    RC_ASSERT(timeline.peak[category.value] >= 0_B);
    RC_ASSERT(timeline.highest[category.value] >= timeline.peak[category.value]);
  }
}

RC_GTEST_PROP(MemoryTimelineLaws, KeptActivationsAreTheClosedFormOfTheSchedule, ()) {
  // Sum over chunks of kept bytes x pieces in flight, where that sum is largest.
  const BlockMemories model = made_blocks();
  Plan plan = made_plan();
  plan.offload_activations = 0;
  const std::int64_t stage = *rc::gen::inRange<std::int64_t>(0, plan.pp);
  const auto chunks = made_chunks(plan, stage);
  std::vector<double> weights;
  for (const StageChunk& chunk : chunks) {
    weights.push_back(
        static_cast<double>(chunk_works(model, plan, chunk).forward.change[kActivations].value()));
  }
  double expected = 0;
  const auto pieces = peak_by_chunk(pipeline_shape(plan), stage, weights);
  for (std::size_t chunk = 0; chunk < weights.size(); ++chunk) {
    expected += weights[chunk] * static_cast<double>(pieces[chunk]);
  }
  const MemoryTimeline timeline = memory_timeline(model, plan, stage, chunks);
  RC_ASSERT(static_cast<double>(timeline.highest[kActivations].value()) == expected);
}

RC_GTEST_PROP(MemoryTimelineLaws, ManyMicrobatchesHaveThePeakOfThoseThatAreReplayed, ()) {
  const BlockMemories model = made_blocks();
  Plan plan = made_plan();
  const std::int64_t stage = *rc::gen::inRange<std::int64_t>(0, plan.pp);
  const auto chunks = made_chunks(plan, stage);
  plan.global_batch = plan.dp * plan.pp * *rc::gen::inRange<std::int64_t>(6, 20);
  Reference reference(model, plan, chunks);
  reference.run(stage);
  const MemoryTimeline timeline = memory_timeline(model, plan, stage, chunks);
  RC_ASSERT(timeline.peak.total() == reference.peak);
}

RC_GTEST_PROP(MemoryTimelineLaws, GrowsWithTheMicrobatch, ()) {
  cases::Case c = *cases::any_case();
  const auto small = memory_of_checked(c.model, c.plan);
  c.plan.microbatch *= 2;
  c.plan.global_batch *= 2;
  const auto large = memory_of_checked(c.model, c.plan);
  for (std::size_t stage = 0; stage < small.size(); ++stage) {
    RC_ASSERT(large[stage].total() >= small[stage].total());
    RC_ASSERT(large[stage].highest[kActivations] == 2 * small[stage].highest[kActivations]);
  }
}

/// One stage with an embedding, two layers and a head; bytes that are easy to add.
struct ByHand {
  BlockMemories model;
  std::vector<StageChunk> chunks{{{kEmbeddingBlock, 2, 2, kHeadBlock}, 0}};
  Plan plan{.global_batch = 2};

  ByHand() {
    model.blocks.assign(3, {});
    model.blocks[kEmbeddingBlock] = {.parameters = 10, .kept = 1_B};
    model.blocks[kHeadBlock] = {.parameters = 10, .kept = 2_B, .logits = 40_B, .logits_work = 20_B};
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
  EXPECT_EQ(timeline.peak[kActivations], 61_B);
  EXPECT_EQ(timeline.peak[kBuffers], 79_B);
  EXPECT_EQ(timeline.highest[MemoryCategory::logits], 60_B);
  ASSERT_EQ(timeline.points.size(), 5);  // two microbatches forward and backward, optimizer
  EXPECT_EQ(timeline.points[0].bytes, Bytes(3960 + 123));
  EXPECT_EQ(timeline.points[1].bytes, Bytes(3960 + 140));
  EXPECT_EQ(timeline.points[4].bytes, Bytes(3960));
}

TEST(MemoryTimeline, TheUpdateIsAMomentOfItsOwn) {
  // 16-bit gradients are copied to fp32 for the update: 4 x 220 beside a state of 16 x 220.
  ByHand by_hand;
  by_hand.plan.grad_type = DataType::bf16;
  const MemoryTimeline timeline = by_hand.timeline();
  EXPECT_EQ(timeline.peak.total(), Bytes((16 + 4) * 220));
  EXPECT_EQ(to_string(timeline.moment, false), "optimizer");
  by_hand.plan.offload_optimizer = Offload::cpu;  // the copy goes with the states
  EXPECT_EQ(by_hand.timeline().peak.total(), Bytes((2 + 2) * 220 + 140));
  EXPECT_EQ(by_hand.timeline().lower[0], Bytes((12 + 4) * 220));
}

TEST(MemoryTimeline, OffloadKeepsTwoLayersOnTheDevice) {
  // All of it: the layer that runs and its neighbour's 30 + 30, embedding and head always.
  ByHand by_hand;
  by_hand.plan.offload_activations = 1;
  const MemoryTimeline timeline = by_hand.timeline();
  EXPECT_EQ(timeline.highest[kActivations], 61_B);
  EXPECT_EQ(timeline.lower[0], 60_B);
  by_hand.chunks.front().blocks = {kEmbeddingBlock, 2, 2, 2, 2, kHeadBlock};
  EXPECT_EQ(by_hand.timeline().highest[kActivations], 61_B);
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
  by_hand.plan.schedule = Schedule::gpipe;
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
                            .kind = kFirstLayerBlock,
                            .layer = 12};
  EXPECT_EQ(to_string(moment, true), "backward of microbatch 3, chunk 1, layer 12");
  EXPECT_EQ(to_string({.work = MemoryMoment::Work::optimizer}, true), "optimizer");
}

}  // namespace
}  // namespace orrery
