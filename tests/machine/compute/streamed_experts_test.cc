// SPDX-License-Identifier: Apache-2.0
#include "machine/compute/streamed_experts.h"

#include <gtest/gtest.h>

namespace orrery::compute {
namespace {

graph::Operator ten_experts(graph::DataType type) {
  graph::Operator op{.name = {},
                     .kind = graph::OperatorKind::grouped_gemm,
                     .gemm = {.batch = 10, .m = 1, .n = 4096, .k = 7168}};
  op.type = type;
  op.stored_bits = 4;
  op.flops = flops_of(op.gemm);
  return op;
}

Device device_with(std::string_view set, const KernelCoefficients& own) {
  Device device;
  device.memory.emplace_back();
  device.memory.front().bandwidth = 8000_GBps;
  device.peak[static_cast<std::size_t>(graph::DataType::fp4)] = FlopRate(9e15);
  device.format_kernels.emplace(set, own);
  return device;
}

TEST(StreamedExperts, TakeTheBytesOfTheirWeights) {
  const Device device = device_with(
      kStreamedFp4, {.gemm_peak_share = 0.2, .gemm_memory_share = 0.75, .gemm_launch = 6_us});
  // 10 x 4,096 x 7,168 x (4 + 0.5) bits are 165.15 MB, at 6 TB/s 27.525 us.
  EXPECT_NEAR(to_seconds(streamed_experts(ten_experts(graph::DataType::fp4), 0.5, 1, device)),
              33.525e-6, 1e-9);
  // Tables end at 512 tokens; operands of 16 bits have other kernels.
  EXPECT_EQ(streamed_experts(ten_experts(graph::DataType::fp4), 0.5, 513, device), Time(0));
  EXPECT_EQ(streamed_experts(ten_experts(graph::DataType::bf16), 0.5, 1, device), Time(0));
  EXPECT_EQ(streamed_experts(ten_experts(graph::DataType::fp4), 0.5, 1, Device{}), Time(0));
}

TEST(StreamedExperts, OfFourBitsUnderSixteenStartLater) {
  Device device = device_with(kMixedExperts, {.grouped_launch = 19'800_ns});
  device.kernels.grouped_launch = 7'300_ns;
  const auto later = [&](graph::DataType type, bool marlin) {
    return mixed_experts_later(ten_experts(type), 50_us, marlin, device);
  };
  EXPECT_EQ(later(graph::DataType::bf16, false), 12'500_ns);
  EXPECT_EQ(later(graph::DataType::fp4, true), Time(0));
}

TEST(StreamedExperts, OfMarlinMultiplyTilesOfRows) {
  Device device = device_with(kMixedExperts, {.gemm_peak_share = 0.1, .grouped_launch = 20_us});
  device.peak[static_cast<std::size_t>(graph::DataType::bf16)] = FlopRate(1e15);
  graph::Operator op = ten_experts(graph::DataType::bf16);
  // One row is a tile of 8: 47 us of products are less than what the grouped product takes.
  EXPECT_EQ(mixed_experts_later(op, 50_us, true, device),
            mixed_experts_later(op, 50_us, false, device));
  // 32 rows are in tiles of 48, the last of which is half full on the mean: 2 x 10 x 56 x 4,096 x
  // 7,168 FLOPs at 100 TFLOP/s are 328.8 us, after 20 and instead of 50.
  op.gemm.m = 32;
  EXPECT_NEAR(to_seconds(mixed_experts_later(op, 50_us, true, device)), 298.8e-6, 1e-7);
  op.gemm.m = 96;  // in tiles of 64: 128 rows
  EXPECT_NEAR(to_seconds(mixed_experts_later(op, 50_us, true, device)), 721.6e-6, 1e-7);
}

}  // namespace
}  // namespace orrery::compute
