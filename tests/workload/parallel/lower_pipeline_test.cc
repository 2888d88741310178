// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "cases.h"
#include "workload/parallel/lower.h"

namespace orrery::parallel {
namespace {

using cases::collectives;
using cases::each_node;
using cases::kBoundary;
using cases::kTable;
using cases::lowered;
using cases::sends;
using cases::small_gpt;
using cases::small_llama;
using cases::Tally;

// ---- Pipeline.

plan::Plan pipelined(std::int64_t pp, std::int64_t microbatches) {
  return {.pp = pp, .global_batch = microbatches};
}

TEST(LowerPipeline, NeighboursExchangeTheBoundaryOncePerMicrobatch) {
  const graph::Workload workload = lowered(small_gpt(4), pipelined(4, 6));
  const Tally each{6, 6 * kBoundary};
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(sends(workload, stage, plan::Channel::forward), stage < 3 ? each : Tally{});
    EXPECT_EQ(sends(workload, stage, plan::Channel::backward), stage > 0 ? each : Tally{});
  }
}

TEST(LowerPipeline, InterleavedStagesSendOncePerChunk) {
  plan::Plan plan = pipelined(2, 4);
  plan.schedule = plan::Schedule::interleaved;
  plan.chunks = 2;
  const graph::Workload workload = lowered(small_gpt(4), plan);
  // 4 parts, 3 boundaries: stage 0 sends after parts 0 and 2, stage 1 after part 1.
  EXPECT_EQ(sends(workload, 0, plan::Channel::forward).count, 8);
  EXPECT_EQ(sends(workload, 1, plan::Channel::forward).count, 4);
}

TEST(LowerPipeline, ScatterGatherSendsAShareAndGathersIt) {
  plan::Plan plan = pipelined(2, 3);
  plan.tp = 2;
  plan.pipeline_send = plan::PipelineSend::scatter_gather;
  const graph::Workload workload = lowered(small_gpt(2), plan);
  EXPECT_EQ(sends(workload, 0, plan::Channel::forward), (Tally{3, 3 * kBoundary / 2}));
  EXPECT_EQ(collectives(workload, 1, plan::Axis::tp, graph::CollectiveKind::all_gather,
                        plan::StepPhase::forward),
            (Tally{3, 3 * kBoundary}));
  EXPECT_EQ(collectives(workload, 0, plan::Axis::tp, graph::CollectiveKind::all_gather,
                        plan::StepPhase::backward),
            (Tally{3, 3 * kBoundary}));
}

TEST(LowerPipeline, SequenceParallelSendsAShareWithoutGathering) {
  plan::Plan plan = pipelined(2, 3);
  plan.tp = 2;
  plan.sequence_parallel = true;
  const graph::Workload workload = lowered(small_gpt(2), plan);
  EXPECT_EQ(sends(workload, 0, plan::Channel::forward), (Tally{3, 3 * kBoundary / 2}));
  // One layer's two and the logits' gather.
  EXPECT_EQ(collectives(workload, 1, plan::Axis::tp, graph::CollectiveKind::all_gather,
                        plan::StepPhase::forward)
                .count,
            3 * 3);
}

TEST(LowerPipeline, ComputeWaitsForItsSendUnlessOverlapped) {
  plan::Plan plan = pipelined(2, 3);
  const auto waits = [&] {
    std::int64_t count = 0;
    each_node(lowered(small_gpt(2), plan), 0,
              [&](const graph::Node& node) { count += node.name == "wait_send" ? 1 : 0; });
    return count;
  };
  EXPECT_EQ(waits(), 3);
  plan.overlap_p2p = true;
  EXPECT_EQ(waits(), 0);
}

TEST(LowerPipeline, HostSynchronisesOnEveryMessage) {
  plan::Plan plan = pipelined(2, 3);
  plan.p2p_host_sync = true;
  std::int64_t synchronised = 0;
  each_node(lowered(small_gpt(2), plan), 0,
            [&](const graph::Node& node) { synchronised += node.host_sync ? 1 : 0; });
  EXPECT_EQ(synchronised, 3 + 3);  // sends forward, receives backward
}

TEST(LowerPipeline, TiedEmbeddingIsReducedBetweenFirstAndLastStage) {
  const graph::Workload workload = lowered(small_gpt(3), pipelined(3, 3));
  const auto tally = [&](int role) {
    return collectives(workload, role, plan::Axis::embedding, graph::CollectiveKind::all_reduce,
                       plan::StepPhase::optimizer);
  };
  EXPECT_EQ(tally(0), (Tally{1, 4_B * kTable}));
  EXPECT_EQ(tally(1), Tally{});
  EXPECT_EQ(tally(2), (Tally{1, 4_B * kTable}));
}

TEST(LowerPipeline, UntiedOrUnsplitModelsReduceNoEmbedding) {
  for (const graph::Workload& workload :
       {lowered(small_llama(3), pipelined(3, 3)), lowered(small_gpt(3), pipelined(1, 3))}) {
    each_node(workload, 0, [](const graph::Node& node) {
      EXPECT_NE(node.stream, plan::stream_of(plan::Axis::embedding));
    });
  }
}

TEST(LowerPipeline, StagesMayHoldOnlyEmbeddingOrHead) {
  plan::Plan plan = pipelined(4, 4);
  plan.stage_layers = "0,2,1,0";
  const zoo::Model model = small_gpt(3);
  const graph::Workload workload = lowered(model, plan);
  EXPECT_DOUBLE_EQ(cases::matrix_flops(workload, plan::StepPhase::forward),
                   4 * cases::model_matrix_flops(model, plan));
}

TEST(LowerPipeline, TemplatesDoNotGrowWithMicrobatches) {
  const graph::Workload few = lowered(small_gpt(4), pipelined(4, 4));
  const graph::Workload many = lowered(small_gpt(4), pipelined(4, 4000));
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(few.program_of(stage).templates.size(), many.program_of(stage).templates.size());
  }
  EXPECT_EQ(graph::statistics(many).instances, 4 * (2 * 4000 + 1));
}

TEST(LowerPipeline, StagesThatDoTheSameShareAProgram) {
  // The first has the embedding, the last the head; stages 1 and 3 have one layer, stage 2 two.
  plan::Plan plan = pipelined(5, 5);
  plan.stage_layers = "1,1,2,1,1";
  const graph::Workload workload = lowered(small_gpt(6), plan);
  EXPECT_EQ(workload.programs.size(), 4);
  EXPECT_EQ(workload.role(1).program, workload.role(3).program);
  EXPECT_NE(workload.role(1).program, workload.role(2).program);
}

TEST(LowerPipeline, TheHostWaitsForEveryPassWhenItIsSynchronised) {
  plan::Plan plan = pipelined(2, 4);
  plan.host_sync = true;
  plan.batch_kernels = 14;
  const graph::Workload workload = lowered(small_gpt(4), plan, {.skip = {"fuse"}});
  for (const graph::Program& program : workload.programs) {
    for (const graph::Template& t : program.templates) {
      const auto syncs = std::count_if(t.nodes.begin(), t.nodes.end(),
                                       [](const graph::Node& node) { return node.host_sync; });
      EXPECT_EQ(syncs, t.name == "end of step" ? 0 : 1) << t.name;
      const auto batch = std::find_if(t.nodes.begin(), t.nodes.end(), [](const graph::Node& node) {
        return node.name == "prepare_batch";
      });
      ASSERT_EQ(batch != t.nodes.end(), t.name == "forward") << t.name;
      if (batch != t.nodes.end()) {
        EXPECT_EQ(batch->operators[0].kernels, 14);
        EXPECT_EQ(batch->operators[0].bytes, Bytes(0));
      }
    }
  }
}

}  // namespace
}  // namespace orrery::parallel
