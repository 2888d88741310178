// SPDX-License-Identifier: Apache-2.0
/// Native semantics: link occupancy in all dimensions, every algorithm on every group.
#include "compat/astra/native.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "native_input.h"

namespace orrery::astra {
namespace {

using namespace native_tests;  // NOLINT(google-build-using-namespace): this folder's own

TEST(Native, DirectOnASwitchSharesThePort) {
  // 4 NPUs, 100 GB/s, two hops of 500 ns. All-to-all of 4 MB: three messages of 1 MB leave one
  // after the other, 10 us each: 31 us. ASTRA-sim's unaware back-end lets them overlap: 11 us.
  RunInput input = input_of({dimension(Building::switched, 4, 100)}, Algorithm::direct,
                            {collective(0, CollectiveType::all_to_all, 4 * kMegabyte)});
  EXPECT_EQ(native_time(input), 31_us);
  RunOptions compat;
  EXPECT_EQ(last(run_native(input, compat)), 11_us);
}

TEST(Native, DirectOnFullyConnectedUsesAllLinks) {
  RunInput input = input_of({dimension(Building::fully_connected, 4, 100)}, Algorithm::direct,
                            {collective(0, CollectiveType::all_to_all, 4 * kMegabyte)});
  EXPECT_EQ(native_time(input), 10'500_ns);
}

TEST(Native, DirectOnARingSharesTheLinksBetween) {
  // 4 NPUs: to the next (10 us), the one after it over two links, and the previous. Link i -> i+1
  // carries the message to i+1, then that of i-1 to i+1 and of i to i+2, 10 us each. The message to
  // i+2 waits for the one to i+1 on its first link: 10-20; on the second the one that i+1 sends at
  // 10 is before it (10.5): 20-30. 30.5 + 0.5 us... the other order is no better: 30 us of bytes.
  RunInput input = input_of({dimension(Building::ring, 4, 100)}, Algorithm::direct,
                            {collective(0, CollectiveType::all_to_all, 4 * kMegabyte)});
  const Time time = native_time(input);
  EXPECT_GE(time, 30_us);
  EXPECT_LE(time, 31_us);
}

TEST(Native, InSwitchMovesTheBufferOnceUpAndOnceDown) {
  // All-reduce of 1 MB over a switch of 100 GB/s and 2 x 500 ns: 11 us, whatever the count; a ring
  // of 8 takes 14 steps of 1.25 + 1 us.
  for (const std::int64_t size : {2, 5, 8}) {
    RunInput input = input_of({dimension(Building::switched, size, 100)}, Algorithm::in_switch,
                              {collective(0, CollectiveType::all_reduce, kMegabyte)});
    EXPECT_EQ(native_time(input), 11_us) << size;
    RunOptions options = native(input);
    options.fold = false;
    EXPECT_EQ(last(run_native(input, options)), 11_us) << size;
  }
  RunInput ring = input_of({dimension(Building::switched, 8, 100)}, Algorithm::ring,
                           {collective(0, CollectiveType::all_reduce, kMegabyte)});
  EXPECT_EQ(native_time(ring), 14 * 2'250_ns);
}

TEST(Native, InSwitchGathersAndScattersInOneStep) {
  // Reduce-scatter of 1 MB over 4: 1 MB up (10 us), a quarter down. All-gather of 1 MB each: 4 MB
  // down, 40 us.
  const std::vector<Dimension> network{dimension(Building::switched, 4, 100)};
  EXPECT_EQ(native_time(input_of(network, Algorithm::in_switch,
                                 {collective(0, CollectiveType::reduce_scatter, kMegabyte)})),
            11_us);
  EXPECT_EQ(native_time(input_of(network, Algorithm::in_switch,
                                 {collective(0, CollectiveType::all_gather, kMegabyte)})),
            41_us);
}

TEST(Native, InSwitchNeedsASwitchAndTheNativeNetwork) {
  RunInput ring = input_of({dimension(Building::ring, 4, 100)}, Algorithm::in_switch,
                           {collective(0, CollectiveType::all_reduce, kMegabyte)});
  const auto on_ring = run(ring, native(ring));
  ASSERT_FALSE(on_ring);
  EXPECT_NE(on_ring.error().to_string().find("Switch"), std::string::npos);
  RunInput switched = input_of({dimension(Building::switched, 4, 100)}, Algorithm::in_switch,
                               {collective(0, CollectiveType::all_reduce, kMegabyte)});
  EXPECT_FALSE(run(switched, RunOptions{}));
}

TEST(Native, DimensionsOfDifferentKindsAndSpeedsAddUp) {
  // Reduce-scatter of 8 MB: ring of 2 at 100 GB/s (4 MB: 40.5 us), then a switch of 4 at 10 GB/s
  // with the rest, halving-doubling: 2 and 1 MB (200 + 100 us and 1 us each): 342.5 us.
  RunInput input =
      input_of({dimension(Building::ring, 2, 100), dimension(Building::switched, 4, 10)},
               Algorithm::ring, {collective(0, CollectiveType::reduce_scatter, 8 * kMegabyte)});
  for (auto& list : input.system.implementation) {
    list[1].algorithm = Algorithm::halving_doubling;
  }
  EXPECT_EQ(native_time(input), 342'500_ns);
}

TEST(Native, GroupsInDifferentDimensionsOverlapInOneDimensionTheyDoNot) {
  // Two all-reduces of 8 MB that do not depend on each other, on 4 x 4 rings of 100 GB/s: over the
  // rows and over the columns they take as long as one; both over the rows, one after the other.
  const auto grouped = [](bool same) {
    RunInput input = input_of(
        {dimension(Building::ring, 4, 100), dimension(Building::ring, 4, 100)}, Algorithm::ring,
        {collective(0, CollectiveType::all_reduce, 8 * kMegabyte, 1),
         collective(1, CollectiveType::all_reduce, 8 * kMegabyte, same ? 1 : 2)});
    for (std::int64_t g = 0; g < 8; ++g) {
      const bool row = g < 4;
      chakra::Group group;
      group.name = std::to_string(g + 1);
      for (std::int64_t i = 0; i < 4; ++i) {
        group.ranks.push_back(row ? g * 4 + i : g - 4 + i * 4);
      }
      input.traces.groups.push_back(group);
    }
    for (std::uint32_t rank = 0; rank < 16; ++rank) {
      input.traces.first_slot.push_back(rank * 2);
      input.traces.group_slots.push_back(1 + rank / 4);
      input.traces.group_slots.push_back(5 + rank % 4);
    }
    return native_time(input);
  };
  // One: 6 steps of 20.5 us.
  EXPECT_EQ(grouped(false), 123_us);
  EXPECT_EQ(grouped(true), 246_us);
}

TEST(Native, PriorityDecidesWhichCollectiveGoesFirst) {
  // Four at once, one chunk at a time: the first begins at once, of the others LIFO takes the
  // newest and FIFO the oldest. Node 5 computes 1 ms after node 1.
  const auto finish = [](Policy policy) {
    std::vector<chakra::Node> nodes;
    for (std::uint64_t id = 0; id < 4; ++id) {
      nodes.push_back(collective(id, CollectiveType::all_reduce, 4 * kMegabyte));
    }
    chakra::Node compute;
    compute.id = 5;
    compute.type = NodeType::comp;
    compute.duration = 1_ms;
    compute.dependencies = 1;
    nodes.push_back(compute);
    RunInput input = input_of({dimension(Building::ring, 4, 100)}, Algorithm::ring, nodes);
    input.traces.programs[0].dependencies = {1};
    input.system.policy = policy;
    return native_time(input);
  };
  // One takes 6 * 10.5 = 63 us; node 1 is second or last.
  EXPECT_EQ(finish(Policy::fifo), 126_us + 1_ms);
  EXPECT_EQ(finish(Policy::lifo), 252_us + 1_ms);
}

TEST(Native, EveryAlgorithmAndCollectiveDoesEveryCount) {
  for (const Building building : {Building::ring, Building::fully_connected, Building::switched}) {
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::direct,
                                      Algorithm::halving_doubling, Algorithm::double_binary_tree}) {
      for (std::uint8_t type = 0; type <= static_cast<std::uint8_t>(CollectiveType::barrier);
           ++type) {
        RunInput input =
            input_of({dimension(building, 6, 100), dimension(Building::switched, 3, 50)}, algorithm,
                     {collective(0, static_cast<CollectiveType>(type), kMegabyte)});
        EXPECT_GT(native_time(input), Time(0)) << int{type};
      }
    }
  }
}

TEST(Native, UseSaysWhichDimensionWasBusy) {
  // Natural order: the first dimension carries 3/4 of 8 MB twice (per link of 100 GB/s: 120 us),
  // the second 3/4 of 2 MB twice at 10 GB/s: 300 us.
  RunInput input =
      input_of({dimension(Building::ring, 4, 100), dimension(Building::switched, 4, 10)},
               Algorithm::ring, {collective(0, CollectiveType::all_reduce, 8 * kMegabyte)});
  const RunResult result = run_native(input, native(input));
  ASSERT_EQ(result.use.size(), 2U);
  EXPECT_EQ(result.use[0].busiest, 120_us);
  EXPECT_EQ(result.use[1].busiest, 300_us);
  EXPECT_TRUE(result.unfolded.empty());
  // The ring algorithm goes one way round: half of the ring's links carry nothing.
  EXPECT_NEAR(result.use[0].total / result.use[0].links, 60e-6, 1e-12);
}

/// All-reduce of 1 GB over `network` in 64 chunks, rings on rings, halving-doubling on switches, no
/// endpoint delay, latency or cost of reductions.
Time slide_time(const std::vector<Dimension>& network, InterDimension order) {
  RunInput input = input_of(network, Algorithm::ring,
                            {collective(0, CollectiveType::all_reduce, 1000 * kMegabyte)});
  for (auto& list : input.system.implementation) {
    for (std::size_t d = 0; d < network.size(); ++d) {
      list[d].algorithm =
          network[d].building == Building::switched ? Algorithm::halving_doubling : Algorithm::ring;
    }
  }
  input.system.splits = 64;
  input.system.inter_dimension = order;
  input.system.intra_dimension = IntraDimension::smallest_chunk_first;
  return native_time(input);
}

TEST(Native, ThemisMakesSystemsOfEqualBandwidthNearlyEqual) {
  // Conv-3D, W-2D, Conv-4D of the ISPASS 2023 talk against one switch of their summed bandwidth:
  // 2 * 511/512 GB over it.
  const auto d = [](Building building, std::int64_t size, double gbps) {
    return dimension(building, size, gbps, Time(0));
  };
  struct System {
    std::vector<Dimension> network;
    double gbps;
    double within;
  };
  const std::vector<System> systems{
      {{d(Building::ring, 16, 200), d(Building::switched, 8, 100), d(Building::switched, 4, 50)},
       350,
       1.03},
      {{d(Building::switched, 32, 250), d(Building::switched, 16, 250)}, 500, 1.02},
      {{d(Building::ring, 2, 250), d(Building::switched, 8, 200), d(Building::ring, 8, 100),
        d(Building::switched, 4, 50)},
       600,
       1.06}};
  for (const System& system : systems) {
    const double alone = 2.0 * 511 / 512 / system.gbps;
    const double natural = to_seconds(slide_time(system.network, InterDimension::ascending));
    const double themis = to_seconds(slide_time(system.network, InterDimension::themis));
    EXPECT_GT(natural, 1.3 * alone) << system.gbps;
    EXPECT_GE(themis, 0.99999 * alone) << system.gbps;
    EXPECT_LE(themis, system.within * alone) << system.gbps;
  }
}

TEST(Native, ThemisWeighsAllLinksOfAFullyConnectedDimension) {
  // 8 fully connected with 7 links of 100 GB/s, and a switch of 700: both equally busy, where
  // ASTRA-sim's Themis thinks that the switch is seven times as fast.
  RunInput input =
      input_of({dimension(Building::fully_connected, 8, 100, Time(0)),
                dimension(Building::switched, 8, 700, Time(0))},
               Algorithm::direct, {collective(0, CollectiveType::all_reduce, 1000 * kMegabyte)});
  input.system.splits = 64;
  input.system.inter_dimension = InterDimension::themis;
  const RunResult result = run_native(input, native(input));
  EXPECT_NEAR(to_seconds(result.use[0].busiest) / to_seconds(result.use[1].busiest), 1, 0.05);
}

}  // namespace
}  // namespace orrery::astra
