// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "cases.h"
#include "workload/parallel/lower.h"

namespace orrery::parallel {
namespace {

using cases::collectives;
using cases::each_node;
using cases::find_node;
using cases::kBoundary;
using cases::kHidden;
using cases::kNorm;
using cases::kTokens;
using cases::lowered;
using cases::small_gpt;
using cases::Tally;

// ---- Tensor parallelism.

TEST(LowerTensor, AllReducesTwicePerLayerAndDirection) {
  // Forward: embedding 1, 3 layers x 2, loss 3 of S fp32 values. Backward: 3 x 2, logits 1.
  const graph::Workload workload = lowered(small_gpt(3), {.tp = 2});
  EXPECT_EQ(collectives(workload, 0, plan::Axis::tp, graph::CollectiveKind::all_reduce,
                        plan::StepPhase::forward),
            (Tally{10, 7 * kBoundary + Bytes(3 * kTokens * 4)}));
  EXPECT_EQ(collectives(workload, 0, plan::Axis::tp, graph::CollectiveKind::all_reduce,
                        plan::StepPhase::backward),
            (Tally{7, 7 * kBoundary}));
}

TEST(LowerTensor, SequenceParallelGathersAndScattersInstead) {
  // Forward gathers: 3 layers x 2 and logits; scatters: embedding and 3 x 2. Backward gathers:
  // every conjugate of a scatter (7) and the saved input of every column GEMM (7); scatters: 7.
  const graph::Workload workload = lowered(small_gpt(3), {.tp = 2, .sequence_parallel = true});
  const auto tally = [&](graph::CollectiveKind kind, plan::StepPhase phase) {
    return collectives(workload, 0, plan::Axis::tp, kind, phase);
  };
  EXPECT_EQ(tally(graph::CollectiveKind::all_gather, plan::StepPhase::forward),
            (Tally{7, 7 * kBoundary}));
  EXPECT_EQ(tally(graph::CollectiveKind::reduce_scatter, plan::StepPhase::forward),
            (Tally{7, 7 * kBoundary}));
  EXPECT_EQ(tally(graph::CollectiveKind::all_gather, plan::StepPhase::backward),
            (Tally{14, 14 * kBoundary}));
  EXPECT_EQ(tally(graph::CollectiveKind::reduce_scatter, plan::StepPhase::backward),
            (Tally{7, 7 * kBoundary}));
}

TEST(LowerTensor, SequenceParallelSumsReplicatedGradientsOnce) {
  // Per layer two norms (4 H) and the biases after row GEMMs (2 H); position table 128 H; final
  // norm.
  const graph::Workload workload = lowered(small_gpt(3), {.tp = 2, .sequence_parallel = true});
  const std::int64_t replicated = 18 * kHidden + kTokens * kHidden + kNorm;
  EXPECT_EQ(collectives(workload, 0, plan::Axis::tp, graph::CollectiveKind::all_reduce,
                        plan::StepPhase::optimizer),
            (Tally{2, 4_B * replicated + 4_B}));  // and the gradient norm
}

TEST(LowerTensor, OneRankHasNoCollectives) {
  const graph::Workload workload = lowered(small_gpt(3), {});
  each_node(workload, 0,
            [](const graph::Node& node) { EXPECT_NE(node.kind, graph::Node::Kind::collective); });
}

TEST(LowerTensor, WeightGradientRunsBesideTheReductionOfTheInputGradient) {
  const graph::Workload workload = lowered(small_gpt(1), {.tp = 2}, {.skip = {"fuse"}});
  const graph::Template& backward = workload.program_of(0).templates[1];
  const auto at = [&](const std::string& name) {
    return std::find_if(backward.nodes.begin(), backward.nodes.end(),
                        [&](const graph::Node& node) { return node.name == name; }) -
           backward.nodes.begin();
  };
  const auto input = at("fc1_gemm_input_gradient");
  const auto& reduction = backward.nodes[static_cast<std::size_t>(input + 1)];
  const auto& weight = backward.nodes[static_cast<std::size_t>(input + 2)];
  EXPECT_EQ(reduction.kind, graph::Node::Kind::collective);
  EXPECT_EQ(reduction.after, std::vector<int>{static_cast<int>(input)});
  EXPECT_EQ(weight.name, "fc1_gemm_weight_gradient");
  EXPECT_TRUE(weight.after.empty());
  // The norm's backward needs the reduced gradient.
  const auto& norm = backward.nodes[static_cast<std::size_t>(at("mlp_norm_backward"))];
  EXPECT_EQ(norm.after, std::vector<int>{static_cast<int>(input + 1)});
}

TEST(LowerTensor, GemmBackwardHasTheTransposedShapes) {
  // fc1 at tp 2: C[128, 128] = A[128, 64] W[64, 128].
  const graph::Workload workload = lowered(small_gpt(1), {.tp = 2}, {.skip = {"fuse"}});
  const graph::GemmShape forward{1, 128, 128, 64};
  EXPECT_EQ(find_node(workload, "fc1_gemm")->operators[0].gemm, forward);
  EXPECT_EQ(find_node(workload, "fc1_gemm_input_gradient")->operators[0].gemm,
            (graph::GemmShape{1, 128, 64, 128}));
  EXPECT_EQ(find_node(workload, "fc1_gemm_weight_gradient")->operators[0].gemm,
            (graph::GemmShape{1, 64, 128, 128}));
  // Reads a bf16 gradient, reads and writes an fp32 buffer; W and its bias.
  EXPECT_EQ(find_node(workload, "fc1_gemm_accumulate")->operators[0].bytes,
            Bytes((kHidden * 128 + 128) * 10));
}

TEST(LowerTensor, FusedAccumulationLeavesOnlyTheBias) {
  const graph::Workload workload =
      lowered(small_gpt(1), {.tp = 2, .fused_grad_accumulation = true}, {.skip = {"fuse"}});
  EXPECT_EQ(find_node(workload, "fc1_gemm_accumulate")->operators[0].bytes, 128 * 10_B);
  // Operands 64 x 128 and 128 x 128 in bf16; the fp32 buffer 64 x 128 is read and written.
  EXPECT_EQ(find_node(workload, "fc1_gemm_weight_gradient")->operators[0].bytes,
            Bytes(2 * (kHidden * 128 + kTokens * 128) + 8 * kHidden * 128));
}

TEST(LowerTensor, NormsKnowTheirRowLengthAndBackwardKernelsTheirDirection) {
  plan::Plan plan;
  plan.attention = zoo::AttentionKernel::flash;
  plan.persistent_norm = false;
  const graph::Workload workload = lowered(small_gpt(1), plan, {.skip = {"fuse"}});
  EXPECT_EQ(find_node(workload, "input_norm")->operators[0].gemm.k, 64);
  EXPECT_FALSE(find_node(workload, "flash_attention")->operators[0].backward);
  EXPECT_TRUE(find_node(workload, "flash_attention_backward")->operators[0].backward);
}

TEST(LowerTensor, PersistentNormsAreAsFastForLongRows) {
  const graph::Workload workload =
      lowered(small_gpt(1), {.persistent_norm = true}, {.skip = {"fuse"}});
  EXPECT_EQ(find_node(workload, "input_norm")->operators[0].gemm.k, 0);
}

TEST(LowerTensor, WithoutOverlapComputeWaitsForEachReductionOfAnInputGradient) {
  // A layer has two reductions in backward (qkv and fc1 enter), the head one.
  const auto waits = [](bool overlap) {
    const graph::Workload workload =
        lowered(small_gpt(3), {.tp = 2, .overlap_tp = overlap}, {.skip = {"fuse"}});
    std::int64_t count = 0;
    for (const graph::Template& t : workload.program_of(0).templates) {
      count += std::count_if(t.nodes.begin(), t.nodes.end(),
                             [](const graph::Node& node) { return node.name == "tp_done"; });
    }
    return count;
  };
  EXPECT_EQ(waits(true), 0);
  EXPECT_EQ(waits(false), 2 * 3 + 1);
}

// ---- Chunked overlap.

TEST(LowerTensor, ChunksCutGemmsAndTheirCollectivesIntoPieces) {
  // One layer, sequence parallel, 4 pieces: forward gathers 2 x 4 and the logits' whole one,
  // scatters 2 x 4 and the embedding's; backward conjugate gathers of proj and fc2 2 x 4 and the
  // embedding's, saved inputs 2 + 1 whole. Bytes and FLOPs are those of one piece each.
  plan::Plan plan{.tp = 2, .sequence_parallel = true};
  const graph::Workload whole = lowered(small_gpt(1), plan);
  plan.tp_chunks = 4;
  const graph::Workload pieces = lowered(small_gpt(1), plan);
  const auto tally = [&](graph::CollectiveKind kind, plan::StepPhase phase) {
    return collectives(pieces, 0, plan::Axis::tp, kind, phase);
  };
  EXPECT_EQ(tally(graph::CollectiveKind::all_gather, plan::StepPhase::forward),
            (Tally{9, 3 * kBoundary}));
  EXPECT_EQ(tally(graph::CollectiveKind::reduce_scatter, plan::StepPhase::forward),
            (Tally{9, 3 * kBoundary}));
  EXPECT_EQ(tally(graph::CollectiveKind::all_gather, plan::StepPhase::backward),
            (Tally{12, 6 * kBoundary}));
  for (const plan::StepPhase phase : {plan::StepPhase::forward, plan::StepPhase::backward}) {
    EXPECT_DOUBLE_EQ(cases::matrix_flops(whole, phase), cases::matrix_flops(pieces, phase));
  }
}

TEST(LowerTensor, APieceOfAGemmWaitsForItsPieceOfTheGatherOnly) {
  // gather 0, gather 1, GEMM 0 (after gather 0), gather 2 (after GEMM 0, whose buffer it takes),
  // GEMM 1 (after gather 1), GEMM 2 (after gather 2).
  const graph::Workload workload = lowered(
      small_gpt(1), {.tp = 2, .sequence_parallel = true, .tp_chunks = 3}, {.skip = {"fuse"}});
  const std::vector<graph::Node>& nodes = workload.program_of(0).templates[0].nodes;
  std::vector<int> gathers;
  std::vector<int> gemms;
  for (int i = 0; i < static_cast<int>(nodes.size()) && gemms.size() < 3; ++i) {
    const graph::Node& node = nodes[static_cast<std::size_t>(i)];
    if (node.name == "tp_all_gather") {
      gathers.push_back(i);
    } else if (node.name == "qkv_gemm") {
      gemms.push_back(i);
    }
  }
  ASSERT_EQ(gathers.size(), 3);
  ASSERT_EQ(gemms.size(), 3);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(nodes[static_cast<std::size_t>(gemms[i])].after, std::vector<int>{gathers[i]});
  }
  EXPECT_EQ(nodes[static_cast<std::size_t>(gathers[2])].after, std::vector<int>{gemms[0]});
  // 128 rows in three pieces.
  EXPECT_EQ(nodes[static_cast<std::size_t>(gemms[0])].operators[0].gemm.m, 42);
  EXPECT_EQ(nodes[static_cast<std::size_t>(gemms[2])].operators[0].gemm.m, 43);
}

TEST(LowerTensor, ChunkedIsTpChunksOfAsManyPiecesAsRanks) {
  plan::Plan plan{.tp = 4, .sequence_parallel = true, .tp_chunks = 4};
  const graph::Workload stated = lowered(small_gpt(1), plan);
  plan.tp_chunks = 1;
  plan.overlap_tensor = plan::TensorOverlap::chunked;
  const graph::Workload chunked = lowered(small_gpt(1), plan);
  for (const plan::StepPhase phase : {plan::StepPhase::forward, plan::StepPhase::backward}) {
    for (const auto kind :
         {graph::CollectiveKind::all_gather, graph::CollectiveKind::reduce_scatter}) {
      EXPECT_EQ(collectives(chunked, 0, plan::Axis::tp, kind, phase),
                collectives(stated, 0, plan::Axis::tp, kind, phase));
    }
  }
}

TEST(LowerTensor, ChunksWithoutTensorParallelismAreRefused) {
  const Result<void> checked = plan::check({.tp_chunks = 2}, small_gpt(1));
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().to_string().find("tp_chunks: found '2', expected 1 without"),
            std::string::npos);
}

// ---- Recompute.

TEST(LowerRecompute, FullRunsEveryLayerForwardAgain) {
  const zoo::Model model = small_gpt(3);
  const graph::Workload full = lowered(model, {.tp = 2, .recompute = plan::Recompute::full});
  EXPECT_EQ(collectives(full, 0, plan::Axis::tp, graph::CollectiveKind::all_reduce,
                        plan::StepPhase::recompute),
            (Tally{6, 6 * kBoundary}));
  // All but the logits: 2 S H V / t.
  EXPECT_DOUBLE_EQ(cases::matrix_flops(full, plan::StepPhase::recompute),
                   cases::matrix_flops(full, plan::StepPhase::forward) - 2.0 * 128 * 64 * 1024 / 2);
}

TEST(LowerRecompute, SelectiveRunsTheAttentionCoreAgain) {
  const graph::Workload workload =
      lowered(small_gpt(3), {.tp = 2, .recompute = plan::Recompute::selective});
  // Scores and context: 2 x 2 S^2 H / t per layer.
  EXPECT_DOUBLE_EQ(cases::matrix_flops(workload, plan::StepPhase::recompute),
                   3 * 2 * 2.0 * 128 * 128 * 64 / 2);
  EXPECT_EQ(collectives(workload, 0, plan::Axis::tp, graph::CollectiveKind::all_reduce,
                        plan::StepPhase::recompute),
            Tally{});
}

TEST(LowerRecompute, ComesBeforeTheBackwardThatNeedsIt) {
  const graph::Workload workload =
      lowered(small_gpt(1), {.recompute = plan::Recompute::selective}, {.skip = {"fuse"}});
  std::vector<std::string> names;
  for (const graph::Node& node : workload.program_of(0).templates[1].nodes) {
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

}  // namespace
}  // namespace orrery::parallel
