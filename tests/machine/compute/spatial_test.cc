// SPDX-License-Identifier: Apache-2.0
/// Laws of operators that are fused in space.
#include "machine/compute/spatial.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "machine/compute/compute_model.h"

namespace orrery::compute {
namespace {

Device dataflow(FusionMode fusion) {
  Device device;
  device.model = ComputeModel::spatial;
  device.peak[static_cast<std::size_t>(graph::DataType::bf16)] = FlopRate(100e12);
  device.memory = {{.name = "m", .capacity = 1_GiB, .bandwidth = 1000_GBps}};
  device.spatial = {.fusion = fusion, .launch = 2_us, .host_launch = 20_us};
  device.kernels.gemm_peak_share = 1;
  device.kernels.gemm_memory_share = 1;
  return device;
}

graph::Operator spatial_gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  graph::Operator op;
  op.kind = graph::OperatorKind::gemm;
  op.gemm = {.batch = 1, .m = m, .n = n, .k = k};
  op.flops = flops_of(op.gemm);
  return op;
}

graph::Operator stream(Bytes bytes) {
  graph::Operator op;
  op.bytes = bytes;
  return op;
}

TEST(Spatial, ALoneKernelIsARooflineAndItsLaunch) {
  // 1,000 x 1,000 x 1,000: 2 GFLOP at 100 TFLOP/s are 20 us, 6 MB at 1 TB/s 6 us.
  const Device device = dataflow(FusionMode::unfused);
  EXPECT_EQ(kernel_time(spatial_gemm(1000, 1000, 1000), device).alone, 42_us);
  EXPECT_EQ(kernel_time(stream(Bytes(30'000'000)), device).alone, 52_us);
}

TEST(Spatial, FusedOperatorsLeaveOnlyWeightsInMemory) {
  // Two products and what is between them: 40 us of FLOPs, 4 us of weights; alone 20 + 30 + 20 us.
  const std::vector<graph::Operator> layer{
      spatial_gemm(1000, 1000, 1000), stream(Bytes(30'000'000)), spatial_gemm(1000, 1000, 1000)};
  EXPECT_EQ(fused_time(layer, dataflow(FusionMode::software)), 40_us);
}

TEST(Spatial, FusedAttentionHasTheClockOfAttention) {
  // 2 GFLOP at 100 TFLOP/s are 20 us; attention at half its rate 40, products keep theirs.
  Device device = dataflow(FusionMode::software);
  device.attention_clock = 0.5;
  graph::Operator attention;
  attention.kind = graph::OperatorKind::attention;
  attention.flops = Flops(2e9);
  EXPECT_EQ(fused_time(std::vector<graph::Operator>{attention}, device), 40_us);
  EXPECT_EQ(fused_time(std::vector<graph::Operator>{spatial_gemm(1000, 1000, 1000)}, device),
            20_us);
}

TEST(Spatial, HardwareLeavesOutAllButOneRoundTripOfTheHost) {
  const SpatialDevice software = dataflow(FusionMode::software).spatial;
  const SpatialDevice hardware = dataflow(FusionMode::hardware).spatial;
  EXPECT_EQ(launches(software, 80) - launches(hardware, 80), 79 * software.host_launch);
  EXPECT_EQ(launches(hardware, 0), 0_us);
}

TEST(Spatial, WhatDoesNotFitTheChipCrossesTheMemory) {
  // 30 MB between two products. An SRAM of 10 MB leaves 20 MB to the memory: 20 us at 1 TB/s. One
  // of 30 MB keeps all, which passes it at 2 TB/s in 15 us, or at 10 TB/s in 3.
  Device device = dataflow(FusionMode::hardware);
  const std::vector<graph::Operator> between{stream(Bytes(30'000'000))};
  EXPECT_EQ(kept_bytes(between[0]), Bytes(30'000'000));
  EXPECT_EQ(fused_time(between, device), 0_us);  // not stated: everything fits
  device.spatial.sram = Bytes(10'000'000);
  EXPECT_EQ(fused_time(between, device), 20_us);
  device.spatial.sram = Bytes(30'000'000);
  device.spatial.sram_bandwidth = 2000_GBps;
  EXPECT_EQ(fused_time(between, device), 15_us);
  device.spatial.sram_bandwidth = 10000_GBps;
  EXPECT_EQ(fused_time(between, device), 3_us);
}

TEST(Spatial, FourStagesOfAMonarchTransformHaveThePublishedIntensities) {
  // FLOPs a byte of the paper's example, its shapes derived (not published): four 256 x 256
  // matrices in bf16 pass four stages of a product with the matrix of the transform, twiddle
  // factors and a transpose. In matrices of 131,072 bytes: products read 4 + 1 and write 4, factors
  // 4 + 1 and 4, transposes 4 and 4: 26 for 4 x 513 x 65,536 FLOPs. A fused stage reads 4 and
  // writes 4 beside the transform's and the factors' one each, four fused stages do that once.
  const Device device = dataflow(FusionMode::unfused);
  const Bytes matrix(2 * 256 * 256);
  const graph::Operator product = spatial_gemm(4 * 256, 256, 256);
  graph::Operator factors = stream(9 * matrix);
  factors.flops = Flops(4 * 256 * 256);
  const graph::Operator transpose = stream(8 * matrix);
  const Rates rates = rates_of(product, device, device.clock);
  const auto bytes = [&](const FusedWork& work) { return work.memory * rates.bandwidth; };
  const double flops = 4 * (product.flops + factors.flops).value();
  double alone = 0;
  double inside = 0;
  for (const graph::Operator& op : {product, factors, transpose}) {
    alone += bytes(lone_work(op, rates, device));
    inside += bytes(fused_work(op, rates, device));
  }
  const double ends = bytes(lone_work(stream(9 * matrix), rates, device));  // rows and factors
  EXPECT_NEAR(flops / (4 * alone), 39.5, 0.05);
  EXPECT_NEAR(flops / (4 * (inside + ends)), 102.6, 0.05);
  EXPECT_NEAR(flops / (inside + ends), 410.4, 0.05);
}

RC_GTEST_PROP(Spatial, FusingNeverTakesLongerNorMovesMore, ()) {
  Device device = dataflow(FusionMode::unfused);
  device.spatial.sram = Bytes(*rc::gen::inRange<std::int64_t>(0, 10'000'000));
  const auto count = *rc::gen::inRange(1, 8);
  std::vector<graph::Operator> layer;
  Time alone{0};
  double alone_bytes = 0;
  double fused_bytes = 0;
  for (int i = 0; i < count; ++i) {
    const auto extent = [] { return *rc::gen::inRange<std::int64_t>(1, 4096); };
    layer.push_back(*rc::gen::arbitrary<bool>() ? spatial_gemm(extent(), extent(), extent())
                                                : stream(Bytes(extent() * 1000)));
    alone += kernel_time(layer.back(), device).alone;
    const Rates rates = rates_of(layer.back(), device, device.clock);
    alone_bytes += lone_work(layer.back(), rates, device).memory;
    fused_bytes += fused_work(layer.back(), rates, device).memory;
  }
  RC_ASSERT(fused_time(layer, device) + launches(device.spatial, 1) <= alone + 1_ps);
  RC_ASSERT(fused_bytes <= alone_bytes);
}

}  // namespace
}  // namespace orrery::compute
