// SPDX-License-Identifier: Apache-2.0
#include "machine/compute/kernel_pieces.h"

#include <gtest/gtest.h>

#include <utility>

namespace orrery::compute {
namespace {

TEST(Tracking, CostsAProductKappaTimesTheShareOfMovedTraffic) {
  // Law 3's OP of Mega-GPT-2 at TP 8: V = 2 x 16384 x 3072 B, c = V / 8, 13 c move; operands are
  // read twice, 2 x 2 (16384 x 384 + 384 x 3072) B.
  graph::Operator op{.name = "op",
                     .kind = graph::OperatorKind::gemm,
                     .gemm = {.batch = 1, .m = 16384, .n = 3072, .k = 384}};
  op.duration = 1_ms;
  op.pieces = 8;
  Device device;
  device.memory = {{.name = "hbm"}};
  const double result = 2.0 * 16384 * 3072;
  const double operands = 2 * 2.0 * (16384 * 384 + 384 * 3072);
  const double moved = 13 * result / 8;
  const double slower = 1 + 0.6 * moved / (operands + result + moved);
  op.tracking = graph::Tracking::shared;
  EXPECT_DOUBLE_EQ(slowed_by_engines(op, device), slower);
  device.tracker = Tracker{.contention = 0};
  EXPECT_DOUBLE_EQ(slowed_by_engines(op, device), 1);
  device.tracker = Tracker{.contention = 1.2};
  EXPECT_DOUBLE_EQ(slowed_by_engines(op, device), 1 + 2 * (slower - 1));
  const KernelTime all = time_in_pieces(op, device);
  EXPECT_EQ(all.alone, 1_ms * (1 + 2 * (slower - 1)));
  EXPECT_EQ(all.beside_message, all.alone);
  // Memory that serves the product first costs it nothing, nor do messages beside it.
  op.tracking = graph::Tracking::first;
  op.beside_message = op.beside_collective = 2;
  EXPECT_EQ(time_in_pieces(op, device).alone, 1_ms);
  EXPECT_EQ(time_in_pieces(op, device).beside_collective, 1_ms);
  Time sum{0};
  for (op.piece = 0; op.piece < op.pieces; ++op.piece) {
    sum += kernel_time(op, device).beside_message;
  }
  EXPECT_EQ(sum, 1_ms);
}

TEST(Tracking, AccessesOfTheReduceScatterAreThoseOfTheTable) {
  // N = 8: 15 and 6 reads, 16 and 14 writes; N = 16: 31 and 14, 32 and 30. Published: reads fall by
  // 2.5 and 2.2 times.
  const graph::Operator op{.name = "op",
                           .kind = graph::OperatorKind::gemm,
                           .gemm = {.batch = 1, .m = 160, .n = 80, .k = 40}};
  Device device;
  for (const auto& [ranks, reads] : {std::pair{8, 2.5}, {16, 31.0 / 14}}) {
    const TileTraffic traffic = tile_traffic(op, ranks, device);
    EXPECT_DOUBLE_EQ(traffic.chunk * ranks, 2.0 * 160 * 80);
    EXPECT_DOUBLE_EQ(traffic.reads_unfused() / traffic.reads_tracked(), reads);
    EXPECT_DOUBLE_EQ(traffic.writes_unfused() / traffic.writes_tracked(),
                     2.0 * ranks / (2 * ranks - 2));
  }
}

}  // namespace
}  // namespace orrery::compute
