// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cases.h"
#include "workload/parallel/lower.h"

namespace orrery::parallel {
namespace {

using cases::collectives;
using cases::find_node;
using cases::kEmbedding;
using cases::kLayer;
using cases::kNorm;
using cases::lowered;
using cases::small_gpt;
using cases::Tally;

// ---- Data parallelism and ZeRO.

plan::Plan data_parallel(std::int64_t zero, bool overlap) {
  return {.dp = 4,
          .global_batch = 12,
          .zero = zero,
          .overlap_grad_reduce = overlap,
          .overlap_param_gather = overlap && zero >= 1};
}
constexpr std::int64_t kAll = 2 * kLayer + kEmbedding + kNorm;

TEST(LowerGradients, OneAllReduceAtTheEndOfTheStep) {
  const graph::Workload workload = lowered(small_gpt(2), data_parallel(0, false));
  EXPECT_EQ(collectives(workload, 0, plan::Axis::dp, graph::CollectiveKind::all_reduce,
                        plan::StepPhase::optimizer),
            (Tally{1, 4_B * kAll}));
  EXPECT_EQ(collectives(workload, 0, plan::Axis::dp, graph::CollectiveKind::all_reduce,
                        plan::StepPhase::backward),
            Tally{});
}

TEST(LowerGradients, OverlappedOncePerBlockInTheLastBackward) {
  const graph::Workload workload = lowered(small_gpt(2), data_parallel(0, true));
  EXPECT_EQ(collectives(workload, 0, plan::Axis::dp, graph::CollectiveKind::all_reduce,
                        plan::StepPhase::backward),
            (Tally{4, 4_B * kAll}));  // head, two layers, embedding
}

TEST(LowerGradients, BucketsHoldWholeBlocks) {
  // Head 512 B and layer 199,936 B reach 200,000 B together; then layer and embedding.
  plan::Plan plan = data_parallel(0, true);
  plan.bucket = Bytes(200'000);
  EXPECT_EQ(collectives(lowered(small_gpt(2), plan), 0, plan::Axis::dp,
                        graph::CollectiveKind::all_reduce, plan::StepPhase::backward),
            (Tally{2, 4_B * kAll}));
}

TEST(LowerGradients, BucketsMayBeGivenInParameters) {
  // 50,000 fp32 gradients are the 200,000 bytes of the test before; 2 x 25,000 by ranks. What ZeRO
  // gathers again are the same buckets.
  for (const bool by_ranks : {false, true}) {
    plan::Plan plan = data_parallel(0, true);
    plan.bucket_parameters = by_ranks ? 1 : 50'000;
    plan.bucket_parameters_per_rank = by_ranks ? 50'000 / plan.dp : 0;
    EXPECT_EQ(collectives(lowered(small_gpt(2), plan), 0, plan::Axis::dp,
                          graph::CollectiveKind::all_reduce, plan::StepPhase::backward),
              (Tally{2, 4_B * kAll}));
    plan.zero = 1;
    plan.overlap_param_gather = true;
    EXPECT_EQ(collectives(lowered(small_gpt(2), plan), 0, plan::Axis::dp,
                          graph::CollectiveKind::all_gather, plan::StepPhase::forward),
              (Tally{2, 2_B * kAll}));
  }
}

TEST(LowerZero, StageOneScattersGradientsAndGathersParametersOnce) {
  const graph::Workload workload = lowered(small_gpt(2), data_parallel(1, false));
  EXPECT_EQ(collectives(workload, 0, plan::Axis::dp, graph::CollectiveKind::reduce_scatter,
                        plan::StepPhase::optimizer),
            (Tally{1, 4_B * kAll}));
  EXPECT_EQ(collectives(workload, 0, plan::Axis::dp, graph::CollectiveKind::all_gather,
                        plan::StepPhase::optimizer),
            (Tally{1, 2_B * kAll}));
}

TEST(LowerZero, StageOneOverlappedGathersDuringTheFirstForward) {
  const graph::Workload workload = lowered(small_gpt(2), data_parallel(1, true));
  EXPECT_EQ(collectives(workload, 0, plan::Axis::dp, graph::CollectiveKind::all_gather,
                        plan::StepPhase::forward),
            (Tally{4, 2_B * kAll}));
  EXPECT_EQ(collectives(workload, 0, plan::Axis::dp, graph::CollectiveKind::all_gather,
                        plan::StepPhase::optimizer),
            Tally{});
}

TEST(LowerZero, UpdatedParametersOfTwoChunksAreQueuedBeforeAllElse) {
  // A layer per chunk. Chunk 0 queues its own gather and chunk 1's, which wait for nothing; its
  // compute waits for its own. Chunk 1 waits until the queue is empty.
  plan::Plan plan = data_parallel(1, true);
  plan.pp = plan.chunks = 2;
  plan.schedule = plan::Schedule::interleaved;
  plan.global_batch = 16;
  const graph::Workload workload = lowered(small_gpt(4), plan);
  const std::vector<graph::Template>& work = workload.program_of(1).templates;
  const auto named = [&](const std::string& name) {
    return std::find_if(work.begin(), work.end(),
                        [&](const graph::Template& one) { return one.name == name; });
  };
  const auto& first = named("first forward chunk 0")->nodes;
  for (const std::size_t i : {0U, 1U, 2U}) {  // a layer; a layer and the head
    EXPECT_EQ(first[i].stream, plan::stream_of(plan::Axis::dp));
    EXPECT_TRUE(first[i].after.empty());
  }
  EXPECT_EQ(first[3].kind, graph::Node::Kind::receive);
  const auto compute = std::find_if(first.begin(), first.end(), [](const graph::Node& node) {
    return node.kind == graph::Node::Kind::compute;
  });
  ASSERT_NE(compute, first.end());
  EXPECT_THAT(compute->after, ::testing::Contains(0));
  const auto& second = named("first forward chunk 1")->nodes;
  EXPECT_EQ(second[0].name, "gathers_done");
  EXPECT_EQ(second[0].stream, plan::stream_of(plan::Axis::dp));
  EXPECT_EQ(second[1].name, "parameters_ready");
  EXPECT_EQ(second[1].stream, plan::StepStream::compute);
  EXPECT_EQ(second[1].after, std::vector<int>{0});
}

TEST(LowerZero, StageTwoReducesEveryMicrobatch) {
  for (const bool overlap : {false, true}) {
    const graph::Workload workload = lowered(small_gpt(2), data_parallel(2, overlap));
    EXPECT_EQ(collectives(workload, 0, plan::Axis::dp, graph::CollectiveKind::reduce_scatter,
                          plan::StepPhase::backward)
                  .bytes,
              3 * 4_B * kAll);
  }
}

TEST(LowerZero, StageThreeGathersEveryBlockTwicePerMicrobatch) {
  for (const bool overlap : {false, true}) {
    const graph::Workload workload = lowered(small_gpt(2), data_parallel(3, overlap));
    const Tally gathers{12, 3 * 2_B * kAll};  // 3 microbatches, 4 blocks
    EXPECT_EQ(collectives(workload, 0, plan::Axis::dp, graph::CollectiveKind::all_gather,
                          plan::StepPhase::forward),
              gathers);
    EXPECT_EQ(collectives(workload, 0, plan::Axis::dp, graph::CollectiveKind::all_gather,
                          plan::StepPhase::backward),
              gathers);
  }
}

TEST(LowerZero, StageThreeGathersTheNextBlockWhileThisOneRuns) {
  const graph::Workload workload = lowered(small_gpt(2), data_parallel(3, true));
  const graph::Template& forward = workload.program_of(0).templates[0];
  // gather embedding, gather layer 0, embedding's compute, gather layer 1, layer 0 ...
  EXPECT_EQ(forward.nodes[0].stream, plan::stream_of(plan::Axis::dp));
  EXPECT_EQ(forward.nodes[1].stream, plan::stream_of(plan::Axis::dp));
  EXPECT_EQ(forward.nodes[2].kind, graph::Node::Kind::compute);
  EXPECT_EQ(forward.nodes[2].after, std::vector<int>{0});
  EXPECT_EQ(forward.nodes[3].stream, plan::stream_of(plan::Axis::dp));
  EXPECT_EQ(forward.nodes[3].after, std::vector<int>{2});
  EXPECT_EQ(forward.nodes[4].after, std::vector<int>{1});
}

TEST(LowerOptimizer, AdamMovesTwentyEightBytesPerLocalParameter) {
  // Gradient 4, master and two moments read and written 24; a quarter with ZeRO.
  for (const std::int64_t zero : {0, 1}) {
    const graph::Workload workload =
        lowered(small_gpt(2), data_parallel(zero, false), {.skip = {"fuse"}});
    EXPECT_EQ(find_node(workload, "adam")->operators[0].bytes,
              Bytes(28 * (zero == 0 ? kAll : kAll / 4)));
  }
}

TEST(LowerOptimizer, HalfPrecisionGradientsBecomeSinglePrecisionFirst) {
  // fp16 gradient 2 read, fp32 copy 4 written; unscaling reads and writes it; at the end the fp32
  // parameter is read and its fp16 copy written.
  plan::Plan plan = data_parallel(0, false);
  plan.compute_type = plan.grad_type = plan.grad_reduce_type = graph::DataType::fp16;
  const graph::Workload workload = lowered(small_gpt(2), plan, {.skip = {"fuse"}});
  const auto bytes = [&](const char* name) {
    return find_node(workload, name)->operators[0].bytes;
  };
  EXPECT_EQ(bytes("gradients_to_fp32"), Bytes(6 * kAll));
  EXPECT_EQ(bytes("unscale_gradients"), Bytes(8 * kAll));
  EXPECT_EQ(bytes("cast_parameters"), Bytes(6 * kAll));
  EXPECT_EQ(bytes("average_gradients"), Bytes(4 * kAll));
}

TEST(LowerOptimizer, GradientsThatComeAndGoAreNotClearedAndAutocastCopiesInTheForward) {
  plan::Plan plan = data_parallel(0, false);
  const auto has = [&](const char* name) {
    return find_node(lowered(small_gpt(2), plan, {.skip = {"fuse"}}), name) != nullptr;
  };
  plan.global_batch = plan.microbatch * plan.dp;
  EXPECT_TRUE(has("clear_gradients"));
  EXPECT_TRUE(has("cast_parameters"));
  plan.free_gradients = plan.master_params = plan.autocast = true;
  EXPECT_FALSE(has("clear_gradients"));
  EXPECT_FALSE(has("cast_parameters"));
}

// ---- Shards of fewer ranks than dp.

Bytes moved(const graph::Workload& workload) {
  Bytes sum{0};
  cases::each_node(workload, 0, [&](const graph::Node& node) {
    const bool reduces =
        node.kind == graph::Node::Kind::collective && node.bytes > 4_B;  // not the norm
    sum += reduces ? node.bytes : Bytes(0);
  });
  return sum;
}

TEST(LowerZero, StageThreeMovesThreePsiPerMicrobatchStageOneTwoPerStep) {
  // In elements, all types equal: ZeRO-1 reduces and gathers once; ZeRO-3 gathers twice and reduces
  // in each of the 3 microbatches. 1.5 times only with a single one (Rajbhandari et al. 2020).
  plan::Plan plan = data_parallel(1, false);
  plan.grad_reduce_type = graph::DataType::bf16;
  EXPECT_EQ(moved(lowered(small_gpt(2), plan)), 2_B * 2 * kAll);
  plan.zero = 3;
  EXPECT_EQ(moved(lowered(small_gpt(2), plan)), 2_B * 3 * 3 * kAll);
  plan.reshard_after_forward = false;  // gathered parameters stay for the backward
  EXPECT_EQ(moved(lowered(small_gpt(2), plan)), 2_B * 3 * 2 * kAll);
}

TEST(LowerShards, HybridShardingReducesShardsOverReplicasOncePerStep) {
  // dp 4 as 2 shards x 2 replicas; 3 microbatches.
  plan::Plan plan = data_parallel(3, false);
  plan.shard_params = plan.shard_grads = plan.shard_optimizer = 2;
  const graph::Workload workload = lowered(small_gpt(2), plan);
  EXPECT_EQ(collectives(workload, 0, plan::Axis::grad_shard, graph::CollectiveKind::reduce_scatter,
                        plan::StepPhase::backward)
                .bytes,
            4_B * 3 * kAll);
  EXPECT_EQ(collectives(workload, 0, plan::Axis::replica, graph::CollectiveKind::all_reduce,
                        plan::StepPhase::optimizer),
            (Tally{1, 4_B * kAll / 2}));
  EXPECT_EQ(collectives(workload, 0, plan::Axis::shard, graph::CollectiveKind::all_gather,
                        plan::StepPhase::forward)
                .bytes,
            2_B * 3 * kAll);
  EXPECT_EQ(collectives(workload, 0, plan::Axis::update, graph::CollectiveKind::all_gather,
                        plan::StepPhase::optimizer),
            Tally{});  // who updates a shard also holds it
}

TEST(LowerShards, ThreeLevelsPassShardsOn) {
  // dp 4: parameters on pairs, gradients on pairs, optimizer states on all 4.
  plan::Plan plan = data_parallel(3, false);
  plan.shard_params = plan.shard_grads = 2;
  const graph::Workload workload = lowered(small_gpt(2), plan);
  EXPECT_EQ(collectives(workload, 0, plan::Axis::optimizer_shard,
                        graph::CollectiveKind::reduce_scatter, plan::StepPhase::optimizer),
            (Tally{1, 4_B * kAll / 2}));
  EXPECT_EQ(collectives(workload, 0, plan::Axis::update, graph::CollectiveKind::all_gather,
                        plan::StepPhase::optimizer),
            (Tally{1, 2_B * kAll / 2}));
}

TEST(LowerShards, OverlappedHopsFollowOneAnother) {
  plan::Plan plan = data_parallel(3, true);
  plan.shard_params = plan.shard_grads = plan.shard_optimizer = 2;
  const graph::Workload workload = lowered(small_gpt(2), plan);
  EXPECT_EQ(collectives(workload, 0, plan::Axis::replica, graph::CollectiveKind::all_reduce,
                        plan::StepPhase::backward),
            (Tally{4, 4_B * kAll / 2}));  // one per block, in the last backward only
}

}  // namespace
}  // namespace orrery::parallel
