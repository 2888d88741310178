// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/block_memory.h"

#include <gtest/gtest.h>

#include "../plan/cases.h"
#include "workload/memory/footprint.h"

namespace orrery::footprint {
namespace {

using cases::kHidden;
using cases::kTokens;

BlockMemory layer_of(const zoo::Model& model, const plan::Plan& plan) {
  return block_memories(model, plan).blocks[plan::kFirstLayerBlock];
}

TEST(MemoryBlocksPublished, ActivationsOfBackwardAndOfWeightGradients) {
  // Qi et al. 2023 (Zero Bubble), table 1: S B (34 H + 5 a S) until the input gradient, 32 S B H
  // from there to the weight gradient. H 64, a 8, S 128; tp keeps a share of both.
  const BlockMemory layer = layer_of(cases::small_gpt(1), {});
  EXPECT_EQ(layer.kept, Bytes(kTokens * (34 * kHidden + 5 * 8 * kTokens)));
  EXPECT_EQ(layer.held, Bytes(kTokens * 32 * kHidden));
  // tp 2 with sequence parallelism splits all of it; of tp 4 each rank has 2 heads, which the fused
  // softmax does not take: its result is kept in fp32 as well, 4 B a S^2 / 4.
  const auto split = [](std::int64_t tp) {
    return layer_of(cases::small_gpt(1), {.tp = tp, .sequence_parallel = true});
  };
  EXPECT_EQ(split(2).kept, layer.kept / 2);
  EXPECT_EQ(split(2).held, layer.held / 2);
  EXPECT_EQ(split(4).kept, layer.kept / 4 + Bytes(4 * 8 * kTokens * kTokens / 4));
  EXPECT_EQ(split(4).held, layer.held / 4);
}

TEST(MemoryBlocks, SomeLayersOfAChunkRecompute) {
  // Full recompute keeps 2 S H of a layer, the others S H (34 + 5 a S / H) = S H x 114.
  const BlockMemories blocks = block_memories(
      cases::small_gpt(1), {.recompute = plan::Recompute::full, .recompute_layers = 1});
  EXPECT_EQ(blocks.blocks[plan::kFirstLayerBlock].kept, Bytes(2 * kTokens * kHidden));
  EXPECT_EQ(blocks.plain[plan::kFirstLayerBlock].kept, Bytes(114 * kTokens * kHidden));
  const auto stages = memory_of_checked(
      cases::small_gpt(4), {.recompute = plan::Recompute::full, .recompute_layers = 1});
  // Layers 2 + 3 x 114, embedding mask 1, inputs of final norm and logits 4.
  EXPECT_EQ(stages[0].highest[plan::MemoryCategory::activations],
            Bytes((2 + 3 * 114 + 1 + 4) * kTokens * kHidden));
}

TEST(MemoryBlocks, ModulesDropWhatTheyMakeAgain) {
  // Per S H bytes of a GPT layer: norms 2 + 2, inputs of qkv, fc1 2 + 2, Q K V 6, core 80, its
  // result 2, masks 1 + 1, GeLU 8, input of fc2 8: 114.
  const auto kept = [](const std::string& modules) {
    return (layer_of(cases::small_gpt(1), {.recompute_modules = modules}).kept / kTokens / kHidden)
        .value();
  };
  EXPECT_EQ(kept(""), 114);
  EXPECT_EQ(kept("core_attn"), 34);
  EXPECT_EQ(kept("layernorm"), 110);  // results of both norms; their inputs stay
  EXPECT_EQ(kept("mlp"), 98);         // all but its input
  EXPECT_EQ(kept("bias_gelu"), 106);  // the input of fc2; the activation's own stays
  EXPECT_EQ(kept("mlp,layernorm"), 94);
  EXPECT_EQ(kept("mlp,core_attn"), 18);
}

TEST(MemoryBlocks, HyperConnectionsKeepTheirStreamsOnceWithTheModuleMhc) {
  // DeepSeek-V4 Flash, 4096 tokens: the streams in front of the MLP, 2 x 4 x 4096 bytes a token,
  // are mixed again from those in front of attention; twice two sets of 24 fp32 weights are made
  // again.
  const zoo::Model flash = zoo::load_model("deepseek-v4-flash").value_or(zoo::Model{});
  const plan::Plan plain{.sequence = 4096};
  plan::Plan mhc = plain;
  mhc.recompute_modules = "mhc";
  EXPECT_EQ(layer_of(flash, plain).kept - layer_of(flash, mhc).kept,
            Bytes(4096LL * (2 * 4 * 4096 + 2 * 2 * 24 * 4)));
}

TEST(MemoryBlocks, WhatIsDroppedComesBackInBackward) {
  for (const char* modules : {"core_attn", "layernorm", "mlp", "bias_gelu", "mlp,layernorm"}) {
    const BlockMemory layer = layer_of(cases::small_gpt(1), {.recompute_modules = modules});
    EXPECT_EQ(layer.kept + layer.recomputed, Bytes(114 * kTokens * kHidden)) << modules;
  }
}

TEST(MemoryBlocks, ContextParallelismKeepsItsShareOfTokens) {
  // Flash attention: everything kept is per token, so a rank of 4 keeps a quarter.
  const plan::Plan one{.attention = zoo::AttentionKernel::flash};
  plan::Plan four = one;
  four.cp = 4;
  EXPECT_EQ(layer_of(cases::small_gpt(1), four).kept, layer_of(cases::small_gpt(1), one).kept / 4);
  EXPECT_EQ(block_memories(cases::small_gpt(1), four).boundary,
            block_memories(cases::small_gpt(1), one).boundary / 4);
}

TEST(MemoryBlocks, ContextExchangesNeedBuffers) {
  // K and V of 128 / 4 tokens, H 64, 2 bytes: 8192. Ring: the next ones while these are used and
  // one to receive; gather: all four ranks'; all-to-all: Q, K, V and the output once more, 16384.
  plan::Plan plan{.cp = 4, .attention = zoo::AttentionKernel::flash};
  const auto buffers = [&](plan::ContextExchange exchange) {
    plan.cp_exchange = exchange;
    return layer_of(cases::small_gpt(1), plan).forward_work;
  };
  EXPECT_EQ(buffers(plan::ContextExchange::p2p), Bytes(2 * 8192));
  EXPECT_EQ(buffers(plan::ContextExchange::all_gather), Bytes(4 * 8192));
  EXPECT_EQ(buffers(plan::ContextExchange::a2a), Bytes(16384));
  plan.cp_a2a = 2;
  EXPECT_EQ(buffers(plan::ContextExchange::a2a_p2p), Bytes(16384 + 2 * 8192));
}

/// Eight experts of width 32, two per token.
zoo::Model small_mixture() {
  zoo::Model model = cases::small_llama(1);
  model.experts = 8;
  model.top_k = 2;
  model.expert.ffn = 32;
  model.kinds = {zoo::LayerKind{.name = "moe", .feed_forward = zoo::FeedForwardKind::experts}};
  return model;
}

TEST(MemoryBlocks, ExpertParallelismSplitsExpertsAndNotRows) {
  // 8 experts of three 64 x 32 matrices; ep 4 leaves 2. Rows on a rank stay T top_k: what other
  // ranks' tokens bring is what its own take away.
  const BlockMemory one = layer_of(small_mixture(), {});
  const BlockMemory four = layer_of(small_mixture(), {.dp = 4, .ep = 4, .global_batch = 4});
  EXPECT_EQ(one.expert_parameters, 8 * 3 * 64 * 32);
  EXPECT_EQ(four.expert_parameters, 2 * 3 * 64 * 32);
  EXPECT_EQ(four.parameters - four.expert_parameters, one.parameters - one.expert_parameters);
  EXPECT_EQ(four.kept, one.kept);
}

TEST(MemoryBlocks, ExpertsKeepRowsAndTheirExchangeBuffersThem) {
  // 256 rows: input of fc1 64, of the activation 2 x 32, of fc2 32, in 2 bytes: 81,920. Buffers:
  // the rows sent and the rows received, 2 x 256 x 64 x 2. A factor of 1.5 on what is received.
  const BlockMemory even = layer_of(small_mixture(), {});
  EXPECT_EQ(even.forward_work, Bytes(2 * 256 * 64 * 2));
  const BlockMemory uneven = layer_of(small_mixture(), {.moe_imbalance = 1.5});
  EXPECT_EQ(uneven.kept - even.kept, Bytes(81920 / 2));
  const BlockMemory padded = layer_of(small_mixture(), {.moe_capacity = 1.5});
  EXPECT_EQ(padded.kept, uneven.kept);
  // Gathered instead of sent: the tokens of 4 ranks, 4 x 128 x 64 x 2, and the rows.
  const BlockMemory gathered = layer_of(
      small_mixture(),
      {.dp = 4, .ep = 4, .global_batch = 4, .moe_dispatch = plan::MoeDispatch::all_gather});
  EXPECT_EQ(gathered.forward_work, Bytes(4 * 128 * 64 * 2 + 256 * 64 * 2));
}

TEST(MemoryBlocks, QuantisedGemmsKeepOneByteOfTheirInputs) {
  // Of 114 S H bytes the inputs of qkv 2, proj 2, fc1 2, fc2 8 become half: fp8 with one scale.
  const plan::Plan fp8{.quantization = plan::Quantization::fp8_current};
  const BlockMemory layer = layer_of(cases::small_gpt(1), fp8);
  EXPECT_EQ(layer.kept, Bytes((114 - 7) * kTokens * kHidden));
  EXPECT_EQ(layer.quantized, 12 * kHidden * kHidden);
  EXPECT_EQ(layer.held, Bytes(16 * kTokens * kHidden));  // half of 32
  EXPECT_EQ(block_memories(cases::small_gpt(1), fp8).blocks[plan::kHeadBlock].quantized, 0);
}

TEST(MemoryBlocks, AttentionKeepsItsResultBesideTheQuantisedCopy) {
  // Flash, S H: the result is the projection's input, 2; quantised 1 for the projection and 2 for
  // attention itself. Other inputs of GEMMs: qkv 1 less, fc1 1, fc2 4. Runs again: as before.
  const auto kept = [](plan::Quantization quantization, const std::string& modules) {
    const plan::Plan plan{.recompute_modules = modules,
                          .quantization = quantization,
                          .attention = zoo::AttentionKernel::flash};
    return layer_of(cases::small_gpt(1), plan).kept;
  };
  const Bytes plain = kept(plan::Quantization::none, "");
  EXPECT_EQ(kept(plan::Quantization::fp8_current, ""), plain + Bytes((2 - 7) * kTokens * kHidden));
  EXPECT_EQ(kept(plan::Quantization::fp8_current, "core_attn"),
            kept(plan::Quantization::none, "core_attn") - Bytes(7 * kTokens * kHidden));
}

TEST(MemoryBlocksPublished, FineGrainedFp8KeepsAsDeepSeekDoes) {
  // DeepSeek-V3, section 3.3.3: attention's result once, in E5M6, and the inputs of SwiGLU in fp8,
  // here with a scale of 4 bytes for 128 elements. Per token: 1.5 + 1/32 of H; 256 rows of 2 x 32.
  const auto kept = [](plan::Quantization quantization, const std::string& modules) {
    const plan::Plan plan{.recompute_modules = modules,
                          .quantization = quantization,
                          .attention = zoo::AttentionKernel::flash};
    return layer_of(small_mixture(), plan).kept;
  };
  // Of tensor-wise fp8: attention 1 + 2, inputs of qkv, fc1 1.
  const Bytes tensor = kept(plan::Quantization::fp8_current, "moe_act");
  const std::int64_t elements = kTokens * kHidden;
  const std::int64_t rows = 2 * kTokens;
  EXPECT_EQ(kept(plan::Quantization::fp8_block, "moe_act"),
            tensor - Bytes(elements * 3) + Bytes(elements) * (1.5 + 1.0 / 32) +
                Bytes(elements + rows * kHidden) * (1.0 / 32) - Bytes(rows * 64) * (1 - 1.0 / 32));
  // An activation that does not run again keeps its input as it is.
  EXPECT_EQ(
      kept(plan::Quantization::fp8_block, "") - kept(plan::Quantization::fp8_block, "moe_act"),
      Bytes(rows * 64) * (1 - 1.0 / 32) + Bytes(rows * 32) * (1 + 1.0 / 32));
}

TEST(MemoryBlocks, BackwardOfExpertsHoldsTheirExchangeOrTheWidestGradients) {
  // 256 rows of 2 bytes: sent and received 64 + 64, the gradient of fc1's result 2 x 32: 192 wide,
  // more than the gradients of any GEMM (fc1 64 + 64).
  EXPECT_EQ(layer_of(small_mixture(), {.attention = zoo::AttentionKernel::flash}).backward_work,
            Bytes(256 * 2 * (64 + 64 + 64)));
}

TEST(MemoryBlocks, BackwardHoldsTheWidestGradientsAndOneWeights) {
  // Flash: fc1 has S (64 + 256) gradients of 2 bytes, as fc2; its weight 64 x 256 in 2 bytes, which
  // the GEMM adds to the buffer itself with fused_grad_accumulation.
  plan::Plan plan{.attention = zoo::AttentionKernel::flash};
  const BlockMemory layer = layer_of(cases::small_gpt(1), plan);
  EXPECT_EQ(layer.backward_work, Bytes(kTokens * (64 + 256) * 2));
  EXPECT_EQ(layer.weight_work, Bytes((64 * 256 + 256) * 2));
  plan.fused_grad_accumulation = true;
  EXPECT_EQ(layer_of(cases::small_gpt(1), plan).weight_work, 0_B);
}

TEST(MemoryBlocks, PredictionsOnAnotherStageNeedACopyOfTheTable) {
  zoo::Model model = cases::small_llama(1);
  EXPECT_EQ(block_memories(model, {}).tied_copy, 0);
  model.mtp = 1;
  EXPECT_EQ(block_memories(model, {}).tied_copy, cases::kTable);
  EXPECT_EQ(block_memories(cases::small_gpt(1), {}).tied_copy, cases::kTable);
}

}  // namespace
}  // namespace orrery::footprint
