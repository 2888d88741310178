// SPDX-License-Identifier: Apache-2.0
#include "collective/cost.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "networks.h"

namespace orrery::collective {
namespace {

using testing::bare_machine;
using testing::cluster_of;
using testing::dimension_of;
using testing::kMegabyte;
using Kind = graph::CollectiveKind;
using Algorithm = CollectiveAlgorithm;

/// Time of 1 MB over a group that fills the first dimension.
Time one_dimension(Kind kind, Algorithm algorithm, topology::DimensionKind form,
                   std::int64_t size) {
  const machine::Machine machine = bare_machine({dimension_of(form, size)});
  return total_time(
      plan_collective(kind, kMegabyte, extents_of(1, size, machine), algorithm, machine));
}

TEST(Cost, NothingToDoTakesNoPhase) {
  const machine::Machine machine = cluster_of(8, 2);
  EXPECT_TRUE(plan_collective(Kind::all_reduce, kMegabyte, {}, Algorithm::ring, machine).empty());
  EXPECT_TRUE(
      plan_collective(Kind::all_reduce, 0_B, extents_of(1, 8, machine), Algorithm::ring, machine)
          .empty());
}

TEST(Cost, RingOnASwitch) {
  // p = 4, S = 1 MB at 100 GB/s: S/p takes 2.5 us. 6 steps of 1 + 2.5 us; half for one pass.
  EXPECT_EQ(one_dimension(Kind::all_reduce, Algorithm::ring, topology::DimensionKind::switched, 4),
            21_us);
  EXPECT_EQ(one_dimension(Kind::all_gather, Algorithm::ring, topology::DimensionKind::switched, 4),
            10'500_ns);
  EXPECT_EQ(
      one_dimension(Kind::reduce_scatter, Algorithm::ring, topology::DimensionKind::switched, 4),
      10'500_ns);
  // Broadcast: a pipelined chain, 3 steps of 1 us and 10 us for the buffer.
  EXPECT_EQ(one_dimension(Kind::broadcast, Algorithm::ring, topology::DimensionKind::switched, 4),
            13_us);
}

TEST(Cost, DirectOnASwitch) {
  // Two steps of 1 us + 3/4 of 10 us.
  EXPECT_EQ(
      one_dimension(Kind::all_reduce, Algorithm::direct, topology::DimensionKind::switched, 4),
      17_us);
  EXPECT_EQ(
      one_dimension(Kind::all_to_all, Algorithm::direct, topology::DimensionKind::switched, 4),
      8'500_ns);
  // The root sends three whole buffers: 1 + 30 us.
  EXPECT_EQ(one_dimension(Kind::broadcast, Algorithm::direct, topology::DimensionKind::switched, 4),
            31_us);
}

TEST(Cost, APortReachesLessWithMorePeersAtOnce) {
  // Half of it with 3 peers, a quarter from 7 on; between 1 and 3 in proportion.
  topology::NetworkDimension dimension = dimension_of(topology::DimensionKind::switched, 8);
  dimension.bandwidth_by_peers = {{.peers = 3, .share = 0.5}, {.peers = 7, .share = 0.25}};
  EXPECT_EQ(topology::share_with_peers(dimension, 1), 1);
  EXPECT_EQ(topology::share_with_peers(dimension, 2), 0.75);
  EXPECT_EQ(topology::share_with_peers(dimension, 5), 0.375);
  EXPECT_EQ(topology::share_with_peers(dimension, 100), 0.25);
  const machine::Machine machine = bare_machine({dimension});
  const auto time = [&](Kind kind, Algorithm algorithm, std::int64_t members) {
    return collective_time(kind, kMegabyte, extents_of(1, members, machine), algorithm, machine);
  };
  // Over 4: 3 peers. 1 us + 3/4 of 10 us at half; in turn each has one peer: 3 us + 7.5 us. auto
  // sends to all at once, as NCCL.
  EXPECT_EQ(time(Kind::all_to_all, Algorithm::direct, 4), 16_us);
  EXPECT_EQ(time(Kind::all_to_all, Algorithm::pairwise, 4), 10'500_ns);
  EXPECT_EQ(time(Kind::all_to_all, Algorithm::automatic, 4), 16_us);
  // Over 8: 1 us + 7/8 of 10 us at a quarter.
  EXPECT_EQ(time(Kind::all_to_all, Algorithm::direct, 8), 36_us);
  // A ring and a shift have one peer each way.
  EXPECT_EQ(time(Kind::all_gather, Algorithm::ring, 4), 10'500_ns);
  EXPECT_EQ(time(Kind::send_recv, Algorithm::direct, 8), 11_us);
}

RC_GTEST_PROP(Cost, MorePeersNeverMakeACollectiveFaster, ()) {
  const auto form = topology::DimensionKind::switched;
  const auto members = *rc::gen::inRange<std::int64_t>(2, 9);
  std::vector<topology::NetworkDimension> network{dimension_of(form, members),
                                                  dimension_of(form, *rc::gen::inRange(1, 4))};
  const machine::Machine plain = bare_machine(network);
  double share = 1;
  for (const std::int64_t peers : {2, 5, 9}) {
    share *= 0.01 * *rc::gen::inRange(30, 101);
    network[0].bandwidth_by_peers.push_back({.peers = peers, .share = share});
  }
  const machine::Machine crowded = bare_machine(network);
  const auto kind = *rc::gen::element(Kind::all_reduce, Kind::all_gather, Kind::all_to_all,
                                      Kind::send_recv, Kind::broadcast);
  const auto algorithm =
      *rc::gen::element(Algorithm::automatic, Algorithm::ring, Algorithm::direct,
                        Algorithm::pairwise, Algorithm::hierarchical, Algorithm::rail);
  const auto extents = extents_of(1, members * network[1].size, plain);
  RC_ASSERT(collective_time(kind, kMegabyte, extents, algorithm, crowded) >=
            collective_time(kind, kMegabyte, extents, algorithm, plain));
}

TEST(Cost, DirectPaysForEveryMessageOfAStep) {
  // Message overhead 0.5 us: one step of 1.5 us, two further messages, 7.5 us of bytes.
  topology::NetworkDimension dimension = dimension_of(topology::DimensionKind::switched, 4);
  dimension.message_overhead = 500_ns;
  const machine::Machine machine = bare_machine({dimension});
  EXPECT_EQ(collective_time(Kind::all_gather, kMegabyte, extents_of(1, 4, machine),
                            Algorithm::direct, machine),
            10_us);
}

TEST(Cost, HalvingDoublingOnASwitch) {
  // p = 8: 6 steps; 2 * 7/8 of 10 us.
  EXPECT_EQ(one_dimension(Kind::all_reduce, Algorithm::halving_doubling,
                          topology::DimensionKind::switched, 8),
            23'500_ns);
  // p = 6 folds to 4: a step before and after with 10 us each, then 4 steps and 2 * 3/4 of 10 us.
  EXPECT_EQ(one_dimension(Kind::all_reduce, Algorithm::halving_doubling,
                          topology::DimensionKind::switched, 6),
            41_us);
}

TEST(Cost, DoubleBinaryTreeOnASwitch) {
  // p = 8: depth 3, up and down 6 us; the busiest port sends 2 S at 92 %: 20 us / 0.92.
  EXPECT_EQ(one_dimension(Kind::all_reduce, Algorithm::double_binary_tree,
                          topology::DimensionKind::switched, 8),
            6_us + 20_us / 0.92);
  // p = 2: each is root of one tree and leaf of the other: S; 2 us + 10 us / 0.92.
  EXPECT_EQ(one_dimension(Kind::all_reduce, Algorithm::double_binary_tree,
                          topology::DimensionKind::switched, 2),
            2_us + 10_us / 0.92);
  // p = 3: depth 2, 1.5 S: 4 us + 15 us / 0.92.
  EXPECT_EQ(one_dimension(Kind::all_reduce, Algorithm::double_binary_tree,
                          topology::DimensionKind::switched, 3),
            4_us + 15_us / 0.92);
  // Broadcast to 4 others: 1 + 2 steps, the root sends S.
  EXPECT_EQ(one_dimension(Kind::broadcast, Algorithm::double_binary_tree,
                          topology::DimensionKind::switched, 5),
            13_us);
}

TEST(Cost, WholeRingUsesBothDirections) {
  // As on a switch: two rings of S/2 over links of 50 GB/s.
  EXPECT_EQ(one_dimension(Kind::all_reduce, Algorithm::ring, topology::DimensionKind::ring, 4),
            21_us);
}

TEST(Cost, PartOfARingHasOneDirection) {
  // Members 0-3 of 8: one ring at 50 GB/s, 2 * 3/4 of 20 us. Of each pass the slowest chunk takes
  // two links of one hop and the way back of three: 5 us.
  const machine::Machine machine = bare_machine({dimension_of(topology::DimensionKind::ring, 8)});
  EXPECT_EQ(collective_time(Kind::all_reduce, kMegabyte, extents_of(1, 4, machine), Algorithm::ring,
                            machine),
            40_us);
}

TEST(Cost, AMeshOfOneAxisIsALine) {
  EXPECT_EQ(one_dimension(Kind::all_reduce, Algorithm::ring, topology::DimensionKind::mesh, 4),
            40_us);
}

TEST(Cost, APairHasOneLinkWithAllTheBandwidth) {
  // p = 2: 2 steps of 1 us, 2 * 1/2 of 10 us, on a mesh of two as on a switch.
  EXPECT_EQ(one_dimension(Kind::all_reduce, Algorithm::ring, topology::DimensionKind::mesh, 2),
            12_us);
  EXPECT_EQ(one_dimension(Kind::all_reduce, Algorithm::ring, topology::DimensionKind::switched, 2),
            12_us);
}

TEST(Cost, AGroupBetweenOthersOfARingIsPricedAlone) {
  // Members 0 2 4 6 of 8: a closed ring of two hops each. 6 steps of 2 us, 2 * 3/4 of 10 us; that
  // 1 3 5 7 use the same links is for the network.
  const machine::Machine machine = bare_machine({dimension_of(topology::DimensionKind::ring, 8)});
  EXPECT_EQ(collective_time(Kind::all_reduce, kMegabyte, extents_of(2, 4, machine), Algorithm::ring,
                            machine),
            27_us);
}

TEST(Cost, RingFillsAllLinksOfACompleteDimension) {
  // p = 5: 4 links of 25 GB/s, 4 directed Hamiltonian cycles: 8 steps, 2 * 4/5 of 10 us.
  EXPECT_EQ(
      one_dimension(Kind::all_reduce, Algorithm::ring, topology::DimensionKind::fully_connected, 5),
      24_us);
  // p = 4: only 2 of 3 directed cycles exist: 6 steps, 2 * 3/4 of 10 us * 3/2.
  EXPECT_EQ(
      one_dimension(Kind::all_reduce, Algorithm::ring, topology::DimensionKind::fully_connected, 4),
      28'500_ns);
}

TEST(Cost, HalvingDoublingUsesOneLinkOfACompleteDimension) {
  // p = 4: links of 100/3 GB/s; 4 steps, 2 * 3/4 of 30 us.
  EXPECT_EQ(one_dimension(Kind::all_reduce, Algorithm::halving_doubling,
                          topology::DimensionKind::fully_connected, 4),
            49_us);
}

TEST(Cost, WholeTorusRunsARingOnEveryAxis) {
  // 4 x 4: two edge-disjoint Hamiltonian cycles fill all four links: 30 steps, 2 * 15/16 of 10 us.
  const machine::Machine machine =
      bare_machine({dimension_of(topology::DimensionKind::torus, 16, {4, 4})});
  EXPECT_EQ(collective_time(Kind::all_reduce, kMegabyte, extents_of(1, 16, machine),
                            Algorithm::ring, machine),
            48'750_ns);
  // One axis of it has half of the links: 6 steps, 2 * 3/4 of 20 us. The other axis too.
  for (const std::int64_t stride : {1, 4}) {
    EXPECT_EQ(collective_time(Kind::all_reduce, kMegabyte, extents_of(stride, 4, machine),
                              Algorithm::ring, machine),
              36_us);
  }
}

TEST(Cost, AllToAllOnARingIsLimitedByDistance) {
  // p = 8: of a member's messages those of distance 1 to 4 go forwards, 10 links of 50 GB/s: 10 *
  // S/8 / 50 GB/s = 25 us; four hops to the farthest.
  EXPECT_EQ(one_dimension(Kind::all_to_all, Algorithm::direct, topology::DimensionKind::ring, 8),
            29_us);
  // A line: 16 pairs cross its middle each way: 16 * S/8 / 50 GB/s = 40 us; seven hops.
  EXPECT_EQ(one_dimension(Kind::all_to_all, Algorithm::direct, topology::DimensionKind::mesh, 8),
            47_us);
}

TEST(Cost, AlgorithmThatDoesNotDoTheKindGivesWayToAutomatic) {
  const machine::Machine machine =
      bare_machine({dimension_of(topology::DimensionKind::switched, 6)});
  const auto phases = plan_collective(Kind::all_gather, kMegabyte, extents_of(1, 6, machine),
                                      Algorithm::halving_doubling, machine);
  ASSERT_EQ(phases.size(), 1U);
  EXPECT_EQ(phases[0].algorithm, Algorithm::ring);
}

TEST(Cost, HierarchicalAllReduceShrinksOutwards) {
  // 8 x 4: reduce_scatter 7 * 1 us + 7/8 of 10 us = 15.75 us; ring over 4 nodes of S/8 (12.5 us at
  // 10 GB/s): 6 * 5 us + 2 * 3/4 of 12.5 us = 48.75 us; all_gather again 15.75 us.
  const machine::Machine machine = cluster_of(8, 4);
  const auto phases = plan_collective(Kind::all_reduce, kMegabyte, extents_of(1, 32, machine),
                                      Algorithm::hierarchical, machine);
  ASSERT_EQ(phases.size(), 3U);
  EXPECT_EQ(phases[0].kind, Kind::reduce_scatter);
  EXPECT_EQ(phases[0].size, kMegabyte);
  EXPECT_EQ(phases[1].size, Bytes(125'000));
  EXPECT_EQ(phases[1].ports.front().extent, (Extent{1, 4, 1}));
  EXPECT_EQ(phases[2].kind, Kind::all_gather);
  // The tree over 4 nodes: 2 * 2 * 5 us + 2 * 12.5 us / 0.92 = 47.2 us, faster than the ring.
  EXPECT_EQ(phases[1].algorithm, Algorithm::double_binary_tree);
  EXPECT_EQ(total_time(phases), 2 * Time(15'750'000) + 20_us + 25_us / 0.92);
}

TEST(Cost, HierarchicalGatherGoesInwardsAndBroadcastKeepsItsSize) {
  const machine::Machine machine = cluster_of(8, 4);
  const auto extents = extents_of(1, 32, machine);
  const auto gather =
      plan_collective(Kind::all_gather, kMegabyte, extents, Algorithm::hierarchical, machine);
  ASSERT_EQ(gather.size(), 2U);
  EXPECT_EQ(gather[0].ports.front().extent.dimension, 1);
  EXPECT_EQ(gather[0].size, Bytes(125'000));
  EXPECT_EQ(gather[1].size, kMegabyte);
  const auto broadcast =
      plan_collective(Kind::broadcast, kMegabyte, extents, Algorithm::hierarchical, machine);
  ASSERT_EQ(broadcast.size(), 2U);
  EXPECT_EQ(broadcast[0].ports.front().extent.dimension, 1);
  EXPECT_EQ(broadcast[0].size, kMegabyte);
}

TEST(Cost, RingThroughNodesPipelinesItsDimensions) {
  // 8 x 4, N = 32: of 32 edges 28 are inside nodes, 4 between. 2 * 31 steps keep pace with the
  // slowest edge: 310 us. Ports: 2 * 31/32 of S times 28/32 at 100 GB/s
  // = 16.953125 us, times 4/32 at 10 GB/s = 24.21875 us, at the same time.
  const machine::Machine machine = cluster_of(8, 4);
  const auto phases = plan_collective(Kind::all_reduce, kMegabyte, extents_of(1, 32, machine),
                                      Algorithm::ring, machine);
  ASSERT_EQ(phases.size(), 1U);
  EXPECT_EQ(phases[0].latency, 310_us);
  ASSERT_EQ(phases[0].ports.size(), 2U);
  EXPECT_EQ(phases[0].ports[0].serialisation, Time(16'953'125));
  EXPECT_EQ(phases[0].ports[1].serialisation, Time(24'218'750));
  EXPECT_EQ(total_time(phases), Time(334'218'750));
}

}  // namespace
}  // namespace orrery::collective
