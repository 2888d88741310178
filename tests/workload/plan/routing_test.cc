// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/routing.h"

#include <gtest/gtest.h>

namespace orrery::plan {
namespace {

TEST(Routing, OneBiasSpreadsLoadsByTopKOfE) {
  // With r = 0.245 top 8 of 256 deviate by 1.36 of their mean, 32 ranks of 8 of them by 1.36
  // sqrt(8 / 64) = 0.48, as published; 2 of 8 by 0.648, integrated numerically.
  EXPECT_NEAR(Routing(256, 8, 0.245).spread(), 1.360, 0.001);
  EXPECT_NEAR(Routing(8, 2, 0.245).spread(), 0.648, 0.001);
  EXPECT_NEAR(Routing(128, 1, 0.245).spread(), 1.914, 0.001);
  EXPECT_EQ(Routing(128, 1, 0).spread(), 0);
  EXPECT_EQ(Routing(4, 4, 0.5).spread(), 0);  // all are chosen
  EXPECT_NEAR(Routing::of_spread(256, 8, 1.36).spread(), 1.36, 1e-6);
  // Loads of 2 of 8 are 4 times the mean at most, so that they deviate by less than sqrt(4 - 1).
  EXPECT_LT(Routing::of_spread(8, 2, 9).spread(), 1.7321);
}

TEST(Routing, SkewedRoutingReachesFewerExperts) {
  // One token reaches as many as it chooses, whatever the spread. 256 (1 - (31/32)^16) = 101.96.
  for (const double bias : {0.0, 0.245, 0.6}) {
    EXPECT_NEAR(Routing(256, 8, bias).reached(1), 8, 1e-3);
    EXPECT_NEAR(Routing(8, 2, bias).reached(1), 2, 1e-3);
  }
  EXPECT_NEAR(Routing(256, 8, 0).reached(16), 101.96, 0.01);
  EXPECT_NEAR(Routing(256, 8, 0.245).reached(16), 78.71, 0.01);
  EXPECT_NEAR(Routing(256, 8, 0.245).reached(256), 214.96, 0.01);
  EXPECT_NEAR(Routing(8, 2, 0.245).reached(16), 7.196, 0.001);
}

TEST(Routing, TheBusiestRankIsTheGreatestOfAllRanks) {
  // Means of 4,000 draws of such routers: 2.29 (2.56 published for DeepSeek-R1), 1.37, 1.43, 2.07.
  EXPECT_NEAR(busiest_rank(1.36, 32, 256), 2.378, 0.001);
  EXPECT_NEAR(busiest_rank(1.36, 8, 256), 1.377, 0.001);
  EXPECT_NEAR(busiest_rank(1.114, 8, 128), 1.442, 0.001);
  EXPECT_NEAR(busiest_rank(0.648, 8, 8), 2.088, 0.001);
  EXPECT_NEAR(busiest_rank(1.36, 1, 256), 1, 1e-9);
  EXPECT_NEAR(busiest_rank(0, 8, 256), 1, 1e-9);
}

TEST(Routing, TheBusiestRankReachesMoreThanTheMean) {
  // Drawn 3,000 times, scores of such routers with the highest k chosen: 8.06 experts on the rank
  // of 8 that has the most, where 8 tokens reach 5.32 on the mean; of 2 ranks and 16 tokens 33.8.
  const Routing routing(128, 8, 0.245);
  EXPECT_NEAR(routing.reached(8) / 8, 5.324, 0.001);
  EXPECT_NEAR(routing.reached_on_busiest(8, 8), 8.007, 0.001);
  EXPECT_NEAR(routing.reached_on_busiest(16, 2), 33.622, 0.001);
  EXPECT_NEAR(routing.reached_on_busiest(8, 1), routing.reached(8), 1e-6);
  EXPECT_NEAR(routing.reached_on_busiest(100'000, 8), 16, 1e-3);  // all of them
}

}  // namespace
}  // namespace orrery::plan
