// SPDX-License-Identifier: Apache-2.0
// What rounds, second copies and packed weights hold.
#include <gtest/gtest.h>

#include "../plan/cases.h"
#include "workload/memory/footprint.h"
#include "workload/plan/rounds.h"

namespace orrery::footprint {
namespace {

double gigabytes_of_states(plan::Plan plan, double parameters) {
  plan.zero = 3;
  plan.compute_type = graph::DataType::fp16;
  plan.grad_type = plan.grad_reduce_type = graph::DataType::fp16;
  OwnedParameters owned;
  owned.dense = static_cast<std::int64_t>(parameters);
  return static_cast<double>(state_memory(plan, owned, Bytes(0)).device.total().value()) / 1e9;
}

TEST(OptimizerMemory, IsSharedAsAdamsIs) {
  // 1,024 parameters over 4 ranks: fp32 masters (bf16 compute) 1,024 bytes a rank; of moments Adam
  // has 2,048, Lion 1,024, AdamW in 8 bits 2 (1,024 + 4 x 4) / 4 = 520.
  OwnedParameters owned;
  owned.dense = 1024;
  plan::Plan plan{.dp = 4, .global_batch = 4, .zero = 1};
  const auto states = [&](plan::Optimizer optimizer) {
    plan.optimizer = optimizer;
    return state_memory(plan, owned, Bytes(0)).device[plan::MemoryCategory::optimizer];
  };
  EXPECT_EQ(states(plan::Optimizer::adam), Bytes(1024 + 2048));
  EXPECT_EQ(states(plan::Optimizer::lion), Bytes(1024 + 1024));
  EXPECT_EQ(states(plan::Optimizer::adamw_8bit), Bytes(1024 + 520));
}

TEST(LowBandwidthMemory, FollowsTheTableOfTenToFortyBillionParameters) {
  // ZeRO-3 16 P / n; a second copy adds 2 P / 8; over pairs, nodes and all: P + P/4 + 12 P / n.
  // Derived for arXiv:2501.04266, in GB with one decimal, the last digit rounded either way.
  struct Row {
    double billions;
    std::int64_t ranks;
    double plain;
    double second;
    double levels;
  };
  for (const Row& row :
       {Row{10, 64, 2.5, 5.0, 14.4}, Row{10, 128, 1.2, 3.8, 13.4}, Row{10, 384, 0.4, 2.9, 12.8},
        Row{20, 64, 5.0, 10.0, 28.8}, Row{20, 128, 2.5, 7.5, 26.9}, Row{20, 384, 0.8, 5.8, 25.6},
        Row{40, 64, 10.0, 20.0, 57.5}, Row{40, 128, 5.0, 15.0, 53.8},
        Row{40, 384, 1.7, 11.7, 51.2}}) {
    plan::Plan plan{.dp = row.ranks, .global_batch = row.ranks};
    EXPECT_NEAR(gigabytes_of_states(plan, row.billions * 1e9), row.plain, 0.0501);
    plan.secondary_shard = 8;
    EXPECT_NEAR(gigabytes_of_states(plan, row.billions * 1e9), row.second, 0.0501);
    plan.secondary_shard = 0;
    plan.shard_params = 2;
    plan.shard_grads = 8;
    EXPECT_NEAR(gigabytes_of_states(plan, row.billions * 1e9), row.levels, 0.0501);
  }
}

TEST(RoundMemory, HoldsThreeMoreCopies) {
  // fp32 master and wire: CO2 keeps the outer point, the momentum and the buffer under way, 12
  // bytes a parameter; shared by 4 workers 3 x 4 / 4 and the buffer.
  OwnedParameters owned;
  owned.dense = 1'000'000;
  plan::Plan plan{.dp = 4, .global_batch = 4};
  const Bytes alone = state_memory(plan, owned, Bytes(0)).device.total();
  const auto more = [&](plan::DataParallelUpdate update, bool shared) {
    plan.data_parallel_update = update;
    plan.shard_outer = shared;
    plan.local_steps = 8;
    return (state_memory(plan, owned, Bytes(0)).device.total() - alone).value();
  };
  EXPECT_EQ(more(plan::DataParallelUpdate::local_sgd, false), 0);
  EXPECT_EQ(more(plan::DataParallelUpdate::slow_mo, false), 8'000'000);
  EXPECT_EQ(more(plan::DataParallelUpdate::diloco, false), 8'000'000);
  EXPECT_EQ(more(plan::DataParallelUpdate::diloco, true), 2'000'000);
  EXPECT_EQ(more(plan::DataParallelUpdate::co2, false), 12'000'000);
  EXPECT_EQ(more(plan::DataParallelUpdate::co2, true), 3'000'000 + 4'000'000);
}

TEST(FrozenMemory, IsOneCopyInItsType) {
  // A llama layer's four matrices frozen: 2 bytes an element in bf16; with an fp8 recipe 2 more of
  // two copies, or 1 in all.
  const auto weights = [](plan::FrozenType type, plan::Quantization recipe) {
    plan::Plan plan{.lora_rank = 4};
    plan.frozen_type = type;
    plan.quantization = recipe;
    const zoo::Model model = cases::small_llama(1);
    const BlockMemories blocks = block_memories(model, plan);
    return state_memory(blocks, plan, {{{plan::kFirstLayerBlock}, 0}})
        .device[plan::MemoryCategory::parameters]
        .value();
  };
  using plan::FrozenType;
  using plan::Quantization;
  constexpr std::int64_t kWeights = 64 * 128 + 64 * 64 + 3 * 64 * 96;  // qkv, out, gate, up, down
  const std::int64_t plain = weights(FrozenType::compute_type, Quantization::none);
  EXPECT_EQ(weights(FrozenType::compute_type, Quantization::fp8_delayed) - plain, 2 * kWeights);
  EXPECT_EQ(plain - weights(FrozenType::fp8, Quantization::fp8_delayed), kWeights);
  EXPECT_EQ(plain - weights(FrozenType::int8, Quantization::none), kWeights);
  EXPECT_EQ(plain - weights(FrozenType::int4, Quantization::none),
            kWeights * 3 / 2 - kWeights / 32);
}

}  // namespace
}  // namespace orrery::footprint
