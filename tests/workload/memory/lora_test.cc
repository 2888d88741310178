// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "../plan/cases.h"
#include "workload/memory/footprint.h"
#include "workload/memory/state_memory.h"
#include "workload/plan/framework.h"

namespace orrery::footprint {
namespace {

using cases::kEmbedding;
using cases::kHidden;
using cases::kLayer;
using cases::kNorm;
using cases::kTokens;
using cases::small_gpt;
using cases::small_llama;

constexpr std::int64_t kRank = 4;
/// The adapter of qkv_gemm, 64 x 192: A 64 x 4, B 4 x 192.
constexpr std::int64_t kAdapter = kRank * (kHidden + 3 * kHidden);

plan::Plan adapted(const std::string& targets = "attention_qkv") {
  plan::Plan plan;
  plan.lora_rank = kRank;
  plan.lora_targets = targets;
  return plan;
}

TEST(MemoryLora, GradientsAndStatesAreOfAdaptersAlone) {
  const zoo::Model model = small_gpt(1);
  const plan::Plan plan = adapted();
  const StateMemory state =
      state_memory(block_memories(model, plan), plan,
                   {{{plan::kEmbeddingBlock, plan::kFirstLayerBlock, plan::kHeadBlock}, 0}});
  EXPECT_EQ(state.device[plan::MemoryCategory::parameters],
            Bytes(2 * (kEmbedding + kLayer + kNorm + kAdapter)));
  EXPECT_EQ(state.device[plan::MemoryCategory::gradients], Bytes(4 * kAdapter));
  EXPECT_EQ(state.device[plan::MemoryCategory::optimizer], Bytes(12 * kAdapter));
}

TEST(MemoryLora, FrozenGemmsSaveNoInputButWhatAttentionNeeds) {
  // Of a llama layer: without the inputs of fc1 (64 wide) and fc2 (96), with X A (4 wide). The
  // input of proj is the result that flash attention reads again.
  plan::Plan plan = adapted();
  plan.attention = zoo::AttentionKernel::flash;
  const auto kept = [&] {
    return block_memories(small_llama(1), plan).blocks[plan::kFirstLayerBlock].kept;
  };
  const Bytes lora = kept();
  plan.lora_rank = 0;
  plan.lora_targets = "all";
  EXPECT_EQ(kept() - lora, Bytes(2 * kTokens * (64 + 96 - kRank)));
}

TEST(MemoryLora, FrozenWeightsInFp8AreThereOnceAndLlama2FitsABlackwell) {
  // MLPerf Training 5.0, LoRA on Llama 2 70B: 8,192 tokens on each of 8 B200 took 168.8 GiB.
  // Weights of 80 layers, 8192 (8192 + 2 x 1024) + 8192^2 + 3 x 8192 x 28672 = 855,638,016 each, in
  // one byte; both tables of 32,000 rows and the norms in two; adapters, 16 (8192 + 10240 + 2 x
  // 8192), too.
  const zoo::Model model = zoo::load_model("llama-2-70b").value();
  plan::PlacedPlan placed;
  placed.plan.framework = "nemo";
  plan::apply_framework(placed);
  plan::Plan plan = placed.plan;
  plan.dp = plan.global_batch = 8;
  plan.sequence = 8192;
  plan.lora_rank = 16;
  plan.lora_targets = "attention_qkv,attention_dense";
  plan.quantization = plan::Quantization::fp8_delayed;
  plan.frozen_type = plan::FrozenType::fp8;
  plan.recompute_modules = "narrow_act";
  const auto memory = memory_footprint(model, plan);
  ASSERT_TRUE(memory) << memory.error().to_string();
  const StageMemory& stage = memory->front();
  const std::int64_t layers = 80 * 855'638'016LL;
  const std::int64_t wide = 2 * (2 * 32'000LL * 8192 + 161 * 8192 + 80 * 16 * 34'816LL);
  EXPECT_EQ(stage[plan::MemoryCategory::parameters], Bytes(layers + wide));
  const double gibibytes = stage.tensors() / Bytes(1LL << 30);
  EXPECT_LT(gibibytes, 168.8);
  EXPECT_GT(gibibytes, 0.9 * 168.8);
}

TEST(MemoryLora, DropoutKeepsItsMask) {
  // What A reads is kept as it was without dropout, 64 wide; the mask takes a byte an element.
  plan::Plan plan = adapted();
  const auto kept = [&] {
    return block_memories(small_llama(1), plan).blocks[plan::kFirstLayerBlock].kept;
  };
  const Bytes without = kept();
  plan.lora_dropout = 0.05;
  EXPECT_EQ(kept() - without, Bytes(kTokens * 64));
}

}  // namespace
}  // namespace orrery::footprint
