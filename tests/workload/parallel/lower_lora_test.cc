// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cases.h"
#include "workload/plan/lora.h"

namespace orrery {
namespace {

using cases::collectives;
using cases::each_node;
using cases::find_node;
using cases::kBoundary;
using cases::kEmbedding;
using cases::kHidden;
using cases::kLayer;
using cases::kNorm;
using cases::kTokens;
using cases::kWords;
using cases::lowered;
using cases::matrix_flops;
using cases::small_gpt;
using cases::small_llama;
using cases::Tally;
using testing::HasSubstr;

constexpr std::int64_t kRank = 4;
/// Of qkv_gemm, 64 x 192: A 64 x 4, B 4 x 192.
constexpr std::int64_t kAdapter = kRank * (kHidden + 3 * kHidden);

Plan adapted(const std::string& targets = "attention_qkv") {
  Plan plan;
  plan.lora_rank = kRank;
  plan.lora_targets = targets;
  return plan;
}

Plan adapted_over_data(std::int64_t zero) {
  Plan plan = adapted();
  plan.dp = plan.global_batch = 2;
  plan.zero = zero;
  return plan;
}

Workload unfused(const Model& model, const Plan& plan) {
  return lowered(model, plan, {.skip = {"fuse"}});
}

const Operator& operator_named(const Workload& workload, const std::string& name) {
  const Node* node = find_node(workload, name);
  EXPECT_NE(node, nullptr) << name;
  return node->operators[0];
}

TEST(LowerLora, BackwardDoesEveryFrozenGemmOnce) {
  // Weights: 2 T (12 H^2 + V H) forward and once more backward, instead of twice. Scores and
  // context: 2 x 2 S S H, twice backward. Adapter: 2 T x 1024, twice backward.
  const double weights = 2.0 * kTokens * (12 * kHidden * kHidden + kWords * kHidden);
  const double core = 4.0 * kTokens * kTokens * kHidden;
  const double adapter = 2.0 * kTokens * kAdapter;
  const Workload workload = lowered(small_gpt(1), adapted());
  EXPECT_DOUBLE_EQ(matrix_flops(workload, StepPhase::forward), weights + core + adapter);
  EXPECT_DOUBLE_EQ(matrix_flops(workload, StepPhase::backward), weights + 2 * (core + adapter));
}

TEST(LowerLora, AdaptersAddTheirResultAndTheirInputsGradient) {
  // Scale (2) and sum (3) of T x 192 in bf16; backward 2, and 3 of T x 64 for the input's.
  const Workload workload = unfused(small_gpt(1), adapted());
  EXPECT_EQ(operator_named(workload, "qkv_gemm_lora_sum").bytes, Bytes(5 * 2 * kTokens * 192));
  EXPECT_EQ(operator_named(workload, "qkv_gemm_lora_sum_backward").bytes,
            Bytes(2 * 2 * kTokens * 192));
  EXPECT_EQ(operator_named(workload, "qkv_gemm_lora_join_backward").bytes,
            Bytes(3 * 2 * kTokens * 64));
}

TEST(LowerLora, AllMeansEveryMatrixOfTheLayers) {
  // r (in + out) of 64 x 192, 64 x 64, 64 x 256, 256 x 64: 4 x (256 + 128 + 320 + 320).
  Plan plan = adapted("all");
  EXPECT_EQ(operator_named(unfused(small_gpt(1), plan), "adam").bytes, Bytes(28 * 4 * 1024));
  plan.lora_targets = "attention_dense,mlp";
  EXPECT_EQ(operator_named(unfused(small_gpt(1), plan), "adam").bytes, Bytes(28 * 4 * 768));
}

TEST(LowerLora, TheEmbeddingHasNoBackward) {
  const Workload workload = unfused(small_gpt(1), adapted());
  EXPECT_EQ(find_node(workload, "embedding_backward"), nullptr);
  EXPECT_EQ(find_node(workload, "embedding_gradient_zero"), nullptr);
}

TEST(LowerLora, TheTiedTableIsNotReduced) {
  Plan plan = adapted();
  plan.pp = plan.global_batch = 2;
  const Workload workload = lowered(small_gpt(2), plan);
  EXPECT_EQ(
      collectives(workload, 0, Axis::embedding, CollectiveKind::all_reduce, StepPhase::optimizer),
      Tally{});
}

TEST(LowerLora, OnlyAdaptersAreReducedOverData) {
  // fp32 gradients of 1024 parameters a layer.
  const Workload workload = lowered(small_gpt(3), adapted_over_data(0));
  EXPECT_EQ(collectives(workload, 0, Axis::dp, CollectiveKind::all_reduce, StepPhase::optimizer),
            (Tally{1, Bytes(4 * 3 * kAdapter)}));
}

TEST(LowerLora, ZeroOneGathersWhatWasUpdatedAndZeroThreeEverything) {
  const auto gathered = [](const Plan& plan, StepPhase phase) {
    return collectives(lowered(small_gpt(1), plan), 0, Axis::dp, CollectiveKind::all_gather, phase);
  };
  EXPECT_EQ(gathered(adapted_over_data(1), StepPhase::optimizer), (Tally{1, Bytes(2 * kAdapter)}));
  EXPECT_EQ(gathered(adapted_over_data(3), StepPhase::forward).bytes,
            Bytes(2 * (kEmbedding + kLayer + kNorm + kAdapter)));
}

TEST(LowerLora, WholeMatricesOfAdaptersAreSummedOverTensorParallelRanks) {
  // A of qkv_gemm (64 x 4) and B of proj_gemm (4 x 64) in fp32, and the norm's one value.
  for (const bool sequence_parallel : {false, true}) {
    Plan plan = adapted("attention");
    plan.tp = 2;
    plan.sequence_parallel = sequence_parallel;
    EXPECT_EQ(collectives(lowered(small_gpt(1), plan), 0, Axis::tp, CollectiveKind::all_reduce,
                          StepPhase::optimizer),
              (Tally{2, Bytes(4 * 512 + 4)}));
  }
}

TEST(LowerLora, TensorParallelRanksShareTheSplitMatrices) {
  // Of qkv_gemm a rank has the whole A and half of B: 64 x 4 + 4 x 96. Of proj_gemm half of A,
  // 32 x 4, and the whole B, 4 x 64.
  Plan plan = adapted("attention");
  plan.tp = 2;
  const Workload workload = unfused(small_gpt(1), plan);
  EXPECT_EQ(operator_named(workload, "qkv_gemm_lora_a").gemm,
            (GemmShape{.m = kTokens, .n = 4, .k = 64}));
  EXPECT_EQ(operator_named(workload, "qkv_gemm_lora_b").gemm,
            (GemmShape{.m = kTokens, .n = 96, .k = 4}));
  EXPECT_EQ(operator_named(workload, "proj_gemm_lora_a").gemm,
            (GemmShape{.m = kTokens, .n = 4, .k = 32}));
  EXPECT_EQ(operator_named(workload, "proj_gemm_lora_b").gemm,
            (GemmShape{.m = kTokens, .n = 64, .k = 4}));
  EXPECT_EQ(operator_named(workload, "adam").bytes, Bytes(28 * (640 + 384)));
}

TEST(LowerLora, InputsAreGatheredAgainForAdaptersOnly) {
  // Backward with sequence parallelism: output gradients of proj and fc2, and the input of qkv;
  // that of fc1 and of the logits serves no weight gradient.
  Plan plan = adapted();
  plan.tp = 2;
  plan.sequence_parallel = true;
  EXPECT_EQ(collectives(lowered(small_gpt(1), plan), 0, Axis::tp, CollectiveKind::all_gather,
                        StepPhase::backward),
            (Tally{3, kBoundary * 3}));
}

TEST(LowerLora, FrozenOperandsAreQuantisedOnce) {
  // fc1's output gradient, T x 256: reads 2 bytes, writes one copy; the adapter stays in bf16.
  Plan plan = adapted();
  plan.quantization = Quantization::fp8_current;
  plan.tp = 1;
  const Workload workload = unfused(small_gpt(1), plan);
  // Its maximum is one more read.
  EXPECT_EQ(operator_named(workload, "fc1_gemm_quantize_gradient").bytes,
            Bytes(kTokens * 256 * (2 + 2 + 1)));
  EXPECT_EQ(operator_named(workload, "qkv_gemm_lora_b").type, DataType::bf16);
  EXPECT_EQ(operator_named(workload, "fc1_gemm_input_gradient").type, DataType::fp8);
}

RC_GTEST_PROP(LowerLora, EveryWeightGradientIsAnAdapters, ()) {
  cases::Case c = *cases::any_case();
  RC_PRE(c.plan.schedule <= Schedule::interleaved && c.model.experts == 0);
  c.plan.tp_chunks = 1;
  c.plan.recompute_modules.clear();
  c.plan.recompute_layers = 0;
  c.plan.lora_rank = kRank;
  c.plan.lora_targets = *rc::gen::element<std::string>("all", "attention_qkv", "mlp_fc2");
  const Workload workload = unfused(c.model, c.plan);
  std::int64_t found = 0;
  for (int role = 0; role < static_cast<int>(workload.roles.size()); ++role) {
    each_node(workload, role, [&](const Node& node) {
      const bool gradient = node.name.find("_weight_gradient") != std::string::npos;
      RC_ASSERT(!gradient || node.name.find("_lora_") != std::string::npos);
      found += gradient ? 1 : 0;
    });
  }
  RC_ASSERT(found > 0);
}

}  // namespace
}  // namespace orrery
