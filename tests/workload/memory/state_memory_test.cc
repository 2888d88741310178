// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/state_memory.h"

#include <gtest/gtest.h>

#include <array>

#include "../plan/cases.h"
#include "workload/memory/footprint.h"

namespace orrery::footprint {
namespace {

constexpr double kGigabyte = 1e9;

/// One layer of `parameters`, of which `expert` are in routed experts.
BlockMemories one_layer(std::int64_t parameters, std::int64_t expert = 0) {
  BlockMemories model;
  model.blocks.assign(3, {});
  model.blocks[plan::kFirstLayerBlock].parameters = parameters;
  model.blocks[plan::kFirstLayerBlock].expert_parameters = expert;
  model.plain = model.blocks;
  return model;
}

StateMemory state_of(const BlockMemories& model, const plan::Plan& plan) {
  return state_memory(model, plan, {{{plan::kFirstLayerBlock}, 0}});
}

double gigabytes(const plan::Plan& plan, double parameters) {
  const BlockMemories model = one_layer(static_cast<std::int64_t>(parameters));
  return static_cast<double>(state_of(model, plan).device.total().value()) / kGigabyte;
}

plan::Plan half_precision(std::int64_t zero, std::int64_t dp) {
  return {.dp = dp,
          .global_batch = dp,
          .zero = zero,
          .compute_type = graph::DataType::fp16,
          .grad_type = graph::DataType::fp16,
          .grad_reduce_type = graph::DataType::fp16};
}

TEST(MemoryStatePublished, ZeroStagesOfASevenAndAHalfBillionModelOn64Devices) {
  // Rajbhandari et al. 2020, figure 1: 120, 31.4, 16.6 and 1.9 GB.
  constexpr std::array kPublished{120.0, 31.4, 16.6, 1.9};
  for (std::int64_t zero = 0; zero < 4; ++zero) {
    const double published = kPublished[static_cast<std::size_t>(zero)];
    EXPECT_NEAR(gigabytes(half_precision(zero, 64), 7.5e9) / published, 1, 0.02) << zero;
  }
}

TEST(MemoryStatePublished, ZeroStagesOfATrillionParametersOn1024Devices) {
  // Rajbhandari et al. 2020, table 1: 16,000 GB without, P_os 4,011, P_os+g 2,013, P_os+g+p 15.6
  // GB.
  constexpr std::array kPublished{16000.0, 4011.0, 2013.0, 15.6};
  for (std::int64_t zero = 0; zero < 4; ++zero) {
    const double published = kPublished[static_cast<std::size_t>(zero)];
    EXPECT_NEAR(gigabytes(half_precision(zero, 1024), 1e12) / published, 1, 0.01) << zero;
  }
}

TEST(MemoryStatePublished, ShardsOnThreeLevelsOfFrontier) {
  // 2 P/d_w + 2 P/d_g + 12 P/d_o with weights over 2, gradients over 8, states over all devices, as
  // arXiv:2501.04266 partitions them; figures derived from that formula: 10B and 20B on 64, 128,
  // 384 devices; 40B on 384.
  struct Row {
    double parameters;
    std::int64_t devices;
    double published;
  };
  for (const Row row : {Row{10e9, 64, 14.4},
                        {10e9, 128, 13.4},
                        {10e9, 384, 12.8},
                        {20e9, 64, 28.8},
                        {20e9, 384, 25.6},
                        {40e9, 384, 51.2}}) {
    plan::Plan plan = half_precision(3, row.devices);
    plan.shard_params = 2;
    plan.shard_grads = 8;
    EXPECT_NEAR(gigabytes(plan, row.parameters) / row.published, 1, 0.01) << row.devices;
  }
}

TEST(MemoryStatePublished, FourteenBytesPerParameterOnFrontier) {
  // Dash et al. 2023 (arXiv:2312.12705): 6 for parameters (half precision and fp32), 4 gradients, 4
  // optimizer: 308 GB, 2.45 TB and 14 TB for 22B, 175B and 1T.
  plan::Plan plan{.compute_type = graph::DataType::fp16, .moment_type = graph::DataType::fp16};
  EXPECT_NEAR(gigabytes(plan, 22e9), 308, 1);
  EXPECT_NEAR(gigabytes(plan, 175e9), 2450, 1);
  EXPECT_NEAR(gigabytes(plan, 1e12), 14000, 1);
}

TEST(MemoryState, EachShardDegreeDividesItsOwnPart) {
  // 800 parameters: 1600 / 2 + 3200 / 4 + 9600 / 16.
  plan::Plan plan{.dp = 16, .global_batch = 16, .zero = 3};
  plan.shard_params = 2;
  plan.shard_grads = 4;
  const graph::MemoryBytes state = state_of(one_layer(800), plan).device;
  EXPECT_EQ(state[plan::MemoryCategory::parameters], 800_B);
  EXPECT_EQ(state[plan::MemoryCategory::gradients], 800_B);
  EXPECT_EQ(state[plan::MemoryCategory::optimizer], 600_B);
}

TEST(MemoryState, ContextParallelRanksShareTheStatesToo) {
  // dp 2 x cp 4: 12 x 800 / 8.
  const plan::Plan plan{.dp = 2, .cp = 4, .global_batch = 2, .zero = 1};
  EXPECT_EQ(state_of(one_layer(800), plan).device[plan::MemoryCategory::optimizer], 1200_B);
}

TEST(MemoryState, ExpertsAreSharedByTheRanksThatHoldTheSameOnes) {
  // dp 8, ep 4: two ranks hold the same experts. Of 800 parameters 600 are experts:
  // 12 x (200 / 8 + 600 / 2).
  const plan::Plan plan{.dp = 8, .ep = 4, .global_batch = 8, .zero = 1};
  EXPECT_EQ(state_of(one_layer(800, 600), plan).device[plan::MemoryCategory::optimizer],
            Bytes(12 * (25 + 300)));
}

TEST(MemoryState, FrameworkBuffersEveryCommunicator) {
  // 500 and 10 for each of: tp, dp x cp, pp; with cp also cp; with ep 2 also ep and the dp x cp x
  // tp / ep / etp = 3 x 2 x 2 / 2 / 2 ranks that share experts, and etp.
  machine::Machine machine;
  machine.device.framework_memory = 500_B;
  machine.device.communicator_memory = 10_B;
  const zoo::Model model{};
  plan::Plan plan;
  EXPECT_EQ(framework_bytes(model, plan, machine), 500_B);
  plan = {.tp = 2, .pp = 4, .dp = 3};
  EXPECT_EQ(framework_bytes(model, plan, machine), 530_B);
  plan.cp = 2;
  EXPECT_EQ(framework_bytes(model, plan, machine), 540_B);
  plan.ep = 2;
  EXPECT_EQ(framework_bytes(model, plan, machine), 570_B);
}

TEST(MemoryState, ExchangesOfTokensHaveBuffersOfTheirOwn) {
  // All to all: 7 for each other rank of ep in a node of 4. Merged: its 4 send 32 tokens of 16
  // bf16 elements and 4 fp32 weights, kept before the experts and after them.
  machine::Machine machine;
  machine.device.exchange_memory = 7_B;
  machine.network.resize(2);
  machine.network.front().size = 4;
  zoo::Model model;
  model.hidden = 16;
  model.experts = 4;
  plan::Plan plan{.dp = 8, .ep = 2, .microbatch = 2, .global_batch = 16, .sequence = 16};
  EXPECT_EQ(framework_bytes(model, plan, machine), 7_B);
  plan.ep = 8;
  EXPECT_EQ(framework_bytes(model, plan, machine), 21_B);
  plan.moe_dispatch = plan::MoeDispatch::hierarchical;
  EXPECT_EQ(framework_bytes(model, plan, machine), Bytes(2 * 4 * 32 * (16 * 2 + 4 * 4)));
  model.expert.latent = 8;  // rows are narrower
  EXPECT_EQ(framework_bytes(model, plan, machine), Bytes(2 * 4 * 32 * (8 * 2 + 4 * 4)));
  plan.ep = 1;
  EXPECT_EQ(framework_bytes(model, plan, machine), 0_B);
}

TEST(MemoryState, StatesHaveTheSizesOfTheirTypes) {
  // 100 parameters: master 4 or 2, moments 2 x 4, 2 x 2, 2 x 1; no master of the compute type.
  plan::Plan plan;
  const auto optimizer = [&] {
    return state_of(one_layer(100), plan).device[plan::MemoryCategory::optimizer];
  };
  EXPECT_EQ(optimizer(), 1200_B);
  plan.moment_type = graph::DataType::bf16;
  EXPECT_EQ(optimizer(), 800_B);
  plan.moment_type = graph::DataType::fp8;
  EXPECT_EQ(optimizer(), 600_B);
  plan.master_type = graph::DataType::fp16;
  EXPECT_EQ(optimizer(), 400_B);
  plan.master_type = graph::DataType::bf16;
  EXPECT_EQ(optimizer(), 200_B);
  plan.compute_type = graph::DataType::fp32;
  plan.moment_type = graph::DataType::fp32;
  EXPECT_EQ(optimizer(), 800_B);
}

TEST(MemoryState, OffloadMovesStatesToTheirTier) {
  // 12 bytes per parameter and the gradients' 4 to the host; to storage the states alone.
  plan::Plan plan{.offload_optimizer = plan::Offload::cpu};
  const StateMemory cpu = state_of(one_layer(100), plan);
  EXPECT_EQ(cpu.device[plan::MemoryCategory::optimizer], 0_B);
  EXPECT_EQ(cpu.lower[0], 1600_B);
  plan.offload_optimizer = plan::Offload::nvme;
  const StateMemory nvme = state_of(one_layer(100), plan);
  EXPECT_EQ(nvme.lower[0], 400_B);
  EXPECT_EQ(nvme.lower[1], 1200_B);
}

TEST(MemoryState, GradientsThatTravelInAnotherTypeNeedABuffer) {
  plan::Plan plan{.dp = 2, .global_batch = 2};
  EXPECT_EQ(state_of(one_layer(100), plan).reduction, 0_B);
  plan.grad_reduce_type = graph::DataType::bf16;
  EXPECT_EQ(state_of(one_layer(100), plan).reduction, 200_B);
}

TEST(MemoryState, QuantisedWeightsHaveTwoCopiesBesideTheirFirstForm) {
  // 100 parameters, 80 in quantised GEMMs. fp8: 200 + 2 x 80; nvfp4 (0.5 + 1/16): 200 + 2 x 45;
  // stored as copies alone: 20 x 2 + 2 x 80. mxfp8 copies cannot be made of each other, so the
  // 16-bit form stays: 200 + 2 x 82.5.
  BlockMemories model = one_layer(100);
  model.blocks[plan::kFirstLayerBlock].quantized = 80;
  plan::Plan plan{.dp = 2, .global_batch = 2, .zero = 1};
  const auto parameters = [&](plan::Quantization quantization, bool stored) {
    plan.quantization = quantization;
    plan.quantized_params = stored;
    return state_of(model, plan).device[plan::MemoryCategory::parameters];
  };
  EXPECT_EQ(parameters(plan::Quantization::none, false), 200_B);
  EXPECT_EQ(parameters(plan::Quantization::fp8_current, false), 360_B);
  EXPECT_EQ(parameters(plan::Quantization::nvfp4, false), 290_B);
  EXPECT_EQ(parameters(plan::Quantization::fp8_current, true), 200_B);
  EXPECT_EQ(parameters(plan::Quantization::mxfp8, true), Bytes(200 + 2 * 83));
}

TEST(MemoryState, Zero3MakesCopiesOfWhatItGathers) {
  // Resident: a half of 2 x 100. Gathered: 200 and one copy of 80; kept for backward: both.
  BlockMemories model = one_layer(100);
  model.blocks[plan::kFirstLayerBlock].quantized = 80;
  plan::Plan plan{
      .dp = 2, .global_batch = 2, .zero = 3, .quantization = plan::Quantization::fp8_current};
  EXPECT_EQ(state_of(model, plan).device[plan::MemoryCategory::parameters], 100_B);
  const OwnedParameters owned = owned_parameters(model, plan, plan::kFirstLayerBlock);
  EXPECT_EQ(gathered_bytes(plan, owned), 280_B);
  plan.reshard_after_forward = false;
  EXPECT_EQ(gathered_bytes(plan, owned), 360_B);
  plan.zero = 2;
  EXPECT_EQ(gathered_bytes(plan, owned), 0_B);
}

TEST(MemoryState, UpdatesOfOneKernelEachHoldTheRootOfAMoment) {
  // 100 parameters over 4 ranks, moments of 4 bytes: 100 more while the optimizer runs, which has
  // an fp32 copy of 16-bit gradients already, as much again.
  plan::Plan plan{.dp = 4, .global_batch = 4, .zero = 1};
  const BlockMemories model = one_layer(100);
  EXPECT_EQ(state_of(model, plan).update, 0_B);
  const Bytes states = state_of(model, plan).device.total();
  plan.optimizer = plan::Optimizer::adam_foreach;
  EXPECT_EQ(state_of(model, plan).update, 100_B);
  EXPECT_EQ(state_of(model, plan).device.total(), states);
  plan.grad_type = graph::DataType::bf16;
  EXPECT_EQ(state_of(model, plan).update, 200_B);
}

TEST(MemoryState, AProgramGathersWeightByWeight) {
  // 100 parameters of 2 bytes, the largest weight 30: one that is read and one on its way, 2 x 60;
  // its gradient of 4 bytes is reduced alone. Modules gather the block, 200, and the next one.
  BlockMemories model = one_layer(100);
  model.blocks[plan::kFirstLayerBlock].largest = 30;
  plan::Plan plan{.dp = 2,
                  .global_batch = 2,
                  .zero = 3,
                  .overlap_param_gather = true,
                  .grad_reduce_type = graph::DataType::fp32,
                  .free_gradients = true};
  const auto owned = [&] { return owned_parameters(model, plan, plan::kFirstLayerBlock); };
  EXPECT_EQ(gathered_bytes(plan, owned()), 120_B);
  EXPECT_EQ(gathered_ahead(plan, gathered_bytes(plan, owned())), 0_B);
  EXPECT_EQ(reduced_at_once(plan, owned()), 120_B);
  plan.autograd = plan::Autograd::pytorch;
  EXPECT_EQ(gathered_bytes(plan, owned()), 200_B);
  EXPECT_EQ(gathered_ahead(plan, gathered_bytes(plan, owned())), 200_B);
  EXPECT_EQ(reduced_at_once(plan, owned()), 400_B);
}

TEST(MemoryBlocks, TheGradientOfAFusedLossTakesTheLogitsPlace) {
  // 4,096 tokens of 32,000 entries in 2 bytes.
  const auto model = zoo::load_model("llama-2-7b");
  ASSERT_TRUE(model.has_value());
  const plan::Plan plan{.sequence = 4096, .fused_cross_entropy = true};
  const BlockMemory head = block_memories(*model, plan).blocks[plan::kHeadBlock];
  EXPECT_EQ(head.logits, Bytes(4096LL * 32000 * 2));
  EXPECT_EQ(head.logits_work, 0_B);
}

}  // namespace
}  // namespace orrery::footprint
