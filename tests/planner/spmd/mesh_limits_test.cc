// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mesh_limits.h"

#include <gtest/gtest.h>

#include "planner/spmd/decoder.h"
#include "planner/spmd/mesh_overlap.h"
#include "random_graph.h"
#include "simulate/simulate.h"

namespace orrery::spmd {
namespace {

OperatorGraph llama(std::int64_t devices) {
  return decoder_graph(
             zoo::load_model("llama-3-8b").value(),
             {.devices = devices, .batch = 32, .sequence = 1024, .layers = 1, .mesh = true})
      .value();
}

TEST(MeshLimits, ProgramsFitAndTheirBoundLiesBelow) {
  int limited = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const OperatorGraph graph = random_graph(seed, 5 + static_cast<int>(seed % 6));
    const MeshPrices prices =
        mesh_prices("dgx-a100-80g", seed % 2 == 0 ? Mesh{4, 2, 2} : mesh_of(8, 2));
    const auto free = search_mesh_within(graph, prices, Bytes::max());
    if (!free) {
      continue;
    }
    EXPECT_EQ(free->bound, free->time);
    const Bytes limit = free->memory * 0.8;
    const auto found = search_mesh_within(graph, prices, limit);
    if (!found) {
      continue;
    }
    const MeshCost cost = replay(graph, found->solution.strategy, prices).value();
    EXPECT_EQ(cost.total, found->time) << seed;
    EXPECT_EQ(cost.holdings.total(), found->memory) << seed;
    EXPECT_LE(found->memory, limit) << seed;
    EXPECT_LE(found->bound, found->time) << seed;
    EXPECT_GE(found->bound, free->time) << seed;
    ++limited;
  }
  EXPECT_GT(limited, 5);
}

TEST(MeshLimits, BelowWhatEveryProgramNeedsIsAMistake) {
  const auto found =
      search_mesh_within(llama(16), mesh_prices("dgx-h100", mesh_of(8, 2), 2), 1_MiB);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().to_string().find("--max-memory: found '1 MiB', expected at least about"),
            std::string::npos)
      << found.error().to_string();
}

TEST(MeshLimits, EachCornerIsTheFastestWithinItsMemory) {
  int several = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const OperatorGraph graph = random_graph(seed, 5 + static_cast<int>(seed % 6));
    const MeshPrices prices = mesh_prices("dgx-a100-80g", mesh_of(8, 2));
    const auto corners = mesh_frontier(graph, prices);
    if (!corners) {
      continue;
    }
    EXPECT_EQ(corners->front().bound, corners->front().time) << seed;
    if (corners->size() < 2) {
      continue;
    }
    EXPECT_EQ(corners->front().time, search_mesh(graph, prices)->total);
    for (std::size_t i = 1; i < corners->size(); ++i) {
      const MeshPoint& corner = (*corners)[i];
      EXPECT_LT(corner.memory, (*corners)[i - 1].memory);
      EXPECT_GT(corner.time, (*corners)[i - 1].time);
      EXPECT_EQ(search_mesh_within(graph, prices, corner.memory)->time, corner.time) << seed;
    }
    ++several;
  }
  EXPECT_GT(several, 5);
}

Time simulated(const OperatorGraph& graph, const MeshStrategy& strategy, const MeshPrices& prices,
               Overlap overlap) {
  const auto workload = program_of(graph, strategy, prices, overlap).value();
  EXPECT_TRUE(graph::verify(workload));
  return simulate::simulate(workload, prices.machine()).value().step_time;
}

TEST(MeshOverlap, HidesWhatNothingWaitsForAndNeverBeatsItsStreams) {
  const OperatorGraph graph = llama(16);
  for (const Mesh& mesh : {mesh_of(8, 2), Mesh{2, 4, 2}}) {
    const MeshPrices prices = mesh_prices("dgx-h100", mesh, 2);
    const MeshJudge judge = [&](const MeshStrategy& strategy) -> Result<Time> {
      return simulated(graph, strategy, prices, Overlap::both);
    };
    const MeshOptions options{.most_states = mesh[1] > 1 ? 60 : 0};
    const MeshOverlapped found = search_overlapped(graph, prices, judge, {}, options).value();
    const MeshCost cost = replay(graph, found.solution.strategy, prices).value();
    EXPECT_EQ(simulated(graph, found.solution.strategy, prices, Overlap::both), found.time);
    EXPECT_LT(found.time, cost.total);
    EXPECT_GE(found.time, cost.compute + cost.optimizer);
    for (const Time time : cost.of_parameters) {
      EXPECT_GE(found.time, time);
    }
    EXPECT_LE(found.bound, found.time);
    EXPECT_GT(found.bound, found.time * 0.5);
    // The optimum of the sum is a candidate.
    const MeshSolution sum = search_mesh(graph, prices, options).value();
    EXPECT_LE(found.time, simulated(graph, sum.strategy, prices, Overlap::both));
    EXPECT_LE(simulated(graph, sum.strategy, prices, Overlap::forward),
              simulated(graph, sum.strategy, prices, Overlap::none));
    EXPECT_EQ(simulated(graph, sum.strategy, prices, Overlap::none), sum.total);
  }
}

}  // namespace
}  // namespace orrery::spmd
