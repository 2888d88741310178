// SPDX-License-Identifier: Apache-2.0
/// The shipped machines against measured collectives: medians of the NCCL 2.27.3 tables of
/// ai-dynamo/aiconfigurator@095f58a51c4c (nccl_perf, half precision, all GPUs in one node).
#include <gtest/gtest.h>

#include <cmath>

#include "collective/cost.h"

namespace orrery::collective {
namespace {

using Kind = graph::CollectiveKind;

struct Measured {
  Kind kind;
  std::int64_t ranks;
  Bytes size;
  double microseconds;
};

/// Mean of |predicted / measured - 1|; each must be within `worst`.
double mean_error(const char* name, const std::vector<Measured>& table, double worst) {
  const auto machine = machine::load_machine(name);
  EXPECT_TRUE(machine) << machine.error().to_string();
  double sum = 0;
  for (const Measured& row : table) {
    const Time time = collective_time(row.kind, row.size, extents_of(1, row.ranks, *machine),
                                      CollectiveAlgorithm::automatic, *machine);
    const double error = to_seconds(time) * 1e6 / row.microseconds - 1;
    EXPECT_LE(std::abs(error), worst) << name_of(row.kind) << " over " << row.ranks << " of "
                                      << row.size.value() << " bytes: " << error;
    sum += std::abs(error);
  }
  return sum / static_cast<double>(table.size());
}

TEST(Measured, NcclInsideADgxA100) {
  EXPECT_LE(mean_error("dgx-a100-80g",
                       {{Kind::all_reduce, 2, 64_KiB, 13.0},
                        {Kind::all_reduce, 4, 1_MiB, 29.8},
                        {Kind::all_reduce, 8, 1_MiB, 38.9},
                        {Kind::all_reduce, 8, 4_MiB, 77.3},
                        {Kind::all_reduce, 4, 16_MiB, 183.5},
                        {Kind::all_reduce, 8, 16_MiB, 216.5},
                        {Kind::all_reduce, 8, 256_MiB, 2182.5},
                        {Kind::all_gather, 4, 64_KiB, 15.4},
                        {Kind::all_gather, 8, 4_MiB, 48.0},
                        {Kind::all_gather, 8, 64_MiB, 351.6},
                        {Kind::all_gather, 2, 256_MiB, 939.0},
                        {Kind::reduce_scatter, 8, 4_MiB, 52.0},
                        {Kind::reduce_scatter, 8, 64_MiB, 327.2},
                        {Kind::reduce_scatter, 4, 256_MiB, 1034.8}},
                       0.25),
            0.08);
}

TEST(Measured, AllToAllInsideADgxA100IsPredictedFromRings) {
  // No all-to-all was fitted.
  EXPECT_LE(mean_error("dgx-a100-80g",
                       {{Kind::all_to_all, 2, 64_KiB, 13.9},
                        {Kind::all_to_all, 8, 64_KiB, 14.2},
                        {Kind::all_to_all, 4, 1_MiB, 25.2},
                        {Kind::all_to_all, 8, 4_MiB, 64.3},
                        {Kind::all_to_all, 8, 64_MiB, 347.6},
                        {Kind::all_to_all, 8, 256_MiB, 1197.9}},
                       0.4),
            0.2);
}

TEST(Measured, AllReduceInTheSwitchOfADgxH100) {
  EXPECT_LE(mean_error("dgx-h100",
                       {{Kind::all_reduce, 8, 1_MiB, 25.4},
                        {Kind::all_reduce, 8, 4_MiB, 50.4},
                        {Kind::all_reduce, 8, 16_MiB, 122.3},
                        {Kind::all_reduce, 8, 64_MiB, 322.9},
                        {Kind::all_reduce, 8, 256_MiB, 1090.2},
                        {Kind::all_reduce, 4, 64_MiB, 323.9}},
                       0.2),
            0.08);
}

TEST(Measured, RingsOverNodesOfEightA100) {
  // Bus bandwidth over that of the 8 NICs of a node, 200 GB/s, by size and 2, 4 ... 128 nodes
  // (efficiency table of github.com/aliyun/SimAI, ring all-reduce).
  const Bytes sizes[] = {16_MiB, 256_MiB, 1_GiB, 16_GiB};
  const double share[4][7] = {{.32, .24, .13, .05, .044, .021, .0087},
                              {.85, .77, .69, .57, .387, .209, .103},
                              {.92, .93, .90, .76, .74, .56, .31},
                              {.96, .96, .96, .96, .957, .958, .919}};
  const auto machine = machine::load_machine("dgx-a100-80g");
  ASSERT_TRUE(machine) << machine.error().to_string();
  double sum = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 7; ++j) {
      const std::int64_t ranks = 16LL << j;
      const Time time = collective_time(Kind::all_reduce, sizes[i], extents_of(1, ranks, *machine),
                                        CollectiveAlgorithm::ring, *machine);
      const auto n = static_cast<double>(ranks);
      const double bus = 2 * (n - 1) / n * static_cast<double>(sizes[i].value()) / to_seconds(time);
      const double error = bus / (share[i][j] * 200e9) - 1;
      EXPECT_LE(std::abs(error), 0.4) << sizes[i].value() << " bytes, " << ranks << " ranks";
      sum += std::abs(error);
    }
  }
  EXPECT_LE(sum / 28, 0.1);
}

}  // namespace
}  // namespace orrery::collective
