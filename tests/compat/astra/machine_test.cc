// SPDX-License-Identifier: Apache-2.0
/// ASTRA-sim's inputs on the event loop of training steps: by hand, and beside ASTRA-sim's engine
/// where the two are to agree.
#include "compat/astra/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstdlib>

#include "small_input.h"
#include "study/trace_workload.h"
#include "study/workload_run.h"

namespace orrery::astra {
namespace {

using namespace small_tests;  // NOLINT(google-build-using-namespace): this folder's own
using ::testing::HasSubstr;

machine::Machine machine(const RunInput& input) {
  Result<machine::Machine> made = machine_of(input, 1);
  EXPECT_TRUE(made) << made.error().to_string();
  return made ? std::move(*made) : machine::Machine{};
}

Time loop_time(const RunInput& input,
               simulate::NetworkModel network = simulate::NetworkModel::ports) {
  const machine::Machine on = machine(input);
  auto workload = study::workload_of(input.traces, on, !input.system.roofline);
  EXPECT_TRUE(workload) << workload.error().to_string();
  simulate::SimulateOptions options;
  options.network = network;
  options.algorithms.fill(workload->groups.size(), algorithm_of(input));
  const auto run = study::run_workload("traces", std::move(*workload), on, options);
  EXPECT_TRUE(run) << run.error().to_string();
  return run ? run->timeline.step_time : Time(0);
}

/// Rank 0 sends 1 MB to `peer`; the others do nothing.
RunInput message_to(std::int64_t peer, std::vector<Dimension> network) {
  RunInput input = input_of(std::move(network), Algorithm::ring, {});
  chakra::Node node;
  node.size = kMegabyte;
  node.has_size = true;
  input.traces.programs.resize(3, input.traces.programs[0]);
  node.type = NodeType::comm_send;
  node.peer = peer;
  input.traces.programs[1].nodes = {node};
  node.type = NodeType::comm_recv;
  node.peer = -peer;
  input.traces.programs[2].nodes = {node};
  input.traces.program_of[0] = 1;
  input.traces.program_of[static_cast<std::size_t>(peer)] = 2;
  return input;
}

RunInput one(Building building, std::int64_t size, Algorithm algorithm, CollectiveType type,
             Bytes bytes) {
  return input_of({dimension(building, size, 100)}, algorithm, {collective(0, type, bytes)});
}

/// The networks without head flits and cycles of routers.
constexpr std::array kOfBytes = {simulate::NetworkModel::ports, simulate::NetworkModel::fifo,
                                 simulate::NetworkModel::flow};

TEST(AstraMachine, AMessageTakesItsHopsAndItsBytes) {
  // 1 MB over 100 GB/s: 10 us, and 500 ns a hop: to the neighbour of a ring, to the one after it,
  // backwards to the last, over a switch (two hops), to anyone on direct links.
  struct Way {
    Building building;
    std::int64_t peer;
    Time time;
  };
  for (const Way& way : {Way{Building::ring, 1, 10'500_ns}, Way{Building::ring, 2, 11_us},
                         Way{Building::ring, 4, 10'500_ns}, Way{Building::switched, 3, 11_us},
                         Way{Building::fully_connected, 3, 10'500_ns}}) {
    const RunInput input = message_to(way.peer, {dimension(way.building, 5, 100)});
    EXPECT_EQ(engine_time(input), way.time);
    for (const simulate::NetworkModel network : kOfBytes) {
      EXPECT_EQ(loop_time(input, network), way.time) << name_of(network);
    }
  }
}

TEST(AstraMachine, AMessagePaysForEveryDimensionThatItCrosses) {
  // Rings of 2 and 4 at 100 and 50 GB/s: two hops of 500 ns, and 20 us over the slower link; for
  // ASTRA-sim the first ring alone.
  const RunInput input =
      message_to(3, {dimension(Building::ring, 2, 100), dimension(Building::ring, 4, 50)});
  RunOptions all_but_one;
  all_but_one.quirks.set(Quirk::first_dimension, false);
  EXPECT_EQ(engine_time(input, all_but_one), 21_us);
  EXPECT_EQ(engine_time(input), 10'500_ns);
  EXPECT_EQ(loop_time(input, simulate::NetworkModel::fifo), 21_us);
}

TEST(AstraMachine, TheEndpointDelayIsTheCostOfAMessage) {
  RunInput input =
      one(Building::switched, 8, Algorithm::ring, CollectiveType::all_reduce, 8 * kMegabyte);
  const Time without = loop_time(input);
  input.system.endpoint_delay = 100_ns;
  EXPECT_EQ(loop_time(input), without + 14 * 100_ns);
  EXPECT_EQ(machine_of(input, 2.5)->network[0].message_overhead, 250_ns);
}

TEST(AstraMachine, RingsAndHalvingOverASwitchAreEqual) {
  // 1 MB over 8: 14 steps of 1.25 + 1 us; halving-doubling 2 * (5 + 2.5 + 1.25 + 3) us.
  const RunInput ring =
      one(Building::switched, 8, Algorithm::ring, CollectiveType::all_reduce, kMegabyte);
  EXPECT_EQ(engine_time(ring), 31'500_ns);
  EXPECT_EQ(loop_time(ring), 31'500_ns);
  const RunInput halving = one(Building::switched, 8, Algorithm::halving_doubling,
                               CollectiveType::all_reduce, kMegabyte);
  EXPECT_EQ(engine_time(halving), 23'500_ns);
  EXPECT_EQ(loop_time(halving), 23'500_ns);
}

TEST(AstraMachine, DirectOnFullyConnectedUsesAllLinks) {
  const RunInput input = one(Building::fully_connected, 4, Algorithm::direct,
                             CollectiveType::all_to_all, 4 * kMegabyte);
  EXPECT_EQ(engine_time(input), 10'500_ns);
  for (const simulate::NetworkModel network : kOfBytes) {
    EXPECT_EQ(loop_time(input, network), 10'500_ns) << name_of(network);
  }
}

TEST(AstraMachine, DirectOnASwitchSharesThePort) {
  // All-to-all of 4 MB over 4: three messages of 1 MB leave one after the other, 10 us each: 31 us.
  // ASTRA-sim's unaware back-end lets them overlap: 11 us.
  const RunInput input =
      one(Building::switched, 4, Algorithm::direct, CollectiveType::all_to_all, 4 * kMegabyte);
  EXPECT_EQ(engine_time(input), 11_us);
  for (const simulate::NetworkModel network : kOfBytes) {
    EXPECT_EQ(loop_time(input, network), 31_us) << name_of(network);
  }
}

TEST(AstraMachine, RingsGoBothWaysRound) {
  // 4 MB over 4: ASTRA-sim sends 6 times 1 MB over the links of one direction, 6 * 10.5 us; the
  // loop half as much over each direction, 6 * (5 + 0.5) us.
  const RunInput input =
      one(Building::ring, 4, Algorithm::ring, CollectiveType::all_reduce, 4 * kMegabyte);
  EXPECT_EQ(engine_time(input), 63_us);
  EXPECT_EQ(loop_time(input), 33_us);
}

TEST(AstraMachine, DimensionsOfDifferentKindsAndSpeedsAddUp) {
  // Reduce-scatter of 8 MB: ring of 2 at 100 GB/s (4 MB: 40.5 us), then a switch of 4 at 10 GB/s
  // with the rest, halving-doubling: 2 and 1 MB (200 + 100 us and 1 us each): 342.5 us.
  const RunInput input = input_of(
      {dimension(Building::ring, 2, 100), dimension(Building::switched, 4, 10)},
      Algorithm::halving_doubling, {collective(0, CollectiveType::reduce_scatter, 8 * kMegabyte)});
  EXPECT_EQ(engine_time(input), 342'500_ns);
  EXPECT_EQ(loop_time(input), 342'500_ns);
}

TEST(AstraMachine, GroupsInDifferentDimensionsOverlapInOneDimensionTheyDoNot) {
  // Two all-reduces of 8 MB on 4 x 4 rings of 100 GB/s: 6 steps of 500 ns and 12 MB both ways
  // round, 63 us; both over the rows, one after the other.
  const auto grouped = [](std::uint32_t second) {
    RunInput input = input_of(
        {dimension(Building::ring, 4, 100), dimension(Building::ring, 4, 100)}, Algorithm::ring,
        {collective(0, CollectiveType::all_reduce, 8 * kMegabyte, 1),
         collective(1, CollectiveType::all_reduce, 8 * kMegabyte, second)});
    add_lines(input);
    return loop_time(input);
  };
  EXPECT_EQ(grouped(2), 63_us);
  EXPECT_EQ(grouped(1), 126_us);
}

TEST(AstraMachine, ThemisKeepsAllDimensionsBusy) {
  // 1 GB over two switches of 250 GB/s: within 2 % of one of 500, 2 * 511/512 GB over it; one
  // dimension after the other takes nearly twice as long.
  RunInput input =
      input_of({dimension(Building::switched, 32, 250, Time(0)),
                dimension(Building::switched, 16, 250, Time(0))},
               Algorithm::ring, {collective(0, CollectiveType::all_reduce, 1000 * kMegabyte)});
  const double alone = 2.0 * 511 / 512 / 500;
  EXPECT_GT(to_seconds(loop_time(input)), 1.9 * alone);
  input.system.inter_dimension = InterDimension::themis;
  EXPECT_NEAR(to_seconds(loop_time(input)) / alone, 1, 0.02);
}

TEST(AstraMachine, ComputingTakesItsDurationOrTheRoofline) {
  chakra::Node node;
  node.type = NodeType::comp;
  node.operations = Flops(1e12);
  node.has_operations = true;
  node.size = 4 * kMegabyte;
  node.duration = 7_us;
  RunInput input = input_of({dimension(Building::ring, 2, 100)}, Algorithm::ring, {node});
  EXPECT_EQ(engine_time(input), 7_us);
  EXPECT_EQ(loop_time(input), 7_us);
  // 1e12 operations at 100 TFLOPS: 10 ms; 4 MB at 100 MB/s: 40 ms.
  input.system.roofline = true;
  input.system.peak = FlopRate(100e12);
  for (const auto& [bandwidth, time] : {std::pair(1000_GBps, 10_ms), {Bandwidth(100e6), 40_ms}}) {
    input.system.local_memory_bandwidth = bandwidth;
    EXPECT_EQ(engine_time(input), time);
    EXPECT_EQ(loop_time(input), time);
  }
}

TEST(AstraMachine, RemoteMemoryIsTheSameServer) {
  chakra::Node node;
  node.type = NodeType::mem_load;
  node.size = kMegabyte;
  node.has_size = true;
  RunInput input = input_of({dimension(Building::ring, 4, 100)}, Algorithm::ring, {node});
  // 1 us + 1 MB over 100 GB/s; all four at one server that is asked at once: 10 us for each.
  input.memory = {RemoteMemoryKind::per_npu, 1_us, 100_GBps, 1, 1};
  EXPECT_EQ(engine_time(input), 11_us);
  EXPECT_EQ(loop_time(input), 11_us);
  input.memory.kind = RemoteMemoryKind::pool;
  EXPECT_EQ(loop_time(input), 41_us);
  input.memory = {RemoteMemoryKind::per_node, 1_us, 100_GBps, 2, 2};
  EXPECT_EQ(loop_time(input), 21_us);
  input.memory.kind = RemoteMemoryKind::none;
  const auto without = machine_of(input, 1);
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().to_string(), HasSubstr("memory-type: found 'NO_MEMORY_EXPANSION'"));
}

TEST(AstraMachine, WhatOnlyTheEngineHasIsRefusedByName) {
  System system;
  system.custom[static_cast<std::size_t>(Operation::all_gather)] = "ring8";
  system.custom_by_node = "nodes.yaml";
  system.replay_only = true;
  const auto portable = check_portable(system);
  ASSERT_FALSE(portable);
  EXPECT_THAT(portable.error().to_string(),
              AllOf(HasSubstr("all-gather-implementation-custom: found 'ring8'"),
                    HasSubstr("per-node-custom-implementation: found 'nodes.yaml'"),
                    HasSubstr("replay-only: found '1', expected 0")));
  EXPECT_TRUE(check_portable(System{}));
  RunInput input = one(Building::ring, 4, Algorithm::ring, CollectiveType::all_reduce, kMegabyte);
  input.system.bus = Bus{.shared = true};
  const auto bus = machine_of(input, 1);
  ASSERT_FALSE(bus);
  EXPECT_THAT(bus.error().to_string(), HasSubstr("model-shared-bus: found '1', expected 0"));
}

TEST(AstraMachine, ListsBecomeTheAlgorithmOfAGroup) {
  using Choice = collective::CollectiveAlgorithm;
  const Dimension ring = dimension(Building::ring, 4, 100);
  const auto asked = [&](Algorithm algorithm, std::vector<Dimension> network) {
    return algorithm_of(input_of(std::move(network), algorithm,
                                 {collective(0, CollectiveType::all_gather, kMegabyte)}));
  };
  EXPECT_EQ(asked(Algorithm::ring, {ring}), Choice::ring);
  EXPECT_EQ(asked(Algorithm::double_binary_tree, {ring}), Choice::double_binary_tree);
  EXPECT_EQ(asked(Algorithm::ring, {ring, ring}), Choice::hierarchical);
  EXPECT_EQ(asked(Algorithm::direct, {ring, ring}), Choice::direct);
  EXPECT_EQ(asked(Algorithm::one_ring, {ring, ring}), Choice::ring);
  EXPECT_EQ(asked(Algorithm::one_direct, {ring}), Choice::direct);
  EXPECT_EQ(asked(Algorithm::one_direct, {ring, ring}), Choice::automatic);
  // Only lists of operations that the traces have count; where two differ there is no one answer.
  RunInput input =
      input_of({ring}, Algorithm::ring, {collective(0, CollectiveType::all_gather, kMegabyte)});
  input.system.implementation[static_cast<std::size_t>(Operation::all_reduce)][0].algorithm =
      Algorithm::direct;
  EXPECT_EQ(algorithm_of(input), Choice::ring);
  input.traces.programs[0].nodes.push_back(collective(1, CollectiveType::all_reduce, kMegabyte));
  EXPECT_EQ(algorithm_of(input), Choice::automatic);
}

RC_GTEST_PROP(AstraMachine, EveryLinkWithOneSenderAtATimeTakesAsLongAsInTheEngine, ()) {
  // One collective in one dimension where the algorithm uses all links of a device or has but one.
  // The engine floors each message to a nanosecond, and its blocks to bytes.
  struct Form {
    Building building;
    Algorithm algorithm;
    std::vector<std::int64_t> sizes;
  };
  const Form form =
      *rc::gen::element(Form{Building::switched, Algorithm::ring, {2, 3, 4, 5, 6, 7, 8}},
                        Form{Building::switched, Algorithm::halving_doubling, {2, 4, 8}},
                        Form{Building::fully_connected, Algorithm::direct, {2, 3, 4, 5, 6, 7, 8}},
                        Form{Building::ring, Algorithm::ring, {2}});
  const std::int64_t size = *rc::gen::elementOf(form.sizes);
  const auto type = *rc::gen::element(CollectiveType::all_reduce, CollectiveType::all_gather,
                                      CollectiveType::reduce_scatter);
  const RunInput input =
      input_of({dimension(form.building, size, *rc::gen::inRange(1, 200),
                          Time(1000 * *rc::gen::inRange(0, 1000)))},
               form.algorithm, {collective(0, type, Bytes(*rc::gen::inRange(1000, 9'000'000)))});
  const Time engine = engine_time(input, quirks_off());
  for (const simulate::NetworkModel network :
       {simulate::NetworkModel::ports, simulate::NetworkModel::fifo}) {
    const Time apart = loop_time(input, network) - engine;
    RC_ASSERT(std::abs(apart.value()) <= 4'000 * size);
  }
}

}  // namespace
}  // namespace orrery::astra
