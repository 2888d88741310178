// SPDX-License-Identifier: Apache-2.0
#include "collective/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "networks.h"

namespace orrery::collective {
namespace {

using testing::cluster_of;
using ::testing::HasSubstr;
using testing::kMegabyte;
using Kind = graph::CollectiveKind;
using Algorithm = CollectiveAlgorithm;

SweepOptions one_size(Kind kind, std::int64_t devices, Bytes size) {
  return {.kind = kind, .devices = devices, .smallest = size, .largest = size};
}

TEST(Sweep, BusBandwidthIsAlgorithmBandwidthTimesWhatARankMoves) {
  // Ring of 4 at 100 GB/s and 1 us: 6 steps and 6/4 of 10 us: 1 MB in 21 us. 3/2 of that rate.
  const auto rows =
      sweep_collective(cluster_of(4, 2), one_size(Kind::all_reduce, 4, kMegabyte)).value();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].time, 21_us);
  EXPECT_NEAR(rows[0].algbw, 1e6 / 21e-6, 1);
  EXPECT_NEAR(rows[0].busbw, 1.5e6 / 21e-6, 1);
  EXPECT_EQ(rows[0].algorithm, Algorithm::ring);
  EXPECT_DOUBLE_EQ(bus_factor(Kind::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Kind::all_to_all, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(Kind::send_recv, 8), 1);
}

TEST(Sweep, APartOfARackStaysInsideIt) {
  // 16 of a switch of 72, the rest unused: as fast as a switch of 16.
  machine::Machine rack = cluster_of(72, 2);
  const SweepOptions options = one_size(Kind::all_reduce, 16, kMegabyte);
  EXPECT_EQ(sweep_collective(rack, options).value()[0].time,
            sweep_collective(cluster_of(16, 2), options).value()[0].time);
}

TEST(Sweep, SizesAreMultipliedByTheFactorUpToTheLargest) {
  SweepOptions options = one_size(Kind::all_gather, 2, Bytes(8));
  options.largest = 100_B;
  std::vector<std::int64_t> sizes;
  const auto rows = sweep_collective(cluster_of(4, 2), options).value();
  for (const SweepRow& row : rows) {
    sizes.push_back(row.bytes.value());
  }
  EXPECT_THAT(sizes, ::testing::ElementsAre(8, 16, 32, 64));
  options.factor = 1.01;  // grows by at least one byte
  EXPECT_EQ(sweep_collective(cluster_of(4, 2), options).value().size(), 93U);
}

TEST(Sweep, AnAlgorithmThatCannotIsAMistakeNamingThoseThatCan) {
  SweepOptions options = one_size(Kind::all_reduce, 4, kMegabyte);
  options.algorithm = Algorithm::in_switch;
  const auto none = sweep_collective(cluster_of(8, 2), options);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().to_string(),
              ::testing::AllOf(HasSubstr("--algorithm: found 'in_switch'"),
                               HasSubstr("auto, ring, direct, halving_doubling")));
}

TEST(Sweep, EveryMistakeAtOnce) {
  const SweepOptions options{.devices = 12, .largest = Bytes(1), .factor = 1};
  const auto wrong = sweep_collective(cluster_of(8, 4), options);
  ASSERT_FALSE(wrong);
  const std::string text = wrong.error().to_string();
  EXPECT_THAT(text, HasSubstr("--max: found '1', expected at least --min"));
  EXPECT_THAT(text, HasSubstr("--factor: found '1'"));
  EXPECT_THAT(text, HasSubstr("--devices: found '12', expected at most 8 or a multiple of that"));
  EXPECT_THAT(text, HasSubstr("nearest: 8 and 16"));
  EXPECT_FALSE(sweep_collective(cluster_of(8, 4), {.devices = 1}));
  EXPECT_FALSE(sweep_collective(cluster_of(8, 4), {.devices = 64}));
}

RC_GTEST_PROP(SweepProperty, RingBusBandwidthStaysUnderThePort, ()) {
  // Any dimension of 100 GB/s: a ring moves at most the port's rate over the bus.
  const auto members = *rc::gen::inRange<std::int64_t>(2, 17);
  SweepOptions options =
      one_size(*rc::gen::element(Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter), members,
               Bytes(*rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 36)));
  options.algorithm = Algorithm::ring;
  RC_ASSERT(sweep_collective(cluster_of(16, 2), options).value()[0].busbw <= 100e9 * 1.000001);
}

TEST(Sweep, TheSwitchExceedsTheLinkRate) {
  // NVLS: a port carries S(1 + 1/8) for a bus of 2 * 7/8 S: up to 14/9 of the link, 155.6 GB/s.
  machine::Machine machine = cluster_of(8, 2);
  machine.network[0].in_switch = {{.name = "NVLS", .launch = 20_us, .step_latency = 1_us}};
  SweepOptions options = one_size(Kind::all_reduce, 8, 64_GiB);
  options.algorithm = Algorithm::in_switch;
  const double busbw = sweep_collective(machine, options).value()[0].busbw;
  EXPECT_NEAR(busbw, 100e9 * 14 / 9, 1e9);
}

}  // namespace
}  // namespace orrery::collective
