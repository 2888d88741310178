// SPDX-License-Identifier: Apache-2.0
// Rounds of workers that step alone, and collectives of ZeRO as blocks of integers: who takes part,
// bytes, refusals.
#include "workload/plan/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cases.h"
#include "machine/machine.h"
#include "workload/plan/data_axes.h"
#include "workload/plan/layout.h"
#include "workload/plan/low_bandwidth.h"
#include "workload/plan/machine_check.h"

namespace orrery::plan {
namespace {

using cases::small_gpt;
using testing::ElementsAre;
using testing::HasSubstr;
using Ranks = std::vector<std::int64_t>;

std::string refusal_of_rounds(const Plan& plan, const zoo::Model& model = small_gpt(2)) {
  const Result<void> checked = check(plan, model);
  return checked ? "" : checked.error().to_string();
}

Plan co2(std::int64_t dp, std::int64_t tau) {
  return {.dp = dp,
          .global_batch = dp,
          .data_parallel_update = DataParallelUpdate::co2,
          .local_steps = tau};
}

TEST(Workers, AreTheRanksThatShareShards) {
  Plan plan = co2(16, 4);
  EXPECT_EQ(workers(plan), 16);
  EXPECT_TRUE(gradient_hops(plan, Owner::dense).empty());  // nothing is reduced in a step
  plan.zero = 1;
  EXPECT_EQ(shard_degrees(plan).optimizer, 1);
  plan.zero = 2;
  plan.shard_grads = 8;
  EXPECT_EQ(workers(plan), 2);
  EXPECT_EQ(shard_degrees(plan).optimizer, 8);
  const auto hops = gradient_hops(plan, Owner::dense);
  ASSERT_EQ(hops.size(), 1U);  // no sum over replicas follows
  EXPECT_EQ(hops[0].axis, Axis::grad_shard);
  const RankLayout layout = layout_of(plan);
  EXPECT_EQ(layout.members(Axis::outer).group(3), (Ranks{3, 11}));
  EXPECT_EQ(layout.members(Axis::grad_shard).group(3), (Ranks{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_THAT(norm_axes(plan), ElementsAre(Axis::grad_shard));
}

TEST(Rounds, RunWholeOnesWithTwoOfWarmUp) {
  EXPECT_EQ(round_run(co2(4, 12)).steps, 48);
  EXPECT_EQ(round_run(co2(4, 12)).warm, 24);
  EXPECT_EQ(round_run(Plan{.dp = 4, .global_batch = 4}).steps, 1);
}

TEST(Rounds, BytesOfEachParameter) {
  // fp32 master and wire, bf16 parameters: w = r = 4, e = 2.
  Plan plan = co2(4, 2);
  OuterBytes bytes = outer_bytes(plan);
  EXPECT_EQ(bytes.pack, 12_B);    // x, x0, the buffer
  EXPECT_EQ(bytes.update, 26_B);  // the mean, x0 and m twice, x, its bf16 copy
  EXPECT_EQ(bytes.states, 8_B);
  EXPECT_EQ(bytes.buffer, 4_B);
  plan.data_parallel_update = DataParallelUpdate::diloco;
  EXPECT_EQ(outer_bytes(plan).buffer, 0_B);  // nothing is under way between rounds
  EXPECT_EQ(outer_bytes(plan).gap, 0_B);
  plan.data_parallel_update = DataParallelUpdate::local_sgd;
  EXPECT_EQ(outer_bytes(plan).states, 0_B);
  EXPECT_EQ(outer_bytes(plan).update, 10_B);
}

TEST(CheckRounds, NameWhatIsMissing) {
  EXPECT_EQ(refusal_of_rounds(co2(4, 12)), "");
  EXPECT_THAT(refusal_of_rounds(co2(1, 12)), HasSubstr("there is one worker"));
  Plan plan{.dp = 4, .global_batch = 4, .local_steps = 12};
  EXPECT_THAT(refusal_of_rounds(plan),
              HasSubstr("local_steps: found '12', expected 1, or data_parallel"));
  EXPECT_THAT(refusal_of_rounds(co2(4, 0)), HasSubstr("a number from 1 to"));
  plan = co2(4, 12);
  plan.zero = 2;
  plan.shard_grads = 4;
  EXPECT_THAT(refusal_of_rounds(plan), HasSubstr("those that share states are one worker"));
  plan.shard_grads = 0;
  EXPECT_THAT(refusal_of_rounds(plan),
              HasSubstr("zero: found '2', expected 0, or shard_optimizer"));
  plan.shard_grads = plan.shard_optimizer = 2;
  EXPECT_EQ(refusal_of_rounds(plan), "");
  plan = co2(4, 12);
  plan.data_parallel_update = DataParallelUpdate::local_sgd;
  plan.shard_outer = true;
  EXPECT_THAT(refusal_of_rounds(plan), HasSubstr("shard_outer"));
  plan = co2(4, 12);
  plan.offload_optimizer = Offload::cpu;
  plan.lora_rank = 4;
  EXPECT_THAT(refusal_of_rounds(plan), HasSubstr("offload_optimizer or offload_params"));
  EXPECT_THAT(refusal_of_rounds(plan), HasSubstr("quantized_params or lora_rank"));
}

Plan zero3(std::int64_t dp) {
  return {.dp = dp, .global_batch = dp, .zero = 3, .grad_reduce_type = graph::DataType::bf16};
}

TEST(ReduceHops, SplitOverTheNodeFirst) {
  Plan plan = zero3(16);
  plan.quantized_reduce = true;
  EXPECT_EQ(reduce_hops(plan, Axis::dp, 16).size(), 1U);
  plan.secondary_shard = 8;
  const auto hops = reduce_hops(plan, Axis::dp, 16);
  ASSERT_EQ(hops.size(), 2U);
  EXPECT_EQ(hops[0].ranks, 8);
  EXPECT_EQ(hops[1].ranks, 2);
  EXPECT_EQ(hops[1].divisor, 8);
  const RankLayout layout = layout_of(plan);
  EXPECT_EQ(layout.members(Axis::reduce_near).group(0), (Ranks{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(layout.members(Axis::reduce_far).group(1), (Ranks{1, 9}));
  EXPECT_EQ(layout.members(Axis::secondary).group(9), (Ranks{8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST(QuantizedBlocks, HalveParametersAndQuarterGradients) {
  // 2^20 elements of 16 bits, a scale of 4 bytes per 2,048.
  const Plan plan = zero3(16);
  const Bytes whole = 2_MiB;
  EXPECT_EQ(quantized_gather_bytes(plan, whole), whole / 2 + 2_KiB);
  EXPECT_EQ(quantized_reduce_bytes(plan, whole), whole / 4 + 2_KiB);
}

TEST(CheckLowBandwidth, NameWhatDoesNotFit) {
  Plan plan = zero3(16);
  plan.quantized_gather = plan.quantized_reduce = true;
  plan.secondary_shard = 8;
  EXPECT_EQ(refusal_of_rounds(plan), "");
  plan.zero = 2;
  EXPECT_THAT(refusal_of_rounds(plan),
              HasSubstr("quantized_gather: found 'true', expected zero of 3"));
  EXPECT_THAT(refusal_of_rounds(plan),
              HasSubstr("secondary_shard: found '8', expected 0, or zero 3"));
  plan = zero3(16);
  plan.secondary_shard = 16;
  EXPECT_THAT(refusal_of_rounds(plan), HasSubstr("a second copy over all of them is the first"));
  plan = zero3(16);
  plan.reduce_hop = 4;
  EXPECT_THAT(refusal_of_rounds(plan),
              HasSubstr("reduce_hop: found '4', expected 0, or quantized_reduce"));
  plan = zero3(16);
  plan.quantized_gather = true;
  plan.quantized_block = 1;
  EXPECT_THAT(refusal_of_rounds(plan), HasSubstr("quantized_block"));
  plan.quantized_block = 256;
  plan.lora_rank = 4;
  EXPECT_EQ(refusal_of_rounds(plan), "");
  plan.frozen_type = FrozenType::nf4;  // half a byte already, of which blocks of int8 are no half
  EXPECT_THAT(refusal_of_rounds(plan),
              HasSubstr("quantized_gather: found 'true', expected false with frozen_type nf4"));
}

TEST(CheckLowBandwidth, ASecondCopyStaysInItsNode) {
  // Nodes of 8: with tp 2 inside, 4 data-parallel ranks are in one.
  const machine::Machine machine = machine::load_machine("dgx-a100-80g").value();
  const auto mistakes = [&](std::int64_t tp, std::int64_t shards) {
    Plan plan = zero3(16);
    plan.tp = tp;
    plan.secondary_shard = shards;
    const Result<void> checked = check_machine(plan, machine);
    return checked ? "" : checked.error().to_string();
  };
  EXPECT_EQ(mistakes(1, 8), "");
  EXPECT_EQ(mistakes(2, 4), "");
  EXPECT_THAT(mistakes(2, 8), HasSubstr("secondary_shard: found '8', expected ranks of one node"));
}

TEST(CheckFrozenType, NeedsAdaptersAndARecipeThatReadsIt) {
  Plan plan{.frozen_type = FrozenType::nf4};
  EXPECT_THAT(refusal_of_rounds(plan),
              HasSubstr("frozen_type: found 'nf4', expected compute_type without"));
  plan.lora_rank = 16;
  EXPECT_EQ(refusal_of_rounds(plan), "");
  plan.quantization = Quantization::fp8_delayed;
  EXPECT_THAT(refusal_of_rounds(plan), HasSubstr("fp8 with a recipe of fp8"));
  plan.frozen_type = FrozenType::fp8;
  EXPECT_EQ(refusal_of_rounds(plan), "");
}

}  // namespace
}  // namespace orrery::plan
