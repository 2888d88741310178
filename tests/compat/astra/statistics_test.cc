// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/statistics.h"

#include <gtest/gtest.h>

#include "small_input.h"

namespace orrery::astra {
namespace {

using namespace small_tests;  // NOLINT(google-build-using-namespace): this folder's own

chakra::Node compute(std::uint64_t id, Time duration) {
  chakra::Node node;
  node.id = id;
  node.type = NodeType::comp;
  node.duration = duration;
  return node;
}

std::vector<Statistics> statistics_of(const RunInput& input) {
  RunOptions options;
  options.node_times = true;
  const auto result = run(input, options);
  EXPECT_TRUE(result) << result.error().to_string();
  return result ? statistics(input, *result) : std::vector<Statistics>();
}

TEST(AstraStatistics, NodesThatRunAtOnceCountOnceAndOverlapIsWhatBothHave) {
  // A kernel of 9 us beside an all-reduce of 1 MB on 2 NPUs at 100 GB/s: two messages of 500 KB,
  // 5 us + 500 ns each, and three endpoint delays of 10 ns: 11,030 ns. Then 2 us alone.
  RunInput input = input_of(
      {dimension(Building::fully_connected, 2, 100)}, Algorithm::ring,
      {compute(0, 9_us), collective(1, CollectiveType::all_reduce, kMegabyte), compute(2, 2_us)});
  input.system.endpoint_delay = 10_ns;
  chakra::Program& program = input.traces.programs[0];
  program.dependencies = {1};
  for (chakra::Node& node : program.nodes) {
    node.dependencies = node.id == 2 ? 1 : 0;
    node.first_dependency = 0;
  }
  const std::vector<Statistics> all = statistics_of(input);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].wall, 13'030_ns);
  EXPECT_EQ(all[0].gpu, 11_us);
  EXPECT_EQ(all[0].communication, 11'030_ns);
  EXPECT_EQ(all[0].overlap, 9_us);
  EXPECT_EQ(all[0].cpu, Time(0));
  EXPECT_FALSE(all[0].roofline);
}

TEST(AstraStatistics, SharesUnderRooflineAreWeightedByTime) {
  // Peak 1e12, memory 1e9 B/s. 1e6 operations of 1 B: 1 us at peak. 1e6 of 3000 B: 3 us at the
  // memory's bandwidth, a third of the peak. So a quarter at peak, the peak half used, the memory
  // (1e-9 + 3e-6) / 4e-6.
  RunInput input = input_of({dimension(Building::ring, 2, 100)}, Algorithm::ring,
                            {compute(0, Time(0)), compute(1, Time(0))});
  input.system.roofline = true;
  input.system.peak = FlopRate(1e12);
  input.system.local_memory_bandwidth = Bandwidth(1e9);
  for (chakra::Node& node : input.traces.programs[0].nodes) {
    node.operations = Flops(1e6);
    node.has_operations = true;
    node.size = Bytes(node.id == 0 ? 1 : 3000);
  }
  const std::vector<Statistics> all = statistics_of(input);
  ASSERT_TRUE(all.at(0).roofline);
  EXPECT_NEAR(all[0].roofline->compute_bound, 0.25, 1e-12);
  EXPECT_NEAR(all[0].roofline->compute_utilisation, 0.5, 1e-12);
  EXPECT_NEAR(all[0].roofline->memory_utilisation, 0.75025, 1e-12);
  EXPECT_NEAR(all[0].roofline->intensity, (1e6 + 3 * 1e6 / 3000) / 4, 1e-6);
}

TEST(AstraStatistics, WhatNpusAndLinksCarry) {
  // A ring all-reduce of 8 MB on 4 NPUs: 6 messages of 2 MB each, clockwise.
  RunInput input = input_of({dimension(Building::ring, 4, 100)}, Algorithm::ring,
                            {collective(0, CollectiveType::all_reduce, kMegabyte * 8)});
  RunOptions options;
  options.traffic = true;
  options.backend = Backend::aware;
  for (const bool fold : {true, false}) {
    options.fold = fold;
    const RunResult result = run_engine(input, options);
    for (const std::vector<Bytes>& sent : result.sent) {
      EXPECT_EQ(sent, std::vector<Bytes>{kMegabyte * 12});
    }
    ASSERT_EQ(result.links.size(), result.classes.size());
    EXPECT_EQ(result.links[0].from, 0);
    EXPECT_EQ(result.links[0].to, 1);
    EXPECT_EQ(result.links[0].carried, kMegabyte * 12);
  }
}

TEST(AstraStatistics, AStragglerTakesLongerAndTheOthersWait) {
  // 4 us of computation, at half the speed on rank 3; then an all-reduce of all four.
  RunInput input =
      input_of({dimension(Building::fully_connected, 4, 100)}, Algorithm::ring,
               {compute(0, 4_us), collective(1, CollectiveType::all_reduce, kMegabyte)});
  chakra::Program& program = input.traces.programs[0];
  program.dependencies = {0};
  program.nodes[1].dependencies = 1;
  const Time even = engine_time(input);
  input.compute_speed = {1, 1, 1, 0.5};
  RunOptions every_rank;
  every_rank.fold = false;
  EXPECT_EQ(engine_time(input), even + 4_us);
  EXPECT_EQ(engine_time(input, every_rank), even + 4_us);
  EXPECT_EQ(statistics_of(input).back().gpu, 8_us);
  input.compute_speed = {2, 2, 2, 2};
  EXPECT_EQ(engine_time(input), even - 2_us);
}

}  // namespace
}  // namespace orrery::astra
