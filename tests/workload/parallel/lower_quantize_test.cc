// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cases.h"
#include "workload/plan/quantize.h"

namespace orrery::parallel {
namespace {

using cases::collectives;
using cases::each_node;
using cases::find_node;
using cases::kBoundary;
using cases::kHidden;
using cases::kTokens;
using cases::lowered;
using cases::small_gpt;
using cases::Tally;

plan::Plan recipe(plan::Quantization quantization) {
  return {.quantization = quantization};
}

graph::Workload unfused_quantized(const plan::Plan& plan, std::int64_t layers = 1) {
  return lowered(small_gpt(layers), plan, {.skip = {"fuse"}});
}

const graph::Operator& quantized_operator(const graph::Workload& workload,
                                          const std::string& name) {
  const graph::Node* node = find_node(workload, name);
  EXPECT_NE(node, nullptr) << name;
  return node->operators[0];
}

std::int64_t count_nodes(const graph::Workload& workload, const std::string& part) {
  std::int64_t count = 0;
  each_node(workload, 0, [&](const graph::Node& node) {
    count += node.name.find(part) != std::string::npos ? 1 : 0;
  });
  return count;
}

TEST(LowerQuantize, OnlyTheWeightGemmsOfLayersRunInFewerBits) {
  // Four weights per layer, three GEMMs each; scores, context and logits stay in bf16.
  const graph::Workload workload = unfused_quantized(recipe(plan::Quantization::mxfp8), 2);
  std::int64_t quantized = 0;
  each_node(workload, 0, [&](const graph::Node& node) {
    for (const graph::Operator& op : node.operators) {
      quantized += op.kind == graph::OperatorKind::gemm && op.type == graph::DataType::fp8 ? 1 : 0;
    }
  });
  EXPECT_EQ(quantized, 2 * 4 * 3);
  EXPECT_EQ(quantized_operator(workload, "logits_gemm").type, graph::DataType::bf16);
  EXPECT_EQ(quantized_operator(workload, "score_gemm").type, graph::DataType::bf16);
  EXPECT_TRUE(quantized_operator(workload, "fc2_gemm_weight_gradient").block_scaled);
}

std::int64_t narrow_gemms(const graph::Workload& workload) {
  std::int64_t count = 0;
  each_node(workload, 0, [&](const graph::Node& node) {
    for (const graph::Operator& op : node.operators) {
      count += op.kind == graph::OperatorKind::gemm && graph::bits_of(op.type) < 16 ? 1 : 0;
    }
  });
  return count;
}

TEST(LowerQuantize, LayersAtTheEndsAndModulesStayInTheComputeType) {
  // Five layers of four weights, three GEMMs each: three layers are left, of these two weights.
  plan::Plan plan = recipe(plan::Quantization::nvfp4);
  EXPECT_EQ(narrow_gemms(unfused_quantized(plan, 5)), 5 * 4 * 3);
  plan.unquantized_start_layers = 1;
  plan.unquantized_end_layers = 1;
  EXPECT_EQ(narrow_gemms(unfused_quantized(plan, 5)), 3 * 4 * 3);
  plan.unquantized_modules = "attention";
  EXPECT_EQ(narrow_gemms(unfused_quantized(plan, 5)), 3 * 2 * 3);
  plan.unquantized_modules = "attention,fc2_gemm";
  EXPECT_EQ(narrow_gemms(unfused_quantized(plan, 5)), 3 * 1 * 3);
  plan.unquantized_modules = "attention,mlp";
  EXPECT_EQ(narrow_gemms(unfused_quantized(plan, 5)), 0);
}

std::vector<std::tuple<std::string, graph::DataType, Bytes>> all_operators(
    const graph::Workload& workload) {
  std::vector<std::tuple<std::string, graph::DataType, Bytes>> all;
  each_node(workload, 0, [&](const graph::Node& node) {
    for (const graph::Operator& op : node.operators) {
      all.emplace_back(node.name, op.type, op.bytes);
    }
  });
  return all;
}

TEST(LowerQuantize, WithAllLayersUnquantizedNothingIs) {
  const graph::Workload plain = unfused_quantized({}, 3);
  plan::Plan plan = recipe(plan::Quantization::mxfp8);
  for (const auto& [start, end] : {std::pair{0, 3}, std::pair{2, 1}, std::pair{3, 3}}) {
    plan.unquantized_start_layers = start;
    plan.unquantized_end_layers = end;
    EXPECT_EQ(all_operators(unfused_quantized(plan, 3)), all_operators(plain)) << start;
  }
}

TEST(LowerQuantize, TheRecipeChoosesTypeAndScaling) {
  EXPECT_TRUE(quantized_operator(unfused_quantized(recipe(plan::Quantization::fp8_block)),
                                 "fc2_gemm_weight_gradient")
                  .block_scaled);
  EXPECT_EQ(quantized_operator(unfused_quantized(recipe(plan::Quantization::nvfp4)),
                               "proj_gemm_input_gradient")
                .type,
            graph::DataType::fp4);
}

TEST(LowerQuantize, BackwardGemmsWithOneScalePerTensorSplitTheirSums) {
  // The split accumulator of Transformer Engine's input and weight gradients.
  for (const plan::Quantization quantization :
       {plan::Quantization::fp8_delayed, plan::Quantization::fp8_current}) {
    const graph::Workload workload = unfused_quantized(recipe(quantization));
    EXPECT_TRUE(quantized_operator(workload, "fc1_gemm_input_gradient").splits_sums);
    EXPECT_TRUE(quantized_operator(workload, "fc1_gemm_weight_gradient").splits_sums);
    const std::vector<graph::Node>& forward = workload.program_of(0).templates[0].nodes;
    for (const graph::Node& node : forward) {
      for (const graph::Operator& op : node.operators) {
        EXPECT_FALSE(op.splits_sums || op.block_scaled) << op.name;
      }
    }
  }
  const graph::Workload blocks = unfused_quantized(recipe(plan::Quantization::mxfp8));
  EXPECT_FALSE(quantized_operator(blocks, "fc1_gemm_input_gradient").splits_sums);
}

TEST(LowerQuantize, GemmsReadTheLowTypeAndWriteTheComputeType) {
  // proj: A[128, 64] and W[64, 64] of one byte, C[128, 64] of two.
  const graph::Workload workload = unfused_quantized(recipe(plan::Quantization::fp8_delayed));
  const graph::Node* gemm = nullptr;
  for (const graph::Node& node : workload.program_of(0).templates[0].nodes) {
    gemm = node.name == "proj_gemm" ? &node : gemm;
  }
  ASSERT_NE(gemm, nullptr);
  EXPECT_EQ(gemm->operators[0].bytes,
            Bytes(kTokens * kHidden + kHidden * kHidden + 2 * kTokens * kHidden));
}

TEST(LowerQuantize, KernelsReadSixteenBitsAndWriteBothCopies) {
  // fc2's input has T x 4H elements; each is read (2 bytes), its copies have w bytes each. A
  // maximum is another read in another kernel.
  const auto input = [](plan::Quantization quantization) {
    return quantized_operator(unfused_quantized(recipe(quantization)), "fc2_gemm_quantize_input");
  };
  const std::int64_t elements = kTokens * 4 * kHidden;
  EXPECT_EQ(input(plan::Quantization::fp8_delayed).bytes, Bytes((2 + 2) * elements));
  EXPECT_EQ(input(plan::Quantization::fp8_current).bytes, Bytes((4 + 2) * elements));
  EXPECT_EQ(input(plan::Quantization::fp8_block).bytes,
            Bytes(4 * elements + 2 * elements * 4 / 128));
  EXPECT_EQ(input(plan::Quantization::mxfp8).bytes, Bytes(4 * elements + 2 * elements / 32));
  EXPECT_EQ(input(plan::Quantization::nvfp4).bytes, Bytes(5 * elements + 2 * elements / 16));
  EXPECT_EQ(input(plan::Quantization::fp8_delayed).kernels, 1);
  EXPECT_EQ(input(plan::Quantization::fp8_current).kernels, 2);
}

TEST(LowerQuantize, NormsQuantizeThemselvesWhereTheScaleIsKnown) {
  // fc1 reads the norm's result: with delayed scaling two copies of one byte stand for one of two;
  // with current scaling the norm finds the maximum, so one kernel reads 2 and writes 2.
  const graph::Workload delayed = unfused_quantized(recipe(plan::Quantization::fp8_delayed));
  EXPECT_EQ(find_node(delayed, "fc1_gemm_quantize_input"), nullptr);
  const graph::Operator current = quantized_operator(
      unfused_quantized(recipe(plan::Quantization::fp8_current)), "fc1_gemm_quantize_input");
  EXPECT_EQ(current.bytes, Bytes(4 * kTokens * kHidden));
  EXPECT_EQ(current.kernels, 1);
}

TEST(LowerQuantize, WeightsAreQuantizedOncePerStep) {
  // 3 microbatches: inputs and gradients each time, the weight in the first.
  plan::Plan plan = recipe(plan::Quantization::mxfp8);
  plan.global_batch = 3;
  plan.recompute = plan::Recompute::full;
  const graph::Workload workload = unfused_quantized(plan);
  EXPECT_EQ(count_nodes(workload, "fc2_gemm_quantize_weight"), 1);
  EXPECT_EQ(count_nodes(workload, "fc2_gemm_quantize_input"), 2 * 3);  // forward and again
  EXPECT_EQ(count_nodes(workload, "fc2_gemm_quantize_gradient"), 3);
}

TEST(LowerQuantize, ShardedWeightsAreQuantizedWheneverTheyAreGathered) {
  // ZeRO 3, 3 microbatches: row copies in forwards, column copies in backwards, w each.
  plan::Plan plan = recipe(plan::Quantization::fp8_block);
  plan.dp = 2;
  plan.global_batch = 6;
  plan.zero = 3;
  const graph::Workload workload = unfused_quantized(plan);
  EXPECT_EQ(count_nodes(workload, "fc2_gemm_quantize_weight"), 6);
  const std::int64_t elements = 4 * kHidden * kHidden;
  EXPECT_EQ(quantized_operator(workload, "fc2_gemm_quantize_weight").bytes,
            Bytes(3 * elements + elements * 4 / 128));
}

TEST(LowerQuantize, FrozenWeightsThatAreStoredQuantizedAreNotQuantizedAgain) {
  // Adapters on fc2 alone: its weight is frozen as all others are. Stored in fp8 with the copy of
  // its transpose it needs no kernel; mxfp8's copies differ, so that it is gathered in 16 bits.
  plan::Plan plan = recipe(plan::Quantization::fp8_delayed);
  plan.lora_rank = 16;
  plan.lora_targets = "mlp";
  plan.zero = 1;
  EXPECT_EQ(count_nodes(unfused_quantized(plan), "fc2_gemm_quantize_weight"), 1);
  plan.quantized_params = true;
  EXPECT_EQ(count_nodes(unfused_quantized(plan), "quantize_weight"), 0);
  plan.quantization = plan::Quantization::mxfp8;
  EXPECT_EQ(count_nodes(unfused_quantized(plan), "fc2_gemm_quantize_weight"), 1);
}

TEST(LowerQuantize, FusedConversionsLeaveOutTheKernelsBesideAnActivation) {
  // fc2 reads what the activation makes and fc1's gradient is what its backward makes; qkv reads a
  // norm's result and fc2's gradient is the stream's. With a scale of the tensor as it is
  // (fp8-current) the maximum has to be known first.
  plan::Plan plan = recipe(plan::Quantization::fp8_delayed);
  const auto count = [&](const char* part) { return count_nodes(unfused_quantized(plan), part); };
  EXPECT_EQ(count("fc2_gemm_quantize_input"), 1);
  EXPECT_EQ(count("fc1_gemm_quantize_gradient"), 1);
  plan.fused_conversions = true;
  EXPECT_EQ(count("fc2_gemm_quantize_input"), 0);
  EXPECT_EQ(count("fc1_gemm_quantize_gradient"), 0);
  EXPECT_EQ(count("fc2_gemm_quantize_gradient"), 1);
  EXPECT_EQ(count("qkv_gemm_quantize_gradient"), 1);
  // Two copies of a byte, for the product and its weight gradient, are as much as 16 bits; a frozen
  // weight needs one. gelu reads and writes T rows of 4 H elements.
  const std::int64_t tensor = 4 * kHidden * kTokens;
  const auto bytes = [&](const char* name) {
    return quantized_operator(unfused_quantized(plan), name).bytes;
  };
  EXPECT_EQ(bytes("bias_gelu"), Bytes((2 + 2) * tensor));
  plan.lora_rank = 4;
  plan.lora_targets = "attention_qkv";
  EXPECT_EQ(bytes("bias_gelu"), Bytes((2 + 1) * tensor));
  plan.quantization = plan::Quantization::fp8_current;
  EXPECT_EQ(count("fc2_gemm_quantize_input"), 1);
  EXPECT_EQ(count("fc1_gemm_quantize_gradient"), 1);
}

TEST(LowerQuantize, AttentionInFp8ReadsAByteAnElementBetweenConversions) {
  // Q, K, V and the result are 4 T H elements, and a log-sum-exp per row and head is counted as if
  // it were of 16 bits too: the kernels move half of what they move in bf16, the conversions 3
  // bytes where that is 2.
  const auto named = [](zoo::AttentionKernel kernel, const std::string& name) {
    plan::Plan plan;
    plan.attention = kernel;
    graph::Operator found{.name = {}, .gemm = {}};
    each_node(unfused_quantized(plan), 0, [&](const graph::Node& node) {
      found = node.name == name ? node.operators[0] : found;
    });
    return found;
  };
  for (const char* name : {"flash_attention", "flash_attention_backward"}) {
    const graph::Operator wide = named(zoo::AttentionKernel::cudnn, name);
    const graph::Operator narrow = named(zoo::AttentionKernel::cudnn_fp8, name);
    EXPECT_EQ(narrow.type, graph::DataType::fp8);
    EXPECT_EQ(narrow.library, graph::AttentionLibrary::cudnn_fp8);
    EXPECT_EQ(narrow.flops, wide.flops);
    EXPECT_EQ(2 * narrow.bytes, wide.bytes);
    EXPECT_GE(wide.bytes, Bytes(2 * 4 * kTokens * kHidden));
  }
  const graph::Operator converts =
      named(zoo::AttentionKernel::cudnn_fp8, "flash_attention_convert");
  EXPECT_EQ(2 * converts.bytes, 3 * named(zoo::AttentionKernel::cudnn, "flash_attention").bytes);
  EXPECT_EQ(converts.kernels, 2);
  plan::Plan plan;
  plan.attention = zoo::AttentionKernel::cudnn_fp8;
  EXPECT_EQ(count_nodes(unfused_quantized(plan), "flash_attention_convert"), 2);  // both passes
}

TEST(LowerQuantize, GathersOverTensorParallelRanksMoveTheLowType) {
  // Forward 2 gathers per layer, backward 2 + 2, in one byte; the logits' forward and backward
  // gathers and the embedding's backward one (2 of input, 1 of gradient) stay in two. Reductions
  // always move two.
  plan::Plan plan = recipe(plan::Quantization::fp8_delayed);
  plan.tp = 2;
  plan.sequence_parallel = true;
  const graph::Workload workload = unfused_quantized(plan);
  const auto tally = [&](graph::CollectiveKind kind, plan::StepPhase phase) {
    return collectives(workload, 0, plan::Axis::tp, kind, phase);
  };
  EXPECT_EQ(tally(graph::CollectiveKind::all_gather, plan::StepPhase::forward),
            (Tally{3, 2 * kBoundary}));
  EXPECT_EQ(tally(graph::CollectiveKind::all_gather, plan::StepPhase::backward),
            (Tally{6, 4 * kBoundary}));
  EXPECT_EQ(tally(graph::CollectiveKind::reduce_scatter, plan::StepPhase::forward),
            (Tally{3, 3 * kBoundary}));
}

TEST(LowerQuantize, WithSequenceParallelARankQuantizesItsOwnTokens) {
  // qkv's input: T/2 tokens of H; fc2's input: all tokens of 4H/2; fc2's output gradient: T/2 of H.
  plan::Plan plan = recipe(plan::Quantization::fp8_current);
  plan.tp = 2;
  plan.sequence_parallel = true;
  const graph::Workload workload = unfused_quantized(plan);
  EXPECT_EQ(quantized_operator(workload, "qkv_gemm_quantize_input").bytes,
            Bytes(4 * kTokens / 2 * kHidden));
  EXPECT_EQ(quantized_operator(workload, "fc2_gemm_quantize_input").bytes,
            Bytes(6 * kTokens * 2 * kHidden));
  EXPECT_EQ(quantized_operator(workload, "fc2_gemm_quantize_gradient").bytes,
            Bytes(6 * kTokens / 2 * kHidden));
}

TEST(LowerQuantize, QuantizedParametersAreGatheredInOneByte) {
  // The layer's matrices (12 H^2, and biases 7 H with the GEMMs that own them) halve; norms,
  // residual biases, embedding and final norm do not. mxfp8 gathers the compute type.
  const auto gathered = [](plan::Quantization quantization, bool quantized) {
    plan::Plan plan = recipe(quantization);
    plan.dp = 2;
    plan.global_batch = 2;
    plan.zero = 1;
    plan.quantized_params = quantized;
    return collectives(unfused_quantized(plan), 0, plan::Axis::dp,
                       graph::CollectiveKind::all_gather, plan::StepPhase::optimizer)
        .bytes;
  };
  const Bytes plain = gathered(plan::Quantization::fp8_delayed, false);
  const Bytes quantized = gathered(plan::Quantization::fp8_delayed, true);
  EXPECT_EQ(plain - quantized, Bytes(12 * kHidden * kHidden + 7 * kHidden));
  EXPECT_EQ(gathered(plan::Quantization::mxfp8, true), plain);
}

RC_GTEST_PROP(LowerQuantize, NeverChangesTheWorkOrTheReductions, ()) {
  cases::Case c = *cases::any_case();
  const graph::Workload plain = lowered(c.model, c.plan);
  c.plan.quantization = *rc::gen::element(
      plan::Quantization::fp8_delayed, plan::Quantization::fp8_current,
      plan::Quantization::fp8_block, plan::Quantization::mxfp8, plan::Quantization::nvfp4);
  const graph::Workload low = lowered(c.model, c.plan);
  for (const plan::StepPhase phase :
       {plan::StepPhase::forward, plan::StepPhase::backward, plan::StepPhase::recompute}) {
    RC_ASSERT(cases::matrix_flops(plain, phase) == cases::matrix_flops(low, phase));
    for (const graph::CollectiveKind kind :
         {graph::CollectiveKind::all_reduce, graph::CollectiveKind::reduce_scatter}) {
      RC_ASSERT(collectives(plain, 0, plan::Axis::tp, kind, phase) ==
                collectives(low, 0, plan::Axis::tp, kind, phase));
    }
  }
}

// ---- Optimizer.

TEST(LowerOptimizer, TrafficFollowsTheTypesOfItsStates) {
  // Gradient g, master read and written 2 M, two moments read and written 4 m.
  const auto adam = [](graph::DataType master, graph::DataType moment, graph::DataType gradient) {
    const plan::Plan plan{.master_type = master, .moment_type = moment, .grad_type = gradient};
    const graph::Workload workload = unfused_quantized(plan);
    return static_cast<double>(quantized_operator(workload, "adam").bytes.value()) /
           static_cast<double>(quantized_operator(workload, "clear_gradients").bytes.value());
  };
  EXPECT_DOUBLE_EQ(adam(graph::DataType::fp32, graph::DataType::fp32, graph::DataType::fp32),
                   28.0 / 4);
  EXPECT_DOUBLE_EQ(adam(graph::DataType::fp32, graph::DataType::fp8, graph::DataType::fp32),
                   (4 + 8 + 4) / 4.0);
  EXPECT_DOUBLE_EQ(adam(graph::DataType::bf16, graph::DataType::bf16, graph::DataType::bf16),
                   (2 + 4 + 8) / 2.0);
}

TEST(LowerOptimizer, SixteenBitMasterNeedsNoCast) {
  EXPECT_NE(find_node(unfused_quantized({}), "cast_parameters"), nullptr);
  EXPECT_EQ(find_node(unfused_quantized({.master_type = graph::DataType::bf16}), "cast_parameters"),
            nullptr);
}

}  // namespace
}  // namespace orrery::parallel
