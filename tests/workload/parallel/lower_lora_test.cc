// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cases.h"
#include "graph/workload.h"
#include "workload/plan/lora.h"

namespace orrery::parallel {
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
/// The adapter of qkv_gemm, 64 x 192: A 64 x 4, B 4 x 192.
constexpr std::int64_t kAdapter = kRank * (kHidden + 3 * kHidden);

plan::Plan adapted(const std::string& targets = "attention_qkv") {
  plan::Plan plan;
  plan.lora_rank = kRank;
  plan.lora_targets = targets;
  return plan;
}

plan::Plan adapted_over_data(std::int64_t zero) {
  plan::Plan plan = adapted();
  plan.dp = plan.global_batch = 2;
  plan.zero = zero;
  return plan;
}

graph::Workload unfused(const zoo::Model& model, const plan::Plan& plan) {
  return lowered(model, plan, {.skip = {"fuse"}});
}

const graph::Operator& operator_named(const graph::Workload& workload, const std::string& name) {
  const graph::Node* node = find_node(workload, name);
  EXPECT_NE(node, nullptr) << name;
  return node->operators[0];
}

TEST(LowerLora, BackwardDoesEveryFrozenGemmOnce) {
  // Weights: 2 T (12 H^2 + V H) forward and once more backward, instead of twice. Scores and
  // context: 2 x 2 S S H, twice backward. Adapter: 2 T x 1024, twice backward.
  const double weights = 2.0 * kTokens * (12 * kHidden * kHidden + kWords * kHidden);
  const double core = 4.0 * kTokens * kTokens * kHidden;
  const double adapter = 2.0 * kTokens * kAdapter;
  const graph::Workload workload = lowered(small_gpt(1), adapted());
  EXPECT_DOUBLE_EQ(matrix_flops(workload, plan::StepPhase::forward), weights + core + adapter);
  EXPECT_DOUBLE_EQ(matrix_flops(workload, plan::StepPhase::backward),
                   weights + 2 * (core + adapter));
}

TEST(LowerLora, AdaptersAddTheirResultAndTheirInputsGradient) {
  // Scale (2) and sum (3) of T x 192 in bf16; backward 2, and 3 of T x 64 for the input's.
  const graph::Workload workload = unfused(small_gpt(1), adapted());
  EXPECT_EQ(operator_named(workload, "qkv_gemm_lora_sum").bytes, Bytes(5 * 2 * kTokens * 192));
  EXPECT_EQ(operator_named(workload, "qkv_gemm_lora_sum_backward").bytes,
            Bytes(2 * 2 * kTokens * 192));
  EXPECT_EQ(operator_named(workload, "qkv_gemm_lora_join_backward").bytes,
            Bytes(3 * 2 * kTokens * 64));
}

TEST(LowerLora, DropoutReadsTheInputAndWritesItWithAByteAnElement) {
  // 2 + 2 + 1 bytes of T x 64, backward as much; A then reads what is left.
  plan::Plan plan = adapted();
  EXPECT_EQ(find_node(unfused(small_gpt(1), plan), "qkv_gemm_lora_dropout"), nullptr);
  plan.lora_dropout = 0.1;
  const graph::Workload workload = unfused(small_gpt(1), plan);
  EXPECT_EQ(operator_named(workload, "qkv_gemm_lora_dropout").bytes, Bytes(5 * kTokens * 64));
  EXPECT_EQ(operator_named(workload, "qkv_gemm_lora_dropout_backward").bytes,
            Bytes(5 * kTokens * 64));
}

/// A reads what W reads and writes T x r; B reads that, and W adds what B's sum makes.
TEST(LowerLora, AnAdapterStandsBetweenTheInputAndTheResultOfItsProduct) {
  const plan::Plan plan = adapted();
  const zoo::Model model = small_gpt(1);
  const zoo::ModelGraph block = plan::with_adapters(
      zoo::layer_graph(model, plan::shape_options(model, plan)), plan, plan::kFirstLayerBlock);
  const auto named = [&](const std::string& name) {
    return *std::ranges::find(block.operators, name, &zoo::ModelOperator::name);
  };
  const zoo::ModelOperator product = named("qkv_gemm");
  const zoo::ModelOperator down = named("qkv_gemm_lora_a");
  const zoo::ModelOperator up = named("qkv_gemm_lora_b");
  const zoo::ModelOperator sum = named("qkv_gemm_lora_sum");
  EXPECT_EQ(down.reads.front(), product.reads.front());
  EXPECT_EQ(block.tensors[static_cast<std::size_t>(down.writes.front())].bytes(),
            graph::bytes_of(plan.compute_type, kTokens * kRank));
  EXPECT_EQ(up.reads.front(), down.writes.front());
  EXPECT_EQ(sum.reads.front(), up.writes.front());
  EXPECT_EQ(std::ranges::count(product.reads, sum.writes.front()), 1);
  EXPECT_TRUE(product.saves.empty());  // the adapter keeps the input
  EXPECT_EQ(down.saves.front(), product.reads.front());
}

TEST(LowerLora, AllMeansEveryMatrixOfTheLayers) {
  // r (in + out) of 64 x 192, 64 x 64, 64 x 256, 256 x 64: 4 x (256 + 128 + 320 + 320).
  plan::Plan plan = adapted("all");
  EXPECT_EQ(operator_named(unfused(small_gpt(1), plan), "adam").bytes, Bytes(28 * 4 * 1024));
  plan.lora_targets = "attention_dense,mlp";
  EXPECT_EQ(operator_named(unfused(small_gpt(1), plan), "adam").bytes, Bytes(28 * 4 * 768));
}

/// Trained parameters of a shipped model with adapters of rank 16 on all matrices.
std::int64_t adapter_parameters(const std::string& name, plan::Autograd autograd) {
  plan::Plan plan;
  plan.lora_rank = 16;
  plan.autograd = autograd;
  return plan::adapter_parameters(*zoo::load_model(name), plan);
}

TEST(LowerLora, PeftAdaptsEveryMatrixOfTransformers) {
  // Llama 3 8B, a layer: q, o 16 (4096 + 4096), k, v 16 (4096 + 1024), gate, up, down 16 (4096 +
  // 14336): 1,310,720, times 32. With q, k, v and gate, up in one matrix each 3 inputs of 4096 are
  // left out: 196,608 less. Llama 2 7B alike, with k, v of 4096 and 11008.
  using enum plan::Autograd;
  EXPECT_EQ(adapter_parameters("llama-3-8b", hugging_face), 41'943'040);
  EXPECT_EQ(adapter_parameters("llama-3-8b", pytorch), 35'651'584);
  EXPECT_EQ(adapter_parameters("llama-2-7b", hugging_face), 39'976'960);
  EXPECT_EQ(adapter_parameters("llama-2-7b", transformer_engine), 33'685'504);
}

TEST(LowerLora, EveryMatrixOfTransformersHasItsOwnLaunches) {
  // q, k and v have A and B each; in one fused matrix there is one of both.
  plan::Plan plan = adapted("all");
  const graph::Workload fused = unfused(small_llama(1), plan);
  plan.autograd = plan::Autograd::hugging_face;
  const graph::Workload apart = unfused(small_llama(1), plan);
  for (const char* name : {"qkv_gemm_lora_a", "qkv_gemm_lora_b", "qkv_gemm_lora_a_input_gradient",
                           "qkv_gemm_lora_b_weight_gradient"}) {
    EXPECT_EQ(operator_named(fused, name).kernels, 1) << name;
    EXPECT_EQ(operator_named(apart, name).kernels, 3) << name;
  }
  // Of each matrix, in bytes an element: forward the product (4 + 4), the sum (4 + 2 + 4), the cast
  // (4 + 2); backward the cast of dY (2 + 4), of the gradient of W's result (4 + 2), the product (4
  // + 4).
  const graph::Operator& sum = operator_named(apart, "qkv_gemm_lora_sum_backward");
  EXPECT_EQ(sum.kernels, 9);
  EXPECT_EQ(24 * sum.bytes, 20 * operator_named(apart, "qkv_gemm_lora_sum").bytes);
}

TEST(LowerLora, TheEmbeddingHasNoBackward) {
  const graph::Workload workload = unfused(small_gpt(1), adapted());
  EXPECT_EQ(find_node(workload, "embedding_backward"), nullptr);
  EXPECT_EQ(find_node(workload, "embedding_gradient_zero"), nullptr);
}

TEST(LowerLora, TheTiedTableIsNotReduced) {
  plan::Plan plan = adapted();
  plan.pp = plan.global_batch = 2;
  const graph::Workload workload = lowered(small_gpt(2), plan);
  EXPECT_EQ(collectives(workload, 0, plan::Axis::embedding, graph::CollectiveKind::all_reduce,
                        plan::StepPhase::optimizer),
            Tally{});
}

TEST(LowerLora, OnlyAdaptersAreReducedOverData) {
  // fp32 gradients of 1024 parameters a layer.
  const graph::Workload workload = lowered(small_gpt(3), adapted_over_data(0));
  EXPECT_EQ(collectives(workload, 0, plan::Axis::dp, graph::CollectiveKind::all_reduce,
                        plan::StepPhase::optimizer),
            (Tally{1, Bytes(4 * 3 * kAdapter)}));
}

TEST(LowerLora, ZeroOneGathersWhatWasUpdatedAndZeroThreeEverything) {
  const auto gathered = [](const plan::Plan& plan, plan::StepPhase phase) {
    return collectives(lowered(small_gpt(1), plan), 0, plan::Axis::dp,
                       graph::CollectiveKind::all_gather, phase);
  };
  EXPECT_EQ(gathered(adapted_over_data(1), plan::StepPhase::optimizer),
            (Tally{1, Bytes(2 * kAdapter)}));
  EXPECT_EQ(gathered(adapted_over_data(3), plan::StepPhase::forward).bytes,
            Bytes(2 * (kEmbedding + kLayer + kNorm + kAdapter)));
}

TEST(LowerLora, WholeMatricesOfAdaptersAreSummedOverTensorParallelRanks) {
  // A of qkv_gemm (64 x 4) and B of proj_gemm (4 x 64) in fp32, and the norm's one value.
  for (const bool sequence_parallel : {false, true}) {
    plan::Plan plan = adapted("attention");
    plan.tp = 2;
    plan.sequence_parallel = sequence_parallel;
    EXPECT_EQ(collectives(lowered(small_gpt(1), plan), 0, plan::Axis::tp,
                          graph::CollectiveKind::all_reduce, plan::StepPhase::optimizer),
              (Tally{2, Bytes(4 * 512 + 4)}));
  }
}

TEST(LowerLora, TensorParallelRanksShareTheSplitMatrices) {
  // Of qkv_gemm a rank has the whole A and half of B: 64 x 4 + 4 x 96. Of proj_gemm half of A,
  // 32 x 4, and the whole B, 4 x 64.
  plan::Plan plan = adapted("attention");
  plan.tp = 2;
  const graph::Workload workload = unfused(small_gpt(1), plan);
  EXPECT_EQ(operator_named(workload, "qkv_gemm_lora_a").gemm,
            (graph::GemmShape{.m = kTokens, .n = 4, .k = 64}));
  EXPECT_EQ(operator_named(workload, "qkv_gemm_lora_b").gemm,
            (graph::GemmShape{.m = kTokens, .n = 96, .k = 4}));
  EXPECT_EQ(operator_named(workload, "proj_gemm_lora_a").gemm,
            (graph::GemmShape{.m = kTokens, .n = 4, .k = 32}));
  EXPECT_EQ(operator_named(workload, "proj_gemm_lora_b").gemm,
            (graph::GemmShape{.m = kTokens, .n = 64, .k = 4}));
  EXPECT_EQ(operator_named(workload, "adam").bytes, Bytes(28 * (640 + 384)));
}

TEST(LowerLora, InputsAreGatheredAgainForAdaptersOnly) {
  // Backward with sequence parallelism: output gradients of proj and fc2, and the input of qkv;
  // that of fc1 and of the logits serves no weight gradient.
  plan::Plan plan = adapted();
  plan.tp = 2;
  plan.sequence_parallel = true;
  EXPECT_EQ(collectives(lowered(small_gpt(1), plan), 0, plan::Axis::tp,
                        graph::CollectiveKind::all_gather, plan::StepPhase::backward),
            (Tally{3, kBoundary * 3}));
}

TEST(LowerLora, FrozenOperandsAreQuantisedOnce) {
  // fc1's output gradient, T x 256: reads 2 bytes, writes one copy; the adapter stays in bf16.
  plan::Plan plan = adapted();
  plan.quantization = plan::Quantization::fp8_current;
  plan.tp = 1;
  const graph::Workload workload = unfused(small_gpt(1), plan);
  // Its maximum is one more read.
  EXPECT_EQ(operator_named(workload, "fc1_gemm_quantize_gradient").bytes,
            Bytes(kTokens * 256 * (2 + 2 + 1)));
  EXPECT_EQ(operator_named(workload, "qkv_gemm_lora_b").type, graph::DataType::bf16);
  EXPECT_EQ(operator_named(workload, "fc1_gemm_input_gradient").type, graph::DataType::fp8);
}

RC_GTEST_PROP(LowerLora, EveryWeightGradientIsAnAdapters, ()) {
  cases::Case c = *cases::any_case();
  RC_PRE(c.plan.schedule <= plan::Schedule::interleaved && c.model.experts == 0);
  c.plan.recompute_modules.clear();
  c.plan.recompute_layers = 0;
  c.plan.lora_rank = kRank;
  c.plan.lora_targets = *rc::gen::element<std::string>("all", "attention_qkv", "mlp_fc2");
  const graph::Workload workload = unfused(c.model, c.plan);
  std::int64_t found = 0;
  for (int role = 0; role < static_cast<int>(workload.roles.size()); ++role) {
    each_node(workload, role, [&](const graph::Node& node) {
      const bool gradient = node.name.find("_weight_gradient") != std::string::npos;
      RC_ASSERT(!gradient || node.name.find("_lora_") != std::string::npos);
      found += gradient ? 1 : 0;
    });
  }
  RC_ASSERT(found > 0);
}

}  // namespace
}  // namespace orrery::parallel
