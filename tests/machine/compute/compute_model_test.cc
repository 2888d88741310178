// SPDX-License-Identifier: Apache-2.0
#include "machine/compute/compute_model.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::compute {
namespace {

/// A100-SXM4-80GB with the coefficients of tools/fit_gemm.py.
Device a100() {
  Device device;
  device.peak[static_cast<std::size_t>(graph::DataType::bf16)] = 312_TFLOPs;
  device.units = 108;
  device.memory = {{"hbm", 80_GiB, Bandwidth(2039e9), Time(0)}};
  KernelCoefficients& c = device.kernels;
  c.gemm_peak_share = 0.935;
  c.gemm_tile_load = 86;
  c.gemm_k_ramp = 195;
  c.gemm_wave_quantisation = 0.95;
  c.gemm_memory_share = 0.705;
  c.gemm_launch = 2450_ns;
  c.gemm_split_latency = 2400_ns;
  c.gemm_split_traffic = 0.9;
  return device;
}

graph::Operator gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  graph::Operator op;
  op.kind = graph::OperatorKind::gemm;
  op.gemm = {batch, m, n, k};
  op.flops = graph::flops_of(op.gemm);
  return op;
}

double microseconds(Time time) {
  return to_seconds(time) * 1e6;
}

TEST(ComputeModel, OneFullWaveByHand) {
  // 108 tiles of 128 x 128 fill 108 units: m = 128 * 108, n = 128, k = 4096; make tile loads free,
  // no ramp, no launch: 128*128*2 FLOP per K and unit at 312e12/108 FLOP/s: 4096 * 32768
  // / 2.8889e12 s.
  Device device = a100();
  device.kernels = {};
  device.kernels.gemm_peak_share = 1;
  device.kernels.gemm_tile_load = 0;
  device.kernels.gemm_k_ramp = 0;
  device.kernels.gemm_launch = 0_ps;
  device.memory[0].bandwidth = Bandwidth(1e15);  // never the limit
  EXPECT_NEAR(microseconds(kernel_time(gemm(13824, 128, 4096), device).alone),
              4096 * 32768 / (312e12 / 108) * 1e6, 1e-3);
}

TEST(ComputeModel, MatchesTheIndependentReferenceImplementation) {
  // Worked examples of the Python implementation of the same formula (tools/fit_gemm.py), in us.
  struct Case {
    std::int64_t m, n, k, batch;
    double expected;
  };
  for (const Case& c :
       {Case{1, 4096, 4096, 1, 25.8037}, Case{16, 1024, 1024, 1, 6.5280},
        Case{100, 778, 334, 1, 4.3690}, Case{1024, 1024, 1024, 1, 19.8969},
        Case{1024, 4096, 4096, 1, 177.6558}, Case{2048, 3072, 1024, 1, 61.2736},
        Case{8192, 12288, 12288, 1, 8777.2709}, Case{1024, 51200, 2048, 1, 818.2615},
        Case{2048, 2048, 128, 192, 1789.0714}, Case{1024, 1024, 64, 16, 33.7886}}) {
    EXPECT_NEAR(microseconds(kernel_time(gemm(c.m, c.n, c.k, c.batch), a100()).alone), c.expected,
                2e-4 * c.expected)
        << c.m << "x" << c.n << "x" << c.k << " batch " << c.batch;
  }
}

TEST(ComputeModel, OddRowsTakeThreeTimesAsLong) {
  // The reference implementation with a third of gemm_peak_share, in us: a vocabulary of 50,257
  // that is not padded, in the result, in the operands of the input's gradient and in the result of
  // the weight's.
  EXPECT_NEAR(microseconds(kernel_time(gemm(8192, 50257, 1024), a100()).alone), 10381.2031, 2);
  EXPECT_NEAR(microseconds(kernel_time(gemm(8192, 1024, 50257), a100()).alone), 9226.7898, 2);
  EXPECT_GT(kernel_time(gemm(1024, 50257, 8192), a100()).alone,
            2.9 * kernel_time(gemm(1024, 50258, 8192), a100()).alone);
  // Numbers of tokens are not laid out in a row; products of attention run one by one.
  EXPECT_LT(kernel_time(gemm(8193, 1024, 4096), a100()).alone,
            1.1 * kernel_time(gemm(8192, 1024, 4096), a100()).alone);
  EXPECT_LT(kernel_time(gemm(4096, 1024, 2047), a100()).alone,
            1.1 * kernel_time(gemm(4096, 1024, 2048), a100()).alone);
  EXPECT_LT(kernel_time(gemm(1023, 1023, 64, 16), a100()).alone,
            1.1 * kernel_time(gemm(1024, 1024, 64, 16), a100()).alone);
}

TEST(ComputeModel, AMeasuredKernelIsAsMuchSlowerAsItSays) {
  // Whatever the device: 40 us, half as long again beside a collective.
  const graph::Operator op{.name = "measured",
                           .kind = graph::OperatorKind::opaque,
                           .gemm = {},
                           .duration = 40_us,
                           .beside_collective = 1.5};
  const KernelTime time = kernel_time(op, a100());
  EXPECT_EQ(time.alone, 40_us);
  EXPECT_EQ(time.beside_collective, 60_us);
  EXPECT_EQ(time.beside_message, 40_us);
}

TEST(ComputeModel, MeasuredA100Gemms) {
  // LLMCompass (ISCA 2024) figure 5, A100, fp16, n = k = 12288; not used in the fit. Microseconds.
  struct Case {
    std::int64_t m;
    double measured;
  };
  for (const Case& c :
       {Case{512, 611.8}, Case{2048, 2358.6}, Case{8192, 8621.6}, Case{32768, 35440.7}}) {
    EXPECT_NEAR(microseconds(kernel_time(gemm(c.m, 12288, 12288), a100()).alone), c.measured,
                0.05 * c.measured);
  }
}

TEST(ComputeModel, MemoryBoundKernelStreamsItsBytes) {
  // 2.039 GB at 0.5 of 2,039 GB/s: 2 ms, and two launches of 2.5 us.
  Device device = a100();
  device.kernels.elementwise_share = 0.5;
  device.kernels.stream_launch = 2500_ns;
  graph::Operator op;
  op.bytes = Bytes(2'039'000'000);
  op.kernels = 2;
  EXPECT_EQ(kernel_time(op, device).alone, 2_ms + 5_us);
}

TEST(ComputeModel, LongRowsOfANormAreReadTwice) {
  // Half way at norm_width: (0.8 + 0.4) / 2 = 0.6 of the bandwidth.
  Device device = a100();
  device.kernels.norm_share = 0.8;
  device.kernels.norm_long_share = 0.4;
  device.kernels.norm_width = 10000;
  device.kernels.stream_launch = 0_ps;
  graph::Operator op;
  op.kind = graph::OperatorKind::norm;
  op.gemm.k = 10000;
  op.bytes = Bytes(2'039'000'000);
  EXPECT_NEAR(to_seconds(kernel_time(op, device).alone), 1e-3 / 0.6, 1e-9);
}

TEST(ComputeModel, FusedAttentionRunsAtItsShareOfPeak) {
  // 312e9 FLOP at half of 312 TFLOP/s: 2 ms; backward at a quarter: 4 ms.
  Device device = a100();
  device.kernels.gemm_launch = 0_ps;
  device.kernels.attention_share = 0.5;
  device.kernels.attention_backward_share = 0.25;
  graph::Operator op;
  op.kind = graph::OperatorKind::attention;
  op.flops = Flops(312e9);
  EXPECT_EQ(kernel_time(op, device).alone, 2_ms);
  op.backward = true;
  EXPECT_EQ(kernel_time(op, device).alone, 4_ms);
}

TEST(ComputeModel, AGroupedGemmSharesOneLaunchAndItsLastWave) {
  // 8 experts of 128 rows, n = 1728 = 13.5 tiles of 128: 8 * 14 = 112 tiles. As one launch: what
  // the batched GEMM takes; as eight launches: seven more of them, and eight partly filled waves.
  graph::Operator grouped = gemm(128, 1728, 4096, 8);
  grouped.kind = graph::OperatorKind::grouped_gemm;
  EXPECT_EQ(kernel_time(grouped, a100()).alone,
            kernel_time(gemm(128, 1728, 4096, 8), a100()).alone);
  EXPECT_LT(kernel_time(grouped, a100()).alone + a100().kernels.gemm_launch * 7,
            kernel_time(gemm(128, 1728, 4096), a100()).alone * 8);
}

TEST(ComputeModel, AGroupedGemmNeverSplitsItsKAndLosesMoreOfIt) {
  // 2 experts of 128 x 128, K = 65536: 2 tiles for 108 units. A plain GEMM splits K and is faster.
  graph::Operator grouped = gemm(128, 128, 65536, 2);
  grouped.kind = graph::OperatorKind::grouped_gemm;
  EXPECT_GT(kernel_time(grouped, a100()).alone,
            kernel_time(gemm(128, 128, 65536, 2), a100()).alone * 4);
  // Ramp: twice the K (and the first ramp, 195) is computed; launch: 7 us later.
  Device device = a100();
  device.kernels.gemm_launch = 0_ps;
  const Time before = kernel_time(grouped, device).alone;
  device.kernels.grouped_k_ramp = 65536 + 195;
  EXPECT_NEAR(kernel_time(grouped, device).alone / before, 2, 1e-3);
  device.kernels.grouped_launch = 7_us;
  EXPECT_NEAR(to_seconds(kernel_time(grouped, device).alone - before * 2), 7e-6, 1e-7);
}

TEST(ComputeModel, FourBitOperandsAreAQuarterOfTheTrafficOfSixteenAndResultsAreSixteen) {
  // k = 1: bound by the output's m n elements, 2 bytes each in either. m = 16, k = n = 16384: by
  // the n k elements of B, 0.5 byte each against 2.
  Device device = a100();
  device.peak[static_cast<std::size_t>(graph::DataType::fp4)] =
      device.peak[static_cast<std::size_t>(graph::DataType::bf16)];
  device.kernels.gemm_launch = 0_ps;
  device.kernels.gemm_k_ramp = 0;
  graph::Operator narrow = gemm(16384, 16384, 1);
  narrow.type = graph::DataType::fp4;
  EXPECT_NEAR(kernel_time(gemm(16384, 16384, 1), device).alone / kernel_time(narrow, device).alone,
              1.0, 0.01);
  device.units = 1;  // one wave after the other streams B
  device.peak.fill(FlopRate(1e18));
  narrow = gemm(16, 16384, 16384);
  const Time wide = kernel_time(narrow, device).alone;
  narrow.type = graph::DataType::fp4;
  EXPECT_NEAR(wide / kernel_time(narrow, device).alone, 4.0, 0.02);
}

/// 16 x 16 cells at 1 GHz, bf16, memory that is never in the way.
Device systolic() {
  Device device = a100();
  device.model = ComputeModel::systolic;
  device.systolic = {.rows = 16,
                     .cols = 16,
                     .dataflow = Dataflow::output_stationary,
                     .input_sram = 1_MiB,
                     .filter_sram = 1_MiB,
                     .output_sram = 1_MiB};
  device.peak[static_cast<std::size_t>(graph::DataType::bf16)] = FlopRate(2 * 256 * 1e9);
  device.memory[0].bandwidth = Bandwidth(1e18);
  device.kernels.gemm_launch = 0_ps;
  device.kernels.gemm_memory_share = 1;
  return device;
}

TEST(ComputeModel, ASystolicDeviceTakesTheCyclesOfItsFolds) {
  // 16 folds of 64 + 30 cycles; eight products one after the other.
  EXPECT_NEAR(microseconds(kernel_time(gemm(64, 64, 64), systolic()).alone), 1.504, 1e-5);
  EXPECT_NEAR(microseconds(kernel_time(gemm(64, 64, 64, 8), systolic()).alone), 8 * 1.504, 1e-5);
  // A quarter of the clock.
  Device slow = systolic();
  slow.clock = 0.25;
  EXPECT_NEAR(microseconds(kernel_time(gemm(64, 64, 64), slow).alone), 4 * 1.504, 1e-5);
  // What is no product is as on any device.
  graph::Operator norm;
  norm.kind = graph::OperatorKind::norm;
  norm.bytes = 1_GiB;
  EXPECT_EQ(kernel_time(norm, systolic()).alone, kernel_time(norm,
                                                             [] {
                                                               Device device = systolic();
                                                               device.model =
                                                                   ComputeModel::roofline;
                                                               return device;
                                                             }())
                                                     .alone);
}

TEST(ComputeModel, ASystolicDeviceWaitsForMemory) {
  // 1 GB/s: (64 x 64 x 3) elements of 2 bytes take 24.576 us at least, the folds 1.504.
  Device device = systolic();
  device.memory[0].bandwidth = Bandwidth(1e9);
  EXPECT_GE(microseconds(kernel_time(gemm(64, 64, 64), device).alone), 24.576);
  EXPECT_EQ(systolic_kernel(gemm(64, 64, 64), device, {}, false).cost.stall_cycles, 0);
}

TEST(ComputeModel, AttentionOnArraysIsItsProducts) {
  // One head, 64 queries and keys, all seen, d = 64: Q K^T and P V, 1.504 us each.
  graph::Operator op;
  op.kind = graph::OperatorKind::attention;
  op.gemm = {1, 64, 64, 64};
  op.flops = Flops(4.0 * 64 * 64 * 64);
  Device device = systolic();
  device.kernels.attention_launch = 0_ps;
  EXPECT_NEAR(microseconds(kernel_time(op, device).alone), 2 * 1.504, 1e-5);
  op.backward = true;
  op.flops = Flops(10.0 * 64 * 64 * 64);
  EXPECT_NEAR(microseconds(kernel_time(op, device).alone), 5 * 1.504, 1e-5);
}

TEST(ComputeModel, PiecesOfAKernelTakeItsTimeTogether) {
  // Beside a collective too, to a picosecond a piece, which is never faster than alone.
  Device device = a100();
  device.overlap_units = 0.2;
  for (const std::int64_t m : {64, 777, 4096}) {
    for (const std::int32_t n : {2, 7, 32}) {
      const graph::Operator whole = gemm(m, 4096, 1024);
      const KernelTime all = kernel_time(whole, device);
      KernelTime sum;
      for (std::int32_t i = 0; i < n; ++i) {
        graph::Operator piece = whole;
        piece.piece = i;
        piece.pieces = n;
        piece.kernels = i == 0 ? 1 : 0;
        const KernelTime time = kernel_time(piece, device);
        EXPECT_EQ(lone_kernel_time(piece, device), time.alone);
        EXPECT_GE(time.beside_collective, time.alone);
        sum.alone += time.alone;
        sum.beside_collective += time.beside_collective;
      }
      EXPECT_EQ(sum.alone, all.alone);
      EXPECT_GE(sum.beside_collective, all.beside_collective);
      EXPECT_LE(sum.beside_collective, all.beside_collective + Time(n));
    }
  }
}

TEST(ComputeModel, APieceOfAKernelOfKnownDurationIsItsPart) {
  // 10 ps in three: up to 3, 6 and 10.
  graph::Operator op{.kind = graph::OperatorKind::opaque, .duration = Time(10)};
  op.pieces = 3;
  for (const std::int64_t expected : {3, 3, 4}) {
    EXPECT_EQ(kernel_time(op, a100()).alone, Time(expected));
    ++op.piece;
  }
}

RC_GTEST_PROP(ComputeModel, NeverFasterThanTheRoofline, ()) {
  const auto m = *rc::gen::inRange<std::int64_t>(1, 20000);
  const auto n = *rc::gen::inRange<std::int64_t>(1, 20000);
  const auto k = *rc::gen::inRange<std::int64_t>(1, 20000);
  const auto batch = *rc::gen::inRange<std::int64_t>(1, 64);
  const graph::Operator op = gemm(m, n, k, batch);
  const KernelTime time = kernel_time(op, a100());
  RC_ASSERT(time.alone >= op.flops / 312_TFLOPs);
  const double elements = static_cast<double>(batch * (m * k + k * n + m * n));
  RC_ASSERT(to_seconds(time.alone) >= 2 * elements / 2039e9);
}

RC_GTEST_PROP(ComputeModel, MonotoneInPeakAndBandwidth, ()) {
  const graph::Operator op =
      gemm(*rc::gen::inRange<std::int64_t>(1, 9000), *rc::gen::inRange<std::int64_t>(1, 9000),
           *rc::gen::inRange<std::int64_t>(1, 9000));
  Device faster = a100();
  faster.peak[static_cast<std::size_t>(graph::DataType::bf16)] = 400_TFLOPs;
  RC_ASSERT(kernel_time(op, faster).alone <= kernel_time(op, a100()).alone);
  Device wider = a100();
  wider.memory[0].bandwidth = Bandwidth(3000e9);
  RC_ASSERT(kernel_time(op, wider).alone <= kernel_time(op, a100()).alone);
}

TEST(ComputeModel, CommunicationTakesItsShareOfUnits) {
  // Full waves of a deep K: 1/4 of 108 units less leaves 81, 4/3 of the time; one unit less
  // 108/107.
  Device device = a100();
  device.kernels.gemm_launch = 0_ps;
  device.kernels.gemm_wave_quantisation = 0;
  device.memory[0].bandwidth = Bandwidth(1e15);
  device.overlap_units = 0.25;
  device.overlap_send_units = 1.0 / 108;
  const KernelTime time = kernel_time(gemm(256 * 324, 128, 8192), device);
  EXPECT_NEAR(time.beside_collective / time.alone, 4.0 / 3, 1e-3);
  EXPECT_NEAR(time.beside_message / time.alone, 108.0 / 107, 1e-3);
  device.overlap_units = device.overlap_send_units = 0;
  EXPECT_EQ(kernel_time(gemm(256 * 324, 128, 8192), device).beside_collective, time.alone);
}

RC_GTEST_PROP(ComputeModel, OverlapNeverSpeedsUp, ()) {
  Device device = a100();
  device.overlap_units = 0.2;
  device.overlap_memory = 0.1;
  device.overlap_send_units = 0.02;
  const KernelTime time =
      kernel_time(gemm(*rc::gen::inRange<std::int64_t>(1, 9000), 1024, 1024), device);
  RC_ASSERT(time.beside_message >= time.alone);
  RC_ASSERT(time.beside_collective >= time.beside_message);
}

}  // namespace
}  // namespace orrery::compute
