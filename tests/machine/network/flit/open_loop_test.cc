// SPDX-License-Identifier: Apache-2.0
/// Quick ones of the public cases (reference/README.md has all): BookSim 2, seed 1 as here.
#include <gtest/gtest.h>

#include "base/file.h"
#include "machine/network/flit/deadlock.h"
#include "machine/network/flit/experiment.h"

namespace orrery::flit {
namespace {

struct Case {
  const char* topology;
  int vcs;
  const char* pattern;
  double rate;
  double latency;
  double hops;
};

class PublicCase : public ::testing::TestWithParam<Case> {};

TEST_P(PublicCase, IsEqualToTheLastDigit) {
  Experiment experiment;
  experiment.topology = GetParam().topology;
  experiment.pattern = GetParam().pattern;
  experiment.router.vcs = GetParam().vcs;
  experiment.load.rate = GetParam().rate;
  const auto prepared = prepare(experiment);
  ASSERT_TRUE(prepared);
  const OpenLoopResult run = run_open_loop(*prepared->graph, prepared->routing, experiment.router,
                                           prepared->traffic, experiment.load);
  EXPECT_TRUE(run.stable);
  EXPECT_NEAR(run.network_latency, GetParam().latency, 5.1e-5);
  EXPECT_NEAR(run.hops, GetParam().hops, 5.1e-6);
}

INSTANTIATE_TEST_SUITE_P(BookSim, PublicCase,
                         ::testing::Values(Case{"mesh:4x4", 2, "uniform", 0.3, 16.4752, 3.49797},
                                           Case{"mesh:8x8", 4, "uniform", 0.05, 27.0479, 6.23439},
                                           Case{"torus:8x8", 4, "tornado", 0.15, 31.9119, 7.0},
                                           Case{"fly:k=4,n=3", 4, "uniform", 0.4, 15.5989, 3.0}));

OpenLoopResult measured(const char* topology, const char* routing, const char* pattern,
                        double rate) {
  Experiment experiment;
  experiment.topology = topology;
  experiment.routing = routing;
  experiment.pattern = pattern;
  experiment.router.vcs = 6;
  experiment.load.rate = rate;
  const auto prepared = prepare(experiment);
  EXPECT_TRUE(prepared) << prepared.error().to_string();
  return run_open_loop(*prepared->graph, prepared->routing, experiment.router, prepared->traffic,
                       experiment.load);
}

TEST(Ugal, IsMinimalWithoutLoadAndGoesAroundWhereTheMinimalWayIsFull) {
  // A flattened butterfly of 8 routers in a line, c = 4: all nodes of router r send to router r + 1
  // over one channel, so minimal routing accepts at most a quarter of a flit per node. Ways over
  // others have 7 channels for 4 nodes and two hops each.
  const char* const network = "flattened_butterfly:8,c=4";
  std::string shifted;  // node -> node + 4
  for (int node = 0; node < 32; ++node) {
    shifted += std::to_string((node + 4) % 32) + "\n";
  }
  const std::string file = ::testing::TempDir() + "/shifted.txt";
  ASSERT_TRUE(write_file(file, shifted));
  const std::string pattern = "permutation:" + file;
  EXPECT_FALSE(measured(network, "dor", pattern.c_str(), 0.4).stable);
  const OpenLoopResult around = measured(network, "ugal", pattern.c_str(), 0.4);
  EXPECT_TRUE(around.stable);
  EXPECT_GT(around.hops, 2.1);  // routers; minimal 2, valiant up to 3
  EXPECT_LT(around.hops, 2.9);
  EXPECT_LT(measured(network, "ugal", "uniform", 0.02).hops,
            measured(network, "dor", "uniform", 0.02).hops + 0.05);
}

TEST(Ugal, ADragonflyTakesThreeClassesAndIsFreeOfDeadlock) {
  for (const char* routing : {"valiant", "ugal"}) {
    Experiment experiment;
    experiment.topology = "dragonfly:p=2,a=4,h=2";
    experiment.routing = routing;
    experiment.router.vcs = 2;
    EXPECT_FALSE(prepare(experiment));
    experiment.router.vcs = 3;
    const auto prepared = prepare(experiment);
    ASSERT_TRUE(prepared) << prepared.error().to_string();
    EXPECT_EQ(check_dependencies(prepared->routing).freedom, Freedom::free) << routing;
  }
  // The minimal way while its queue is at most 30 flits and twice the other's: three VCs of 8 flits
  // never have as many, so packets go as by `min` at any load.
  const auto hops_of = [](const char* routing) {
    Experiment experiment;
    experiment.topology = "dragonfly:p=2,a=4,h=2";
    experiment.routing = routing;
    experiment.router.vcs = 3;
    experiment.load.rate = 0.15;
    const auto prepared = prepare(experiment);
    return run_open_loop(*prepared->graph, prepared->routing, experiment.router, prepared->traffic,
                         experiment.load)
        .hops;
  };
  EXPECT_NEAR(hops_of("ugal") / hops_of("min"), 1, 0.002);
  // Without load minimal routes: at most local, global, local channel.
  const OpenLoopResult quiet = measured("dragonfly:p=2,a=4,h=2", "ugal", "uniform", 0.005);
  const OpenLoopResult minimal = measured("dragonfly:p=2,a=4,h=2", "min", "uniform", 0.005);
  EXPECT_NEAR(quiet.hops / minimal.hops, 1, 0.03);
}

}  // namespace
}  // namespace orrery::flit
