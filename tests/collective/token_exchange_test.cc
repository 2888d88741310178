// SPDX-License-Identifier: Apache-2.0
#include "collective/token_exchange.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "networks.h"

namespace orrery::collective {
namespace {

using testing::cluster_of;

std::vector<CollectivePhase> exchange(std::int64_t copies, const std::vector<Extent>& extents,
                                      const machine::Machine& machine) {
  return plan_token_exchange(plan_collective, Bytes(8'000'000), {copies}, extents,
                             CollectiveAlgorithm::automatic, machine);
}

std::vector<CollectivePhase> all_to_all(Bytes size, const std::vector<Extent>& extents,
                                        const machine::Machine& machine) {
  return plan_collective(graph::CollectiveKind::all_to_all, size, extents,
                         CollectiveAlgorithm::automatic, machine);
}

TEST(TokenExchange, PlacesReachedAreThoseNotMissedByEveryCopy) {
  // 8 copies over 8 places: 8 (1 - (7/8)^8) = 8 (1 - 0.343609) = 5.251129.
  EXPECT_NEAR(places_reached(8, {8}), 5.251129, 1e-6);
  EXPECT_DOUBLE_EQ(places_reached(1, {5}), 1);
  EXPECT_DOUBLE_EQ(places_reached(16, {1}), 1);
}

TEST(TokenExchange, LimitedRoutingReachesPartOfTheNodes) {
  // DeepSeek-V3: 8 experts of 4 of 8 groups. 8 nodes: 4 (1 - (3/4)^8) = 3.599548. 64 ranks, 32 of
  // which are in the groups: 32 (1 - (31/32)^8) = 7.177618.
  const graph::TokenRoute route{8, 8, 4};
  EXPECT_NEAR(places_reached(8, route), 3.599548, 1e-6);
  EXPECT_NEAR(places_reached(64, route), places_reached(32, {8}), 1e-12);
  // 4 nodes of two groups: of 70 draws of 4 groups 15 have none of the node's, 40 one and 15 both;
  // it is missed in 15/70 + 40/70 (3/4)^8 + 15/70 (1/2)^8 = 0.272330 of the draws: 2.910679 nodes.
  EXPECT_NEAR(places_reached(4, route), 2.910679, 1e-6);
  EXPECT_DOUBLE_EQ(places_reached(8, {8, 8, 8}), places_reached(8, {8}));
}

RC_GTEST_PROP(TokenExchange, limited_routing_reaches_no_more, ()) {
  const auto groups = std::int64_t{1} << *rc::gen::inRange(0, 6);
  const double places = std::exp2(*rc::gen::inRange(0, 9));
  const graph::TokenRoute all{*rc::gen::inRange(1, 20)};
  const graph::TokenRoute few{all.copies, groups, *rc::gen::inRange<std::int64_t>(1, groups + 1)};
  RC_ASSERT(places_reached(places, few) <= places_reached(places, all) * (1 + 1e-9));
}

RC_GTEST_PROP(TokenExchange, no_more_places_are_reached_than_there_are_or_copies, ()) {
  const double places = *rc::gen::inRange(1, 1000);
  const int groups = *rc::gen::inRange(1, 20);
  const graph::TokenRoute route{*rc::gen::inRange(1, 100), groups,
                                *rc::gen::inRange(1, groups + 1)};
  const double reached = places_reached(places, route);
  RC_ASSERT(reached <= places * (1 + 1e-12) &&
            reached <= static_cast<double>(route.copies) * (1 + 1e-9) && reached >= 1 - 1e-9);
}

TEST(TokenExchange, InsideANodeARankGetsATokenOnce) {
  const machine::Machine machine = cluster_of(8, 4);
  const std::vector<Extent> node{{0, 8, 1}};
  const Bytes sent = Bytes(8'000'000) * (places_reached(8, {8}) / 8);
  EXPECT_EQ(total_time(exchange(8, node, machine)), total_time(all_to_all(sent, node, machine)));
  EXPECT_LT(total_time(exchange(8, node, machine)),
            total_time(all_to_all(Bytes(8'000'000), node, machine)));
}

TEST(TokenExchange, OneCopyANodeCrossesAndOneARankMovesInside) {
  // 4 nodes of 8: 8 copies reach 4 (1 - (3/4)^8) = 3.5995 nodes and 32 (1 - (31/32)^8) = 7.1776
  // ranks.
  const machine::Machine machine = cluster_of(8, 4);
  const std::vector<Extent> both{{0, 8, 1}, {1, 4, 1}};
  const Time outside =
      total_time(all_to_all(Bytes(8'000'000) * (places_reached(4, {8}) / 8), {{1, 4, 1}}, machine));
  const Time inside = total_time(
      all_to_all(Bytes(8'000'000) * (places_reached(32, {8}) / 8), {{0, 8, 1}}, machine));
  EXPECT_NEAR(places_reached(4, {8}), 3.5995, 1e-4);
  EXPECT_NEAR(places_reached(32, {8}), 7.1776, 1e-4);
  EXPECT_EQ(total_time(exchange(8, both, machine)), outside + inside);
}

}  // namespace
}  // namespace orrery::collective
