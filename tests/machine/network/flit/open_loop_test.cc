// SPDX-License-Identifier: Apache-2.0
/// Quick ones of the public cases (reference/README.md has all): BookSim 2, one seed each.
#include <gtest/gtest.h>

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

TEST_P(PublicCase, LatencyIsWithin3PercentAndHopsWithin1) {
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
  EXPECT_NEAR(run.network_latency / GetParam().latency, 1, 0.03);
  EXPECT_NEAR(run.hops / GetParam().hops, 1, 0.01);
}

INSTANTIATE_TEST_SUITE_P(BookSim, PublicCase,
                         ::testing::Values(Case{"mesh:4x4", 2, "uniform", 0.3, 16.4752, 3.49797},
                                           Case{"mesh:8x8", 4, "uniform", 0.05, 27.0479, 6.23439},
                                           Case{"torus:8x8", 4, "tornado", 0.15, 31.9119, 7.0},
                                           Case{"fly:k=4,n=3", 4, "uniform", 0.4, 15.5989, 3.0}));

}  // namespace
}  // namespace orrery::flit
