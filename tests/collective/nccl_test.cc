// SPDX-License-Identifier: Apache-2.0
/// `auto` takes the protocols, and collectives over nodes, that NCCL does.
#include <gtest/gtest.h>

#include "collective/cost.h"
#include "networks.h"

namespace orrery::collective {
namespace {

using testing::bare_machine;
using testing::cluster_of;
using testing::dimension_of;
using testing::kMegabyte;
using Kind = graph::CollectiveKind;
using Algorithm = CollectiveAlgorithm;

TEST(Nccl, AutomaticTakesTheTreeForSmallMessagesBetweenNodes) {
  // 8 x 4: chain of 7 and depth 2, up and down: 2 * (7 * 1 + 2 * 5) = 34 us, against 310 us.
  const machine::Machine machine = cluster_of(8, 4);
  const auto phases = plan_collective(Kind::all_reduce, 1_KiB, extents_of(1, 32, machine),
                                      Algorithm::automatic, machine);
  ASSERT_EQ(phases.size(), 1U);
  EXPECT_EQ(phases[0].algorithm, Algorithm::double_binary_tree);
  EXPECT_EQ(phases[0].latency, 34_us);
}

TEST(Nccl, AutomaticTakesNoMoreBandwidthOverTwoNodesThanTheRing) {
  // A tree over two nodes sends S through each node's adapters each way, a ring 2 (p-1)/p S;
  // measured all-reduces over two nodes are as slow as rings (see cost.cc).
  const machine::Machine machine = cluster_of(8, 2);
  const auto time = [&](Algorithm algorithm) {
    return to_seconds(
        collective_time(Kind::all_reduce, 1_GiB, extents_of(1, 16, machine), algorithm, machine));
  };
  EXPECT_NEAR(time(Algorithm::double_binary_tree), 0.81 * time(Algorithm::ring),
              0.01 * time(Algorithm::ring));
  EXPECT_NEAR(time(Algorithm::automatic), time(Algorithm::ring), 0.01 * time(Algorithm::ring));
}

TEST(Nccl, AutomaticStaysWithTheRingInsideANode) {
  const machine::Machine machine = cluster_of(8, 4);
  for (const Bytes size : {1_KiB, 1_MiB, 1_GiB}) {
    EXPECT_EQ(plan_collective(Kind::all_reduce, size, extents_of(1, 8, machine),
                              Algorithm::automatic, machine)[0]
                  .algorithm,
              Algorithm::ring);
  }
}

TEST(Nccl, TheSwitchAddsUpOnlyForTheWholeDimension) {
  // 8 members: 20 us + 2 * 1 us + 9/8 of 10 us, against the ring's 14 us + 2 * 7/8 of 10 us.
  machine::Machine machine = cluster_of(8, 2);
  machine.network[0].in_switch = {{.name = "NVLS", .launch = 20_us, .step_latency = 1_us}};
  const auto time = [&](std::int64_t members, Bytes size) {
    return collective_time(Kind::all_reduce, size, extents_of(1, members, machine),
                           Algorithm::in_switch, machine);
  };
  EXPECT_EQ(time(8, kMegabyte), Time(33'250'000));
  // Four of the eight: automatic instead, the ring.
  EXPECT_EQ(time(4, kMegabyte), 21_us);
  // Automatic takes it where it is faster: 100 MB.
  const auto phases = plan_collective(Kind::all_reduce, 100 * kMegabyte, extents_of(1, 8, machine),
                                      Algorithm::automatic, machine);
  EXPECT_EQ(phases[0].algorithm, Algorithm::in_switch);
  EXPECT_EQ(plan_collective(Kind::all_reduce, kMegabyte, extents_of(1, 8, machine),
                            Algorithm::automatic, machine)[0]
                .algorithm,
            Algorithm::ring);
}

TEST(Nccl, TheSwitchAndTreesAddUpOverNodes) {
  // 8 x 4: the switch 2 steps of 1 us and 9/8 of 10 us; a tree over 4 nodes 2 * 2 steps of 5 us,
  // each node's 8 NICs carry 2/8 of 1 MB at 10 GB/s: 25 us, longer than the switch.
  machine::Machine machine = cluster_of(8, 4);
  machine.network[0].in_switch = {{.name = "NVLS", .launch = 20_us, .step_latency = 1_us}};
  const auto phases = plan_collective(Kind::all_reduce, kMegabyte, extents_of(1, 32, machine),
                                      Algorithm::in_switch, machine);
  ASSERT_EQ(phases.size(), 1U);
  EXPECT_EQ(phases[0].algorithm, Algorithm::in_switch);
  EXPECT_EQ(phases[0].ports[0].serialisation, 11'250_ns);
  EXPECT_EQ(phases[0].ports[1].serialisation, 25_us);
  EXPECT_EQ(phases[0].latency, 20_us + 2_us + 20_us);
}

TEST(Nccl, ASendToTheNextRankMovesTheBufferOnce) {
  // 1 MB: 10 us over 100 GB/s and 1 us. Over nodes the last of each node sends 1 MB at 10 GB/s.
  const machine::Machine machine = cluster_of(8, 4);
  const auto time = [&](std::int64_t members) {
    return collective_time(Kind::send_recv, kMegabyte, extents_of(1, members, machine),
                           Algorithm::automatic, machine);
  };
  EXPECT_EQ(time(2), 11_us);
  EXPECT_EQ(time(8), 11_us);
  EXPECT_EQ(time(32), 105_us);
}

TEST(Nccl, ASendToTheNextRankOnOneOfSeveralLinksIsSlower) {
  // 8 devices, 100 GB/s each. One of 7 links: 70 us. Ring: one of two links, 20 us; a line the same
  // but for the message that returns 7 links to the first.
  const auto time = [](topology::DimensionKind kind) {
    const machine::Machine machine = bare_machine({dimension_of(kind, 8)});
    return collective_time(Kind::send_recv, kMegabyte, extents_of(1, 8, machine),
                           Algorithm::automatic, machine);
  };
  EXPECT_EQ(time(topology::DimensionKind::fully_connected), 71_us);
  EXPECT_EQ(time(topology::DimensionKind::ring), 21_us);
  EXPECT_EQ(time(topology::DimensionKind::mesh), 27_us);
}

TEST(Nccl, RailsBundleMessagesAndPassThroughTheNode) {
  // 8 x 4 with 1 us a message: direct, 24 messages leave a device; by rails one for each of the 3
  // other nodes, and an exchange inside: 7/8 of 1 MB at 100 GB/s. NIC: 24/32 at 10 GB/s, 75 us.
  machine::Machine machine = cluster_of(8, 4);
  machine.network[0].message_overhead = 1_us;
  machine.network[1].message_overhead = 1_us;
  const auto phases = plan_collective(Kind::all_to_all, kMegabyte, extents_of(1, 32, machine),
                                      Algorithm::rail, machine);
  ASSERT_EQ(phases.size(), 1U);
  EXPECT_EQ(phases[0].ports[0].serialisation, 8'750_ns);
  EXPECT_EQ(phases[0].ports[1].serialisation, 75_us);
  EXPECT_EQ(phases[0].latency, (2_us + 6 * 1_us) + (6_us + 2 * 1_us));
  const auto direct = plan_collective(Kind::all_to_all, kMegabyte, extents_of(1, 32, machine),
                                      Algorithm::direct, machine);
  EXPECT_EQ(direct[0].ports[1].serialisation, 75_us);
  EXPECT_EQ(direct[0].latency, 7 * 1_us + 6_us + 23 * 1_us);
}

TEST(Nccl, MessagesFromRankToRankHaveTheirOwnProtocols) {
  // 5 us + 1 us + 10 us at half the bandwidth: 26 us; rings keep theirs.
  machine::Machine machine = cluster_of(4, 1);
  machine.network[0].exchange = {
      {.name = "sends", .launch = 5_us, .step_latency = 1_us, .efficiency = 0.5}};
  const auto extents = extents_of(1, 4, machine);
  EXPECT_EQ(collective_time(Kind::send_recv, kMegabyte, extents, Algorithm::automatic, machine),
            26_us);
  EXPECT_EQ(collective_time(Kind::all_gather, kMegabyte, extents, Algorithm::automatic, machine),
            3_us + 7'500_ns);
}

TEST(Nccl, AnAlgorithmPerformsWhatItDoesNotGiveWayTo) {
  const machine::Machine machine = cluster_of(8, 4);
  const auto node = extents_of(1, 8, machine);
  const auto all = extents_of(1, 32, machine);
  EXPECT_TRUE(performs(Kind::all_reduce, Algorithm::ring, all, machine));
  EXPECT_TRUE(performs(Kind::all_reduce, Algorithm::halving_doubling, all, machine));
  EXPECT_TRUE(performs(Kind::all_to_all, Algorithm::rail, all, machine));
  EXPECT_FALSE(performs(Kind::all_to_all, Algorithm::rail, node, machine));
  EXPECT_FALSE(performs(Kind::all_reduce, Algorithm::in_switch, node, machine));
  EXPECT_FALSE(performs(Kind::all_to_all, Algorithm::ring, all, machine));
  EXPECT_FALSE(performs(Kind::send_recv, Algorithm::hierarchical, all, machine));
  EXPECT_FALSE(
      performs(Kind::all_gather, Algorithm::halving_doubling, extents_of(1, 3, machine), machine));
}

/// Two protocols: launch 2 us, steps of 1 us at half bandwidth; launch 20 us, steps of 3 us at full
/// bandwidth with half an own chunk copied.
machine::Machine two_protocols() {
  machine::Machine machine = cluster_of(4, 2);
  const std::vector<topology::Protocol> protocols{
      {.name = "small", .launch = 2_us, .step_latency = 1_us, .efficiency = 0.5, .local_copy = 0},
      {.name = "large", .launch = 20_us, .step_latency = 3_us, .efficiency = 1, .local_copy = 0.5}};
  machine.network[0].protocols = protocols;
  machine.network[1].protocols = protocols;
  return machine;
}

TEST(Nccl, TheFastestProtocolForTheSizeIsTaken) {
  const machine::Machine machine = two_protocols();
  const auto extents = extents_of(1, 4, machine);
  // 40 kB: 2 + 6 * 1 + 1.5 * 0.8 us = 9.2 us.
  const auto small =
      plan_collective(Kind::all_reduce, Bytes(40'000), extents, Algorithm::ring, machine);
  EXPECT_EQ(small[0].protocol, 0);
  EXPECT_EQ(total_time(small), 9'200_ns);
  // 40 MB: 20 + 6 * 3 + 0.5 * 100 + 1.5 * 400 us = 688 us.
  const auto large =
      plan_collective(Kind::all_reduce, 40 * kMegabyte, extents, Algorithm::ring, machine);
  EXPECT_EQ(large[0].protocol, 1);
  EXPECT_EQ(large[0].latency, 88_us);
  EXPECT_EQ(large[0].ports[0].serialisation, 600_us);
}

TEST(Nccl, OneProtocolAndOneLaunchRunThroughAllDimensions) {
  // 4 x 2, 8 kB: 12 inner and 4 outer steps in all, launch once: 2 + 16 * 1 us.
  const machine::Machine machine = two_protocols();
  const auto phases = plan_collective(Kind::all_reduce, Bytes(8'000), extents_of(1, 8, machine),
                                      Algorithm::ring, machine);
  EXPECT_EQ(phases[0].protocol, 0);
  EXPECT_EQ(phases[0].latency, 2_us + 2 * (6 - 1) * 1_us + 2 * 2 * 1_us);
}

/// Bus bandwidth as nccl-tests counts it, for 1 GB and no latency.
double bus_bandwidth(Kind kind, Algorithm algorithm, const machine::Machine& machine,
                     std::int64_t ranks) {
  const Bytes size(1'000'000'000);
  const double n = static_cast<double>(ranks);
  const double factor = kind == Kind::all_reduce ? 2 * (n - 1) / n : (n - 1) / n;
  const Time time = collective_time(kind, size, extents_of(1, ranks, machine), algorithm, machine);
  return factor * static_cast<double>(size.value()) / to_seconds(time);
}

machine::Machine without_latency(machine::Machine machine) {
  for (topology::NetworkDimension& dimension : machine.network) {
    dimension.latency = Time(0);
  }
  return machine;
}

// The rules of SimAI (github.com/aliyun/SimAI) for NCCL's asymptotic bus bandwidth, g = 8 devices a
// node with one NIC each.
TEST(BusBandwidth, RingInOneNodeIsNvlink) {
  const machine::Machine machine = without_latency(cluster_of(8, 4));
  EXPECT_NEAR(bus_bandwidth(Kind::all_reduce, Algorithm::ring, machine, 8), 100e9, 1e5);
  EXPECT_NEAR(bus_bandwidth(Kind::all_gather, Algorithm::ring, machine, 8), 100e9, 1e5);
}

TEST(BusBandwidth, RingOverNodesIsTheSlowerOfNvlinkAndAllNics) {
  // min(nvl g/(g-1), g nic): 8 * 10 GB/s; with NICs of 50 GB/s 100 * 8/7.
  machine::Machine machine = without_latency(cluster_of(8, 4));
  EXPECT_NEAR(bus_bandwidth(Kind::all_reduce, Algorithm::ring, machine, 32), 80e9, 1e5);
  EXPECT_NEAR(bus_bandwidth(Kind::reduce_scatter, Algorithm::ring, machine, 32), 80e9, 1e5);
  machine.network[1].bandwidth = 50_GBps;
  EXPECT_NEAR(bus_bandwidth(Kind::all_reduce, Algorithm::ring, machine, 32), 100e9 * 8 / 7, 1e5);
}

TEST(BusBandwidth, TreeOverNodesLosesOneOverNAndGainsForTwoAndThreeNodes) {
  // f n nic (N-1)/N with f = 2 for 2 nodes, 4/3 for 3, else 1; in one node nvl (g-1)/g; all times
  // the 92 % of trees.
  const auto tree = [](std::int64_t nodes) {
    return bus_bandwidth(Kind::all_reduce, Algorithm::double_binary_tree,
                         without_latency(cluster_of(8, nodes)), 8 * nodes) /
           0.92;
  };
  EXPECT_NEAR(tree(1), 100e9 * 7 / 8, 1e5);
  EXPECT_NEAR(tree(3), 80e9 * 4 / 3 * 23 / 24, 1e5);
  EXPECT_NEAR(tree(4), 80e9 * 31 / 32, 1e5);
  EXPECT_NEAR(tree(16), 80e9 * 127 / 128, 1e5);
  // Two nodes: 160 GB/s of NICs exceed nvl g/(g-1) = 800/7.
  EXPECT_NEAR(tree(2), 100e9 * 8 / 7 * 15 / 16, 1e5);
}

TEST(BusBandwidth, AllToAllOverNodesIsWhatLeavesTheNode) {
  // nic (N-1)/((k-1) g) = 10 * 31/24.
  const machine::Machine machine = without_latency(cluster_of(8, 4));
  EXPECT_NEAR(bus_bandwidth(Kind::all_to_all, Algorithm::automatic, machine, 32), 10e9 * 31 / 24,
              1e5);
  EXPECT_NEAR(bus_bandwidth(Kind::all_to_all, Algorithm::pairwise, machine, 8), 100e9, 1e5);
}

}  // namespace
}  // namespace orrery::collective
