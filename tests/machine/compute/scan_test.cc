// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>

#include "machine/compute/compute_model.h"

namespace orrery::compute {
namespace {

TEST(Scan, TakesAsLongAsTheTritonKernelsOnAnH100) {
  // 128 heads of 64, state 128, chunks of 256 tokens: 8.45 MFLOP and 99,072 bytes per token. Tokens
  // per second of the original kernels: vllm-project/vllm pull request 27299.
  Device device;
  device.peak[static_cast<std::size_t>(graph::DataType::bf16)] = FlopRate(989.4e12);
  device.memory = {{"hbm", 80_GiB, Bandwidth(3.35e12), Time(0)}};
  for (const auto& [tokens, rate] : std::map<std::int64_t, double>{
           {4096, 12.06409e6}, {8192, 12.62327e6}, {16384, 12.92440e6}, {32768, 11.80002e6}}) {
    graph::Operator scan;
    scan.kind = graph::OperatorKind::scan;
    scan.flops = Flops(8.45e6 * static_cast<double>(tokens));
    scan.bytes = Bytes(99'072) * tokens;
    const double published = static_cast<double>(tokens) / rate;
    EXPECT_NEAR(to_seconds(kernel_time(scan, device).alone) / published, 1, 0.06) << tokens;
  }
}

TEST(Scan, RunsBackwardAtAShareOfPeakOfItsOwn) {
  // 1 GFLOP at 2 % of 100 TFLOP/s: 500 us, and 1 us to start.
  Device device;
  device.peak[static_cast<std::size_t>(graph::DataType::bf16)] = FlopRate(100e12);
  device.memory = {{"hbm", 80_GiB, Bandwidth(3e12), Time(0)}};
  device.kernels.gemm_launch = 1_us;
  device.kernels.scan_share = 0.1;
  device.kernels.scan_backward_share = 0.02;
  graph::Operator scan;
  scan.kind = graph::OperatorKind::scan;
  scan.flops = Flops(1e9);
  EXPECT_EQ(kernel_time(scan, device).alone, 101_us);
  scan.backward = true;
  EXPECT_EQ(kernel_time(scan, device).alone, 501_us);
}

}  // namespace
}  // namespace orrery::compute
