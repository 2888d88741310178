// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "cases.h"

namespace orrery {
namespace {

using cases::collectives;
using cases::each_node;
using cases::lowered;
using cases::sends;
using cases::small_gpt;
using cases::small_llama;
using cases::Tally;
using testing::HasSubstr;

// Boundary tensor of the small models: B S H x 2 bytes = 128 x 64 x 2.
constexpr Bytes kBoundary{128 * 64 * 2};
// small_gpt, vocabulary padded to 1024. Layer: 12 H^2 + 13 H = 49984. Embedding: (1024 + 128) x 64
// = 73728. Final norm: 128.
constexpr std::int64_t kLayer = 12 * 64 * 64 + 13 * 64;
constexpr std::int64_t kEmbedding = (1024 + 128) * 64;
constexpr std::int64_t kTable = 1024 * 64;
constexpr std::int64_t kNorm = 128;

const Node* find_node(const Workload& workload, const std::string& part) {
  for (const Template& t : workload.programs[0].templates) {
    for (const Node& node : t.nodes) {
      if (node.name.find(part) != std::string::npos) {
        return &node;
      }
    }
  }
  return nullptr;
}

// ---- Tensor parallelism.

TEST(LowerTensor, AllReducesTwicePerLayerAndDirection) {
  // Forward: embedding 1, 3 layers x 2, loss 3 of S fp32 values. Backward: 3 x 2, logits 1.
  const Workload workload = lowered(small_gpt(3), {.tp = 2});
  EXPECT_EQ(collectives(workload, 0, Axis::tp, CollectiveKind::all_reduce, Phase::forward),
            (Tally{10, 7 * kBoundary + Bytes(3 * 128 * 4)}));
  EXPECT_EQ(collectives(workload, 0, Axis::tp, CollectiveKind::all_reduce, Phase::backward),
            (Tally{7, 7 * kBoundary}));
}

TEST(LowerTensor, SequenceParallelGathersAndScattersInstead) {
  // Forward gathers: 3 layers x 2 and logits; scatters: embedding and 3 x 2. Backward gathers:
  // every conjugate of a scatter (7) and the saved input of every column GEMM (7); scatters: 7.
  const Workload workload = lowered(small_gpt(3), {.tp = 2, .sequence_parallel = true});
  const auto tally = [&](CollectiveKind kind, Phase phase) {
    return collectives(workload, 0, Axis::tp, kind, phase);
  };
  EXPECT_EQ(tally(CollectiveKind::all_gather, Phase::forward), (Tally{7, 7 * kBoundary}));
  EXPECT_EQ(tally(CollectiveKind::reduce_scatter, Phase::forward), (Tally{7, 7 * kBoundary}));
  EXPECT_EQ(tally(CollectiveKind::all_gather, Phase::backward), (Tally{14, 14 * kBoundary}));
  EXPECT_EQ(tally(CollectiveKind::reduce_scatter, Phase::backward), (Tally{7, 7 * kBoundary}));
}

TEST(LowerTensor, SequenceParallelSumsReplicatedGradientsOnce) {
  // Per layer two norms (4 H) and the biases after row GEMMs (2 H); position table 128 H; final
  // norm.
  const Workload workload = lowered(small_gpt(3), {.tp = 2, .sequence_parallel = true});
  const std::int64_t replicated = 3 * 6 * 64 + 128 * 64 + kNorm;
  EXPECT_EQ(collectives(workload, 0, Axis::tp, CollectiveKind::all_reduce, Phase::optimizer),
            (Tally{2, 4_B * replicated + 4_B}));  // and the gradient norm
}

TEST(LowerTensor, OneRankHasNoCollectives) {
  const Workload workload = lowered(small_gpt(3), {});
  each_node(workload, 0, [](const Node& node) { EXPECT_NE(node.kind, Node::Kind::collective); });
}

TEST(LowerTensor, WeightGradientRunsBesideTheReductionOfTheInputGradient) {
  const Workload workload = lowered(small_gpt(1), {.tp = 2}, {.skip = {"fuse"}});
  const Template& backward = workload.programs[0].templates[1];
  const auto at = [&](const std::string& name) {
    return std::find_if(backward.nodes.begin(), backward.nodes.end(),
                        [&](const Node& node) { return node.name == name; }) -
           backward.nodes.begin();
  };
  const auto input = at("fc1_gemm_input_gradient");
  const auto& reduction = backward.nodes[static_cast<std::size_t>(input + 1)];
  const auto& weight = backward.nodes[static_cast<std::size_t>(input + 2)];
  EXPECT_EQ(reduction.kind, Node::Kind::collective);
  EXPECT_EQ(reduction.after, std::vector<int>{static_cast<int>(input)});
  EXPECT_EQ(weight.name, "fc1_gemm_weight_gradient");
  EXPECT_TRUE(weight.after.empty());
  // The norm's backward needs the reduced gradient.
  const auto& norm = backward.nodes[static_cast<std::size_t>(at("mlp_norm_backward"))];
  EXPECT_EQ(norm.after, std::vector<int>{static_cast<int>(input + 1)});
}

TEST(LowerTensor, GemmBackwardHasTheTransposedShapes) {
  // fc1 at tp 2: C[128, 128] = A[128, 64] W[64, 128].
  const Workload workload = lowered(small_gpt(1), {.tp = 2}, {.skip = {"fuse"}});
  const GemmShape forward{1, 128, 128, 64};
  EXPECT_EQ(find_node(workload, "fc1_gemm")->operators[0].gemm, forward);
  EXPECT_EQ(find_node(workload, "fc1_gemm_input_gradient")->operators[0].gemm,
            (GemmShape{1, 128, 64, 128}));
  EXPECT_EQ(find_node(workload, "fc1_gemm_weight_gradient")->operators[0].gemm,
            (GemmShape{1, 64, 128, 128}));
  // Reads a bf16 gradient, reads and writes an fp32 buffer; W and its bias.
  EXPECT_EQ(find_node(workload, "fc1_gemm_accumulate")->operators[0].bytes,
            Bytes((64 * 128 + 128) * 10));
}

TEST(LowerTensor, FusedAccumulationLeavesOnlyTheBias) {
  const Workload workload =
      lowered(small_gpt(1), {.tp = 2, .fused_grad_accumulation = true}, {.skip = {"fuse"}});
  EXPECT_EQ(find_node(workload, "fc1_gemm_accumulate")->operators[0].bytes, Bytes(128 * 10));
  // Operands 64 x 128 and 128 x 128 in bf16; the fp32 buffer 64 x 128 is read and written.
  EXPECT_EQ(find_node(workload, "fc1_gemm_weight_gradient")->operators[0].bytes,
            Bytes(2 * (64 * 128 + 128 * 128) + 8 * 64 * 128));
}

TEST(LowerTensor, NormsKnowTheirRowLengthAndBackwardKernelsTheirDirection) {
  Plan plan;
  plan.attention = AttentionKernel::flash;
  const Workload workload = lowered(small_gpt(1), plan, {.skip = {"fuse"}});
  EXPECT_EQ(find_node(workload, "input_norm")->operators[0].gemm.k, 64);
  EXPECT_FALSE(find_node(workload, "flash_attention")->operators[0].backward);
  EXPECT_TRUE(find_node(workload, "flash_attention_backward")->operators[0].backward);
}

// ---- Recompute.

TEST(LowerRecompute, FullRunsEveryLayerForwardAgain) {
  const Model model = small_gpt(3);
  const Workload full = lowered(model, {.tp = 2, .recompute = Recompute::full});
  EXPECT_EQ(collectives(full, 0, Axis::tp, CollectiveKind::all_reduce, Phase::recompute),
            (Tally{6, 6 * kBoundary}));
  // All but the logits: 2 S H V / t.
  EXPECT_DOUBLE_EQ(cases::matrix_flops(full, Phase::recompute),
                   cases::matrix_flops(full, Phase::forward) - 2.0 * 128 * 64 * 1024 / 2);
}

TEST(LowerRecompute, SelectiveRunsTheAttentionCoreAgain) {
  const Workload workload = lowered(small_gpt(3), {.tp = 2, .recompute = Recompute::selective});
  // Scores and context: 2 x 2 S^2 H / t per layer.
  EXPECT_DOUBLE_EQ(cases::matrix_flops(workload, Phase::recompute),
                   3 * 2 * 2.0 * 128 * 128 * 64 / 2);
  EXPECT_EQ(collectives(workload, 0, Axis::tp, CollectiveKind::all_reduce, Phase::recompute),
            Tally{});
}

TEST(LowerRecompute, ComesBeforeTheBackwardThatNeedsIt) {
  const Workload workload =
      lowered(small_gpt(1), {.recompute = Recompute::selective}, {.skip = {"fuse"}});
  std::vector<std::string> names;
  for (const Node& node : workload.programs[0].templates[1].nodes) {
    names.push_back(node.name);
  }
  const auto at = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name);
  };
  EXPECT_LT(at("proj_gemm_weight_gradient"), at("score_gemm_again"));
  EXPECT_LT(at("score_gemm_again"), at("context_gemm_again"));
  EXPECT_LT(at("context_gemm_again"), at("context_gemm_left_gradient"));
  EXPECT_NE(at("context_gemm_left_gradient"), names.end());
}

// ---- Data parallelism and ZeRO.

Plan data_parallel(std::int64_t zero, bool overlap) {
  return {.dp = 4,
          .global_batch = 4 * 3,
          .zero = zero,
          .overlap_grad_reduce = overlap,
          .overlap_param_gather = overlap && zero >= 1};
}
constexpr std::int64_t kAll = 2 * kLayer + kEmbedding + kNorm;

TEST(LowerGradients, OneAllReduceAtTheEndOfTheStep) {
  const Workload workload = lowered(small_gpt(2), data_parallel(0, false));
  EXPECT_EQ(collectives(workload, 0, Axis::dp, CollectiveKind::all_reduce, Phase::optimizer),
            (Tally{1, 4_B * kAll}));
  EXPECT_EQ(collectives(workload, 0, Axis::dp, CollectiveKind::all_reduce, Phase::backward),
            Tally{});
}

TEST(LowerGradients, OverlappedOncePerBlockInTheLastBackward) {
  const Workload workload = lowered(small_gpt(2), data_parallel(0, true));
  EXPECT_EQ(collectives(workload, 0, Axis::dp, CollectiveKind::all_reduce, Phase::backward),
            (Tally{4, 4_B * kAll}));  // head, two layers, embedding
}

TEST(LowerGradients, BucketsHoldWholeBlocks) {
  // Head 512 B and layer 199,936 B reach 200,000 B together; then layer and embedding.
  Plan plan = data_parallel(0, true);
  plan.bucket = Bytes(200'000);
  EXPECT_EQ(collectives(lowered(small_gpt(2), plan), 0, Axis::dp, CollectiveKind::all_reduce,
                        Phase::backward),
            (Tally{2, 4_B * kAll}));
}

TEST(LowerZero, StageOneScattersGradientsAndGathersParametersOnce) {
  const Workload workload = lowered(small_gpt(2), data_parallel(1, false));
  EXPECT_EQ(collectives(workload, 0, Axis::dp, CollectiveKind::reduce_scatter, Phase::optimizer),
            (Tally{1, 4_B * kAll}));
  EXPECT_EQ(collectives(workload, 0, Axis::dp, CollectiveKind::all_gather, Phase::optimizer),
            (Tally{1, 2_B * kAll}));
}

TEST(LowerZero, StageOneOverlappedGathersDuringTheFirstForward) {
  const Workload workload = lowered(small_gpt(2), data_parallel(1, true));
  EXPECT_EQ(collectives(workload, 0, Axis::dp, CollectiveKind::all_gather, Phase::forward),
            (Tally{4, 2_B * kAll}));
  EXPECT_EQ(collectives(workload, 0, Axis::dp, CollectiveKind::all_gather, Phase::optimizer),
            Tally{});
}

TEST(LowerZero, StageTwoReducesEveryMicrobatch) {
  for (const bool overlap : {false, true}) {
    const Workload workload = lowered(small_gpt(2), data_parallel(2, overlap));
    EXPECT_EQ(
        collectives(workload, 0, Axis::dp, CollectiveKind::reduce_scatter, Phase::backward).bytes,
        3 * 4_B * kAll);
  }
}

TEST(LowerZero, StageThreeGathersEveryBlockTwicePerMicrobatch) {
  for (const bool overlap : {false, true}) {
    const Workload workload = lowered(small_gpt(2), data_parallel(3, overlap));
    const Tally gathers{3 * 4, 3 * 2_B * kAll};  // 3 microbatches, 4 blocks
    EXPECT_EQ(collectives(workload, 0, Axis::dp, CollectiveKind::all_gather, Phase::forward),
              gathers);
    EXPECT_EQ(collectives(workload, 0, Axis::dp, CollectiveKind::all_gather, Phase::backward),
              gathers);
  }
}

TEST(LowerZero, StageThreeGathersTheNextBlockWhileThisOneRuns) {
  const Workload workload = lowered(small_gpt(2), data_parallel(3, true));
  const Template& forward = workload.programs[0].templates[0];
  // gather embedding, gather layer 0, embedding's compute, gather layer 1, layer 0 ...
  EXPECT_EQ(forward.nodes[0].stream, Stream::dp);
  EXPECT_EQ(forward.nodes[1].stream, Stream::dp);
  EXPECT_EQ(forward.nodes[2].kind, Node::Kind::compute);
  EXPECT_EQ(forward.nodes[2].after, std::vector<int>{0});
  EXPECT_EQ(forward.nodes[3].stream, Stream::dp);
  EXPECT_EQ(forward.nodes[3].after, std::vector<int>{2});
  EXPECT_EQ(forward.nodes[4].after, std::vector<int>{1});
}

TEST(LowerOptimizer, AdamMovesThirtyBytesPerLocalParameter) {
  // Gradient 4, master and two moments read and written 24, bf16 parameter 2; a quarter with ZeRO.
  for (const std::int64_t zero : {0, 1}) {
    const Workload workload = lowered(small_gpt(2), data_parallel(zero, false), {.skip = {"fuse"}});
    EXPECT_EQ(find_node(workload, "adam")->operators[0].bytes,
              Bytes(30 * (zero == 0 ? kAll : kAll / 4)));
  }
}

// ---- Pipeline.

Plan pipelined(std::int64_t pp, std::int64_t microbatches) {
  return {.pp = pp, .global_batch = microbatches};
}

TEST(LowerPipeline, NeighboursExchangeTheBoundaryOncePerMicrobatch) {
  const Workload workload = lowered(small_gpt(4), pipelined(4, 6));
  const Tally each{6, 6 * kBoundary};
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(sends(workload, stage, Channel::forward), stage < 3 ? each : Tally{});
    EXPECT_EQ(sends(workload, stage, Channel::backward), stage > 0 ? each : Tally{});
  }
}

TEST(LowerPipeline, InterleavedStagesSendOncePerChunk) {
  Plan plan = pipelined(2, 4);
  plan.schedule = Schedule::interleaved;
  plan.chunks = 2;
  const Workload workload = lowered(small_gpt(4), plan);
  // 4 parts, 3 boundaries: stage 0 sends after parts 0 and 2, stage 1 after part 1.
  EXPECT_EQ(sends(workload, 0, Channel::forward).count, 8);
  EXPECT_EQ(sends(workload, 1, Channel::forward).count, 4);
}

TEST(LowerPipeline, ScatterGatherSendsAShareAndGathersIt) {
  Plan plan = pipelined(2, 3);
  plan.tp = 2;
  plan.pipeline_send = PipelineSend::scatter_gather;
  const Workload workload = lowered(small_gpt(2), plan);
  EXPECT_EQ(sends(workload, 0, Channel::forward), (Tally{3, 3 * kBoundary / 2}));
  EXPECT_EQ(collectives(workload, 1, Axis::tp, CollectiveKind::all_gather, Phase::forward),
            (Tally{3, 3 * kBoundary}));
  EXPECT_EQ(collectives(workload, 0, Axis::tp, CollectiveKind::all_gather, Phase::backward),
            (Tally{3, 3 * kBoundary}));
}

TEST(LowerPipeline, SequenceParallelSendsAShareWithoutGathering) {
  Plan plan = pipelined(2, 3);
  plan.tp = 2;
  plan.sequence_parallel = true;
  const Workload workload = lowered(small_gpt(2), plan);
  EXPECT_EQ(sends(workload, 0, Channel::forward), (Tally{3, 3 * kBoundary / 2}));
  // One layer's two and the logits' gather.
  EXPECT_EQ(collectives(workload, 1, Axis::tp, CollectiveKind::all_gather, Phase::forward).count,
            3 * 3);
}

TEST(LowerPipeline, ComputeWaitsForItsSendUnlessOverlapped) {
  Plan plan = pipelined(2, 3);
  const auto waits = [&] {
    std::int64_t count = 0;
    each_node(lowered(small_gpt(2), plan), 0,
              [&](const Node& node) { count += node.name == "wait_send" ? 1 : 0; });
    return count;
  };
  EXPECT_EQ(waits(), 3);
  plan.overlap_p2p = true;
  EXPECT_EQ(waits(), 0);
}

TEST(LowerPipeline, HostSynchronisesOnEveryMessage) {
  Plan plan = pipelined(2, 3);
  plan.p2p_host_sync = true;
  std::int64_t synchronised = 0;
  each_node(lowered(small_gpt(2), plan), 0,
            [&](const Node& node) { synchronised += node.host_sync ? 1 : 0; });
  EXPECT_EQ(synchronised, 3 + 3);  // sends forward, receives backward
}

TEST(LowerPipeline, TiedEmbeddingIsReducedBetweenFirstAndLastStage) {
  const Workload workload = lowered(small_gpt(3), pipelined(3, 3));
  const auto tally = [&](int role) {
    return collectives(workload, role, Axis::embedding, CollectiveKind::all_reduce,
                       Phase::optimizer);
  };
  EXPECT_EQ(tally(0), (Tally{1, 4_B * kTable}));
  EXPECT_EQ(tally(1), Tally{});
  EXPECT_EQ(tally(2), (Tally{1, 4_B * kTable}));
}

TEST(LowerPipeline, UntiedOrUnsplitModelsReduceNoEmbedding) {
  for (const Workload& workload :
       {lowered(small_llama(3), pipelined(3, 3)), lowered(small_gpt(3), pipelined(1, 3))}) {
    each_node(workload, 0, [](const Node& node) { EXPECT_NE(node.stream, Stream::embedding); });
  }
}

TEST(LowerPipeline, StagesMayHoldOnlyEmbeddingOrHead) {
  Plan plan = pipelined(4, 4);
  plan.stage_layers = "0,2,1,0";
  const Model model = small_gpt(3);
  const Workload workload = lowered(model, plan);
  EXPECT_DOUBLE_EQ(cases::matrix_flops(workload, Phase::forward),
                   4 * cases::model_matrix_flops(model, plan));
}

TEST(LowerPipeline, TemplatesDoNotGrowWithMicrobatches) {
  const Workload few = lowered(small_gpt(4), pipelined(4, 4));
  const Workload many = lowered(small_gpt(4), pipelined(4, 4000));
  for (std::size_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(few.programs[stage].templates.size(), many.programs[stage].templates.size());
  }
  EXPECT_EQ(statistics(many).instances, 4 * (2 * 4000 + 1));
}

// ---- The driver.

TEST(Lower, ObservesEveryPassInOrder) {
  std::vector<std::string> seen;
  const LowerOptions options{
      .observe = [&](const std::string& pass, const Workload&) { seen.push_back(pass); }};
  lowered(small_gpt(2), {.tp = 2, .pp = 2, .dp = 2, .global_batch = 4}, options);
  std::vector<std::string> names;
  for (const PassName& pass : lowering_passes()) {
    names.push_back(pass.name);
  }
  EXPECT_EQ(seen, names);
}

TEST(Lower, SkippedPassesLeaveTheirWorkOut) {
  const Workload workload =
      lowered(small_gpt(2), {.dp = 2, .global_batch = 2}, {.skip = {"gradients", "optimizer"}});
  each_node(workload, 0, [](const Node& node) {
    EXPECT_NE(node.kind, Node::Kind::collective);
    EXPECT_TRUE(node.operators.empty() || node.phase != Phase::optimizer);
  });
}

TEST(Lower, RefusesUnknownAndRequiredPasses) {
  const auto skipping = [](const char* pass) {
    return lower(small_gpt(2), {}, {.skip = {pass}}).error().to_string();
  };
  EXPECT_THAT(skipping("fusee"), HasSubstr("did you mean 'fuse'?"));
  EXPECT_THAT(skipping("pipeline"), HasSubstr("every later one builds on this"));
}

// ---- Laws over all plans.

RC_GTEST_PROP(LowerLaws, ForwardWorkIsTheModelsDividedOverTheRanks, ()) {
  const cases::Case c = *cases::any_case();
  const Workload workload = lowered(c.model, c.plan);
  const double microbatches = static_cast<double>(c.plan.microbatches());
  const double whole = microbatches * cases::model_matrix_flops(c.model, c.plan);
  const double tp = static_cast<double>(c.plan.tp);
  RC_ASSERT(std::abs(tp * cases::matrix_flops(workload, Phase::forward) - whole) < 1e-9 * whole);
}

RC_GTEST_PROP(LowerLaws, EveryPassVerifiesAndFusionKeepsWorkAndMessages, ()) {
  const cases::Case c = *cases::any_case();
  WorkloadStatistics before;
  WorkloadStatistics after;
  const LowerOptions options{.observe = [&](const std::string& pass, const Workload& workload) {
    (pass == "fuse" ? after : before) = statistics(workload);
  }};
  lowered(c.model, c.plan, options);
  RC_ASSERT(before.instances == after.instances);
  RC_ASSERT(after.nodes < before.nodes);
  RC_ASSERT(std::abs(after.flops.value() - before.flops.value()) <= 1e-9 * before.flops.value());
}

RC_GTEST_PROP(LowerLaws, BackwardMatrixWorkIsTwiceForward, ()) {
  cases::Case c = *cases::any_case();
  c.plan.attention = AttentionKernel::unfused;  // flash recomputes the scores: 5/2
  const Workload workload = lowered(c.model, c.plan);
  const double forward = cases::matrix_flops(workload, Phase::forward);
  RC_ASSERT(std::abs(cases::matrix_flops(workload, Phase::backward) - 2 * forward) <
            1e-9 * forward);
}

}  // namespace
}  // namespace orrery
