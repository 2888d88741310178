// SPDX-License-Identifier: Apache-2.0
#include "collective/token_exchange.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "networks.h"

namespace orrery::collective {
namespace {

using testing::cluster_of;

std::vector<CollectivePhase> exchange(std::int64_t copies, const std::vector<Extent>& extents,
                                      const machine::Machine& machine) {
  return plan_token_exchange(plan_collective, Bytes(8'000'000), copies, extents,
                             CollectiveAlgorithm::automatic, machine);
}

std::vector<CollectivePhase> all_to_all(Bytes size, const std::vector<Extent>& extents,
                                        const machine::Machine& machine) {
  return plan_collective(graph::CollectiveKind::all_to_all, size, extents,
                         CollectiveAlgorithm::automatic, machine);
}

TEST(TokenExchange, PlacesReachedAreThoseNotMissedByEveryCopy) {
  // 8 copies over 8 places: 8 (1 - (7/8)^8) = 8 (1 - 0.343609) = 5.251129.
  EXPECT_NEAR(places_reached(8, 8), 5.251129, 1e-6);
  EXPECT_DOUBLE_EQ(places_reached(1, 5), 1);
  EXPECT_DOUBLE_EQ(places_reached(16, 1), 1);
}

RC_GTEST_PROP(TokenExchange, no_more_places_are_reached_than_there_are_or_copies, ()) {
  const double places = *rc::gen::inRange(1, 1000);
  const double copies = *rc::gen::inRange(1, 100);
  const double reached = places_reached(places, copies);
  RC_ASSERT(reached <= places * (1 + 1e-12) && reached <= copies * (1 + 1e-9) &&
            reached >= 1 - 1e-9);
}

TEST(TokenExchange, InsideANodeARankGetsATokenOnce) {
  const machine::Machine machine = cluster_of(8, 4);
  const std::vector<Extent> node{{0, 8, 1}};
  const Bytes sent = Bytes(8'000'000) * (places_reached(8, 8) / 8);
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
      total_time(all_to_all(Bytes(8'000'000) * (places_reached(4, 8) / 8), {{1, 4, 1}}, machine));
  const Time inside =
      total_time(all_to_all(Bytes(8'000'000) * (places_reached(32, 8) / 8), {{0, 8, 1}}, machine));
  EXPECT_NEAR(places_reached(4, 8), 3.5995, 1e-4);
  EXPECT_NEAR(places_reached(32, 8), 7.1776, 1e-4);
  EXPECT_EQ(total_time(exchange(8, both, machine)), outside + inside);
}

}  // namespace
}  // namespace orrery::collective
