// SPDX-License-Identifier: Apache-2.0
/// The engine with all quirks off: every algorithm on every group, Themis by phase times.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "compat/astra/chunk_orders.h"
#include "small_input.h"

namespace orrery::astra {
namespace {

using namespace small_tests;  // NOLINT(google-build-using-namespace): this folder's own

TEST(QuirksOff, DimensionsOfDifferentKindsAndSpeedsAddUp) {
  // Reduce-scatter of 8 MB: ring of 2 at 100 GB/s (4 MB: 40.5 us), then a switch of 4 at 10 GB/s
  // with the rest, halving-doubling: 2 and 1 MB (200 + 100 us and 1 us each): 342.5 us.
  RunInput input =
      input_of({dimension(Building::ring, 2, 100), dimension(Building::switched, 4, 10)},
               Algorithm::ring, {collective(0, CollectiveType::reduce_scatter, 8 * kMegabyte)});
  for (auto& list : input.system.implementation) {
    list[1].algorithm = Algorithm::halving_doubling;
  }
  EXPECT_EQ(engine_time(input, quirks_off()), 342'500_ns);
}

TEST(QuirksOff, GroupsInDifferentDimensionsOverlapInOneDimensionTheyDoNot) {
  // Two all-reduces of 8 MB that do not depend on each other, on 4 x 4 rings of 100 GB/s: over the
  // rows and over the columns they take as long as one, 6 steps of 20.5 us; both over the rows, one
  // after the other.
  const auto grouped = [](std::uint32_t second) {
    RunInput input = input_of(
        {dimension(Building::ring, 4, 100), dimension(Building::ring, 4, 100)}, Algorithm::ring,
        {collective(0, CollectiveType::all_reduce, 8 * kMegabyte, 1),
         collective(1, CollectiveType::all_reduce, 8 * kMegabyte, second)});
    add_lines(input);
    return engine_time(input, quirks_off());
  };
  EXPECT_EQ(grouped(2), 123_us);
  EXPECT_EQ(grouped(1), 246_us);
}

TEST(QuirksOff, PriorityDecidesWhichCollectiveGoesFirst) {
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
    return engine_time(input, quirks_off());
  };
  // One takes 6 * 10.5 = 63 us; node 1 is second or last.
  EXPECT_EQ(finish(Policy::fifo), 126_us + 1_ms);
  EXPECT_EQ(finish(Policy::lifo), 252_us + 1_ms);
}

TEST(QuirksOff, EveryAlgorithmAndCollectiveDoesEveryCount) {
  for (const Building building : {Building::ring, Building::fully_connected, Building::switched}) {
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::direct,
                                      Algorithm::halving_doubling, Algorithm::double_binary_tree}) {
      for (std::uint8_t type = 0; type <= static_cast<std::uint8_t>(CollectiveType::barrier);
           ++type) {
        RunInput input =
            input_of({dimension(building, 6, 100), dimension(Building::switched, 3, 50)}, algorithm,
                     {collective(0, static_cast<CollectiveType>(type), kMegabyte)});
        EXPECT_GT(engine_time(input, quirks_off()), Time(0)) << int{type};
      }
    }
  }
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
  return engine_time(input, quirks_off());
}

TEST(QuirksOff, ThemisMakesSystemsOfEqualBandwidthNearlyEqual) {
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

TEST(QuirksOff, ThemisWeighsAllLinksOfAFullyConnectedDimension) {
  // 8 fully connected with 7 links of 100 GB/s, and a switch of 700: either alone is busy for
  // 2 * 7/8 GB / 700 GB/s = 2.5 ms with what comes first. Half of the chunks begin in each: 1.25 ms
  // and an eighth of that. ASTRA-sim's Themis thinks that the switch is seven times as fast.
  RunInput input =
      input_of({dimension(Building::fully_connected, 8, 100, Time(0)),
                dimension(Building::switched, 8, 700, Time(0))},
               Algorithm::direct, {collective(0, CollectiveType::all_reduce, 1000 * kMegabyte)});
  for (auto& list : input.system.implementation) {
    list[1].algorithm = Algorithm::halving_doubling;
  }
  input.system.splits = 64;
  input.system.inter_dimension = InterDimension::themis;
  EXPECT_NEAR(to_seconds(engine_time(input, quirks_off())), 1.25e-3 * 9 / 8, 0.05e-3);
  EXPECT_GT(to_seconds(engine_time(input)), 2e-3);
}

TEST(QuirksOff, SendersOfRootedCollectivesAreBusyUntilTheirMessagesAreThere) {
  // 1 MB at 100 GB/s: 10 us, and 500 ns on the way; of gather and scatter the other NPU's half.
  for (const auto& [type, time] : {std::pair{CollectiveType::broadcast, 10'500_ns},
                                   {CollectiveType::reduce, 10'500_ns},
                                   {CollectiveType::gather, 5'500_ns},
                                   {CollectiveType::scatter, 5'500_ns}}) {
    for (const Backend backend : {Backend::unaware, Backend::aware}) {
      for (const bool rendezvous : {false, true}) {
        RunOptions options = quirks_off();
        options.backend = backend;
        options.rendezvous = rendezvous;
        const RunResult result =
            run_engine(input_of({dimension(Building::fully_connected, 2, 100)}, Algorithm::ring,
                                {collective(0, type, kMegabyte)}),
                       options);
        // A ready message of 8 KiB goes first: 81.92 + 500 ns, in whole nanoseconds.
        const Time ready = rendezvous ? 581_ns : Time(0);
        for (const RunResult::Class& each : result.classes) {
          EXPECT_EQ(each.finish, ready + time);
        }
      }
    }
  }
}

RC_GTEST_PROP(QuirksOff, ThemisIsHardlyEverSlowerThanTheNaturalOrder, ()) {
  // Never by the predicted phase times; in the run chunks that come at one instant may go in
  // another order. Sizes divide evenly, so that no chunk is tiny.
  std::vector<Dimension> network;
  for (int d = *rc::gen::inRange(1, 4); d > 0; --d) {
    network.push_back(dimension(*rc::gen::element(Building::ring, Building::switched),
                                *rc::gen::inRange<std::int64_t>(2, 6), *rc::gen::inRange(20, 200),
                                Time(1000 * *rc::gen::inRange(0, 1000))));
  }
  const auto type = *rc::gen::element(CollectiveType::all_reduce, CollectiveType::all_gather,
                                      CollectiveType::reduce_scatter);
  RunInput input = input_of(network, Algorithm::ring, {collective(0, type, Bytes(0))});
  input.system.splits = *rc::gen::inRange(1, 33);
  constexpr std::int64_t kAllMembers = 3600;  // a multiple of every count that is drawn
  input.traces.programs[0].nodes[0].size =
      Bytes(kAllMembers * input.system.splits * *rc::gen::inRange(100, 1000));
  input.system.intra_dimension = IntraDimension::smallest_chunk_first;
  const double natural = to_seconds(engine_time(input, quirks_off()));
  input.system.inter_dimension = InterDimension::themis;
  RC_ASSERT(to_seconds(engine_time(input, quirks_off())) <= 1.25 * natural);
}

RC_GTEST_PROP(QuirksOff, PhaseTimesOfThemisAreThoseOfTheMessages, ()) {
  const auto building =
      *rc::gen::element(Building::ring, Building::fully_connected, Building::switched);
  const auto algorithm =
      *rc::gen::element(Algorithm::ring, Algorithm::direct, Algorithm::halving_doubling);
  const auto type = *rc::gen::element(CollectiveType::all_gather, CollectiveType::reduce_scatter);
  const Dimension network =
      dimension(building, *rc::gen::inRange<std::int64_t>(2, 9), *rc::gen::inRange(1, 200),
                Time(1000 * *rc::gen::inRange(0, 1000)));
  // Direct on a ring ends with the farthest message; the formula counts the first.
  RC_PRE(building != Building::ring || algorithm != Algorithm::direct || network.size <= 3);
  RunInput input = input_of({network}, algorithm,
                            {collective(0, type, Bytes(*rc::gen::inRange(1000, 9'000'000)))});
  input.system.endpoint_delay = Time(1000 * *rc::gen::inRange(0, 50));
  const Wires wires(input.network);
  const PhaseRequest request{.type = type == CollectiveType::all_gather ? PhaseType::all_gather
                                                                        : PhaseType::reduce_scatter,
                             .implementation = {algorithm, 0},
                             .axis = {.queue = 0, .size = network.size},
                             .size = input.traces.programs[0].nodes[0].size};
  const PhaseRules rules{wires, {input.system.endpoint_delay, std::nullopt}, Quirks::none()};
  RC_ASSERT(engine_time(input, quirks_off()) == alone(make_phase(request, rules), wires));
}

}  // namespace
}  // namespace orrery::astra
