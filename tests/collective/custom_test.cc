// SPDX-License-Identifier: Apache-2.0
/// All-reduce kernels of serving engines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/cost.h"
#include "collective/left_out.h"
#include "networks.h"

namespace orrery::collective {
namespace {

using testing::bare_machine;
using testing::cluster_of;
using testing::dimension_of;
using testing::kMegabyte;
using Kind = graph::CollectiveKind;
using Algorithm = CollectiveAlgorithm;

/// 8 devices at 100 GB/s, memory 2 TB/s; one_shot 4 us + 0.5 us a peer at half the bandwidth,
/// two_shot 8 us.
machine::Machine serving_node() {
  machine::Machine machine = cluster_of(8, 2);
  machine.device.memory = {{.name = "hbm", .bandwidth = Bandwidth(2e12)}};
  topology::NetworkDimension& node = machine.network[0];
  node.protocols = {{.name = "Simple", .launch = 20_us, .step_latency = 2_us}};
  node.one_shot = {{.name = "graph", .launch = 4_us, .step_latency = 500_ns, .efficiency = 0.5},
                   {.name = "eager",
                    .launch = 6_us,
                    .step_latency = 500_ns,
                    .efficiency = 0.5,
                    .buffer_copy = 2,
                    .at_least = 30_us}};
  node.two_shot = {{.name = "graph", .launch = 8_us, .step_latency = 500_ns, .efficiency = 0.5}};
  return machine;
}

Time custom_time_of(Algorithm algorithm, Bytes size, std::int64_t members = 4) {
  const machine::Machine machine = serving_node();
  return collective_time(Kind::all_reduce, size, extents_of(1, members, machine), algorithm,
                         machine);
}

TEST(Custom, OneShotReadsAllOthersBuffers) {
  // 100 kB take 2 us at 50 GB/s: 4 us + 3 peers of 0.5 us + 3 x 2 us.
  EXPECT_EQ(custom_time_of(Algorithm::one_shot, Bytes(100'000)), 11'500_ns);
}

TEST(Custom, TwoShotReadsAShardOfEachAndThenTheSums) {
  // 8 us + 2 x 3 peers of 0.5 us + 2 x 3/4 x 2 us.
  EXPECT_EQ(custom_time_of(Algorithm::two_shot, Bytes(100'000)), 14_us);
}

TEST(Custom, TwoMembersMoveTheSameEitherWay) {
  // 100 kB: 4 + 0.5 + 2 us, 8 + 2 x 0.5 + 2 us.
  EXPECT_EQ(custom_time_of(Algorithm::one_shot, Bytes(100'000), 2), 6'500_ns);
  EXPECT_EQ(custom_time_of(Algorithm::two_shot, Bytes(100'000), 2), 11_us);
}

TEST(Custom, LinksToEveryOtherCarryOneBufferEach) {
  // Three links of 33.3 GB/s, 1 MB on each: 30 us; 1 us of the step, 2 further hops' messages none.
  machine::Machine machine =
      bare_machine({dimension_of(topology::DimensionKind::fully_connected, 4)});
  machine.network[0].one_shot = {{.name = "graph", .step_latency = 1_us}};
  EXPECT_EQ(collective_time(Kind::all_reduce, kMegabyte, extents_of(1, 4, machine),
                            Algorithm::one_shot, machine),
            33_us);
}

TEST(Custom, TheEngineTakesTheFastestOfItsKernelsAndTheLibrary) {
  // 1 KiB one_shot; 1 MB two_shot: 8 + 3 + 30 us, one_shot 5.5 + 60; 100 MB the ring of 100 GB/s:
  // 20 + 6 x 2 + 1500 us against 3011.
  const auto taken = [](Bytes size) {
    const machine::Machine machine = serving_node();
    return plan_collective(Kind::all_reduce, size, extents_of(1, 4, machine), Algorithm::custom,
                           machine)
        .front()
        .algorithm;
  };
  EXPECT_EQ(taken(1_KiB), Algorithm::one_shot);
  EXPECT_EQ(taken(kMegabyte), Algorithm::two_shot);
  EXPECT_EQ(taken(100 * kMegabyte), Algorithm::ring);
  EXPECT_EQ(custom_time_of(Algorithm::custom, 100 * kMegabyte), 1532_us);
}

TEST(Custom, EagerWaitsForTheHostAndCopiesTheBuffer) {
  // 100 kB: 6 + 1.5 + 6 us and two passes of 0.05 us: the host's 30 us are longer. 100 MB: the ring
  // and two passes of 50 us.
  EXPECT_EQ(custom_time_of(Algorithm::custom_eager, Bytes(100'000)), 30_us);
  EXPECT_EQ(custom_time_of(Algorithm::custom_eager, 100 * kMegabyte), 1632_us);
}

TEST(Custom, AutomaticNeverTakesThem) {
  // The training default: 4 devices and 1 KiB take 20 + 6 x 2 us and the bytes, not 5.5 us.
  EXPECT_GE(custom_time_of(Algorithm::automatic, 1_KiB), 32_us);
}

TEST(Custom, OnlyAllReducesOfOneNodeHaveThem) {
  const machine::Machine machine = serving_node();
  const auto does = [&](Kind kind, Algorithm algorithm, std::int64_t members) {
    return performs(kind, algorithm, extents_of(1, members, machine), machine);
  };
  for (const Algorithm algorithm : {Algorithm::one_shot, Algorithm::two_shot, Algorithm::custom}) {
    EXPECT_TRUE(does(Kind::all_reduce, algorithm, 8));
    EXPECT_FALSE(does(Kind::all_gather, algorithm, 8));
    EXPECT_FALSE(does(Kind::all_reduce, algorithm, 16));
  }
  EXPECT_FALSE(does(Kind::all_reduce, Algorithm::custom_trtllm, 8));  // the machine lists none
}

TEST(LeftOut, SaysWhatAutomaticDoesNotTake) {
  SweepOptions options{.devices = 4, .smallest = 1_KiB, .largest = 1_MiB};
  const auto on = sweep_case(serving_node(), options);
  ASSERT_TRUE(on);
  const auto lines = left_out(*on, options);
  EXPECT_THAT(lines, ::testing::Contains(
                         ::testing::AllOf(::testing::HasSubstr("custom would be faster from 1 KiB"),
                                          ::testing::HasSubstr("training calls NCCL"))));
  EXPECT_THAT(lines, ::testing::Contains(::testing::HasSubstr("halving_doubling")));
  options.algorithm = Algorithm::ring;
  EXPECT_TRUE(left_out(*on, options).empty());
}

}  // namespace
}  // namespace orrery::collective
