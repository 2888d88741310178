// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/hop_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::flit {
namespace {

using ::testing::ElementsAre;

/// Three routers in a line; channels by source, to the next before those to the previous:
/// 0: 0 -> 1, 1: 1 -> 2, 2: 1 -> 0, 3: 2 -> 1.
RouterGraph line() {
  return make_grid(Shape::mesh, {3});
}

TEST(HopTable, TheShortestWayOfALineIsTheOnlyOne) {
  const HopTable hops = HopTable::shortest(line());
  EXPECT_EQ(hops.channel(0, 0, 2), 0U);
  EXPECT_EQ(hops.channel(0, 1, 2), 1U);
  EXPECT_EQ(hops.channel(0, 2, 0), 3U);
  EXPECT_FALSE(hops.is_down(0));
  EXPECT_FALSE(hops.cut_off(line()));
}

TEST(HopTable, WhatLeadsTowardsRouter0GoesUp) {
  const HopTable hops = HopTable::up_down(line());
  EXPECT_TRUE(hops.is_down(0));
  EXPECT_TRUE(hops.is_down(1));
  EXPECT_FALSE(hops.is_down(2));
  EXPECT_FALSE(hops.is_down(3));
  EXPECT_EQ(hops.channel(0, 2, 0), 3U);
  EXPECT_EQ(hops.channel(1, 0, 2), 0U);  // on downwards, having gone down
}

TEST(HopTable, RoutersWithoutAWayBetweenThemAreNamed) {
  RouterGraph graph = line();
  graph.channels.pop_back();  // 2 -> 1
  EXPECT_EQ(HopTable::shortest(graph).cut_off(graph), std::pair(2, 0));
}

/// On a ring of four the opposite router is two steps away on both sides.
TEST(NearerChannels, AreAllThatLeadAStepNearer) {
  const RouterGraph ring = make_grid(Shape::torus, {4});
  const NearerChannels nearer(ring);
  EXPECT_THAT(nearer.of(0, 2), ElementsAre(0, 1));
  ASSERT_EQ(nearer.of(0, 1).size(), 1U);
  EXPECT_EQ(ring.channels[nearer.of(0, 1)[0]].target, 1);
}

}  // namespace
}  // namespace orrery::flit
