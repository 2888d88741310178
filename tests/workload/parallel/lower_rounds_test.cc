// SPDX-License-Identifier: Apache-2.0
// Ends of rounds, and ZeRO's collectives as blocks of integers: what is moved, byte by byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cases.h"
#include "collective/block_quantize.h"
#include "workload/plan/low_bandwidth.h"

namespace orrery::parallel {
namespace {

using cases::collectives;
using cases::lowered;
using cases::small_gpt;
using cases::Tally;
using graph::CollectiveKind;
using plan::Axis;
using plan::StepPhase;

constexpr std::int64_t kAllParameters = 2 * cases::kLayer + cases::kEmbedding + cases::kNorm;

graph::Workload rounds(plan::DataParallelUpdate update, std::int64_t steps, bool shard = false) {
  const plan::Plan plan{.dp = 4,
                        .global_batch = 4,
                        .data_parallel_update = update,
                        .local_steps = 3,
                        .shard_outer = shard};
  return lowered(small_gpt(2), plan, {.steps = steps});
}

TEST(LowerRounds, AWorkerReducesNothingButItsAverages) {
  // 9 steps in rounds of 3: 3 sums of fp32 parameters; no gradient travels.
  for (const auto update : {plan::DataParallelUpdate::local_sgd, plan::DataParallelUpdate::slow_mo,
                            plan::DataParallelUpdate::diloco, plan::DataParallelUpdate::co2}) {
    const graph::Workload workload = rounds(update, 9);
    EXPECT_EQ(
        collectives(workload, 0, Axis::outer, CollectiveKind::all_reduce, StepPhase::optimizer),
        (Tally{3, 3 * 4_B * kAllParameters}));
    EXPECT_EQ(
        collectives(workload, 0, Axis::dp, CollectiveKind::all_reduce, StepPhase::optimizer).count,
        0);
  }
}

std::int64_t nodes(const graph::Workload& workload, std::string_view name) {
  std::int64_t count = 0;
  cases::each_node(workload, 0, [&](const graph::Node& node) {
    count += node.name.find(name) != std::string::npos ? 1 : 0;
  });
  return count;
}

TEST(LowerRounds, StalenessIsOneRound) {
  // The first of three rounds updates nothing, later ones what the round before has summed; the
  // last sum is waited for at the end of the run.
  const graph::Workload late = rounds(plan::DataParallelUpdate::co2, 9);
  EXPECT_EQ(nodes(late, "outer_pack"), 3);
  EXPECT_EQ(nodes(late, "outer_update"), 2);
  EXPECT_EQ(nodes(late, "outer_gap"), 2);
  EXPECT_EQ(nodes(late, "outer_done"), 1);
  EXPECT_TRUE(cases::find_node(late, "outer_all_reduce")->background);
  const graph::Workload waited = rounds(plan::DataParallelUpdate::slow_mo, 9);
  EXPECT_EQ(nodes(waited, "outer_update"), 3);
  EXPECT_EQ(nodes(waited, "outer_done"), 0);
  EXPECT_FALSE(cases::find_node(waited, "outer_all_reduce")->background);
}

TEST(LowerRounds, SharedOuterStatesScatterAndGather) {
  const graph::Workload workload = rounds(plan::DataParallelUpdate::slow_mo, 3, true);
  EXPECT_EQ(
      collectives(workload, 0, Axis::outer, CollectiveKind::reduce_scatter, StepPhase::optimizer),
      (Tally{1, 4_B * kAllParameters}));
  EXPECT_EQ(collectives(workload, 0, Axis::outer, CollectiveKind::all_gather, StepPhase::optimizer),
            (Tally{1, 4_B * kAllParameters}));
}

plan::Plan zero3(std::int64_t dp) {
  return {.dp = dp,
          .global_batch = dp,
          .zero = 3,
          .grad_type = graph::DataType::bf16,
          .grad_reduce_type = graph::DataType::bf16};
}

Bytes moved(const graph::Workload& workload, Axis axis, CollectiveKind kind) {
  Bytes sum{0};
  for (const StepPhase phase : {StepPhase::forward, StepPhase::backward, StepPhase::optimizer}) {
    sum += collectives(workload, 0, axis, kind, phase).bytes;
  }
  return sum;
}

/// q_b of the embedding, two layers and the norm, each quantised on its own.
Bytes quantized(int bits) {
  Bytes sum{0};
  for (const std::int64_t block : {cases::kEmbedding, cases::kLayer, cases::kLayer, cases::kNorm}) {
    sum += collective::quantized_bytes(block, bits, 2048);
  }
  return sum;
}

TEST(LowerLowBandwidth, PlainZeroThreeMovesParametersThreeTimes) {
  const graph::Workload workload = lowered(small_gpt(2), zero3(16));
  EXPECT_EQ(moved(workload, Axis::dp, CollectiveKind::all_gather), 2 * 2_B * kAllParameters);
  EXPECT_EQ(moved(workload, Axis::dp, CollectiveKind::reduce_scatter), 2_B * kAllParameters);
}

TEST(LowerLowBandwidth, BlocksOfIntegersHalveGathersAndQuarterReductions) {
  plan::Plan plan = zero3(16);
  plan.quantized_gather = plan.quantized_reduce = true;
  plan.secondary_shard = 8;
  const graph::Workload workload = lowered(small_gpt(2), plan);
  EXPECT_EQ(moved(workload, Axis::dp, CollectiveKind::all_gather), quantized(8));
  EXPECT_EQ(moved(workload, Axis::secondary, CollectiveKind::all_gather), quantized(8));
  // The gradients in one buffer: 4 bits over the node, an eighth of them between nodes.
  EXPECT_EQ(moved(workload, Axis::reduce_near, CollectiveKind::all_to_all),
            collective::quantized_bytes(kAllParameters, 4, 2048));
  EXPECT_EQ(moved(workload, Axis::reduce_far, CollectiveKind::all_to_all),
            collective::quantized_bytes(kAllParameters / 8, 4, 2048));
  EXPECT_EQ(moved(workload, Axis::dp, CollectiveKind::reduce_scatter), 0_B);
}

TEST(LowerLowBandwidth, KernelsReadAndWriteWhatTravels) {
  plan::Plan plan = zero3(16);
  plan.quantized_gather = true;
  plan.secondary_shard = 4;
  const graph::Workload workload = lowered(small_gpt(1), plan);
  Bytes read{0};
  Bytes back{0};
  Bytes second{0};
  cases::each_node(workload, 0, [&](const graph::Node& node) {
    for (const graph::Operator& op : node.operators) {
      read += op.name == "quantize_parameters" ? op.bytes : 0_B;
      back += op.name == "dequantize_parameters" ? op.bytes : 0_B;
      second += op.name == "copy_secondary" ? op.bytes : 0_B;
    }
  });
  Bytes both{0};
  Bytes by16{0};
  Bytes by4{0};
  Bytes copied{0};
  for (const std::int64_t block : {cases::kEmbedding, cases::kLayer, cases::kNorm}) {
    const Bytes one = 2_B * block + collective::quantized_bytes(block, 8, 2048);
    both += one;
    by16 += one / 16;
    by4 += one / 4;
    copied += 2 * (2_B * block) / 4;
  }
  EXPECT_EQ(read, by16 + by4);  // forward over all 16, backward over the 4 of a node
  EXPECT_EQ(back, 2 * both);
  EXPECT_EQ(second, copied);
}

TEST(LowerLowBandwidth, TorchtitanCopiesGatheredParametersOutAndGradientsIn) {
  // Out of both gathers: 2 x 2 bytes a parameter read and written each. In: 2 bytes read, 2
  // written, where others read the buffer as well (6); the tied table has the head's gradient, too.
  const auto bytes_of = [](const plan::Plan& plan, std::string_view name) {
    Bytes sum{0};
    cases::each_node(lowered(small_gpt(2), plan), 0, [&](const graph::Node& node) {
      for (const graph::Operator& op : node.operators) {
        sum += op.name.find(name) != std::string::npos ? op.bytes : 0_B;
      }
    });
    return sum;
  };
  plan::Plan plan = zero3(16);
  plan.autograd = plan::Autograd::pytorch;
  EXPECT_EQ(bytes_of(plan, "_accumulate"), 6_B * (kAllParameters + cases::kTable));
  plan.framework = "torchtitan";
  EXPECT_EQ(bytes_of(plan, "copy_parameters"), 2 * 4_B * kAllParameters);
  EXPECT_EQ(bytes_of(plan, "_accumulate"), 4_B * (kAllParameters + cases::kTable));
}

TEST(LowerLowBandwidth, BucketsBesideTheBackwardMoveTheSame) {
  plan::Plan plan = zero3(16);
  plan.quantized_reduce = true;
  plan.reduce_hop = 4;
  plan.overlap_grad_reduce = plan.overlap_param_gather = true;
  const graph::Workload workload = lowered(small_gpt(2), plan);
  EXPECT_EQ(moved(workload, Axis::reduce_near, CollectiveKind::all_to_all), quantized(4));
  EXPECT_EQ(nodes(workload, "sum_gradients"), 2 * 4);
}

TEST(LowerLowBandwidth, DegreesPutEveryCollectiveOnItsLevel) {
  // Parameters over pairs, gradients over 8, states over 16.
  plan::Plan plan = zero3(16);
  plan.shard_params = 2;
  plan.shard_grads = 8;
  plan.quantized_gather = plan.quantized_reduce = true;
  const graph::Workload workload = lowered(small_gpt(2), plan);
  EXPECT_EQ(moved(workload, Axis::shard, CollectiveKind::all_gather), 2 * quantized(8));
  EXPECT_EQ(moved(workload, Axis::grad_shard, CollectiveKind::all_to_all),
            collective::quantized_bytes(kAllParameters, 4, 2048));
  EXPECT_EQ(moved(workload, Axis::optimizer_shard, CollectiveKind::all_to_all),
            collective::quantized_bytes(kAllParameters / 8, 4, 2048));
  EXPECT_EQ(moved(workload, Axis::update, CollectiveKind::all_gather),
            collective::quantized_bytes(kAllParameters / 2, 8, 2048));
}

TEST(LowerFrozenType, WeightsAreUnpackedBeforeEveryGemm) {
  // Four GEMMs of a GPT layer, 12 H^2 elements, forward and backward: 4 bits with their scales
  // read, 2 bytes written.
  const plan::Plan plan{.lora_rank = 4, .frozen_type = plan::FrozenType::int4};
  const graph::Workload workload = lowered(small_gpt(1), plan);
  Bytes bytes{0};
  cases::each_node(workload, 0, [&](const graph::Node& node) {
    for (const graph::Operator& op : node.operators) {
      bytes += op.name.ends_with("_unpack_weight") ? op.bytes : 0_B;
    }
  });
  const double elements = 12.0 * cases::kHidden * cases::kHidden;
  EXPECT_NEAR(static_cast<double>(bytes.value()), 2 * elements * (0.5 + 2.0 / 64 + 2), 8);
}

}  // namespace
}  // namespace orrery::parallel
