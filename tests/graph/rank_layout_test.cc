// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "graph/workload.h"

namespace orrery {
namespace {

using Ranks = std::vector<std::int64_t>;

// tp 2, dp 3, pp 4, innermost first: rank = tp + 2 dp + 6 pp.
RankLayout layout_2_3_4() {
  return {{{Axis::tp, 2}, {Axis::dp, 3}, {Axis::pp, 4}}};
}

TEST(RankLayout, RankIsTheSumOfCoordinatesTimesStrides) {
  const RankLayout layout = layout_2_3_4();
  EXPECT_EQ(layout.ranks(), 24);
  EXPECT_EQ(layout.stride(Axis::tp), 1);
  EXPECT_EQ(layout.stride(Axis::dp), 2);
  EXPECT_EQ(layout.stride(Axis::pp), 6);
  // 17 = 1 + 2 * 2 + 6 * 2.
  EXPECT_EQ(layout.coordinate(17, Axis::tp), 1);
  EXPECT_EQ(layout.coordinate(17, Axis::dp), 2);
  EXPECT_EQ(layout.coordinate(17, Axis::pp), 2);
}

TEST(RankLayout, GroupsHoldTheRanksThatDifferInOneCoordinate) {
  const RankLayout layout = layout_2_3_4();
  EXPECT_EQ(layout.group(17, Axis::tp), (Ranks{16, 17}));
  EXPECT_EQ(layout.group(17, Axis::dp), (Ranks{13, 15, 17}));
  EXPECT_EQ(layout.group(17, Axis::pp), (Ranks{5, 11, 17, 23}));
}

TEST(RankLayout, EmbeddingGroupIsFirstAndLastStage) {
  const RankLayout layout = layout_2_3_4();
  EXPECT_EQ(layout.group(5, Axis::embedding), (Ranks{5, 23}));
  EXPECT_EQ(layout.group(23, Axis::embedding), (Ranks{5, 23}));
  EXPECT_TRUE(layout.group(11, Axis::embedding).empty());
  EXPECT_EQ(layout.size(Axis::embedding), 2);
  EXPECT_EQ(layout.stride(Axis::embedding), 18);
}

TEST(RankLayout, OneStageHasNoEmbeddingGroup) {
  const RankLayout layout{{{Axis::tp, 2}, {Axis::dp, 3}, {Axis::pp, 1}}};
  EXPECT_EQ(layout.size(Axis::embedding), 1);
  EXPECT_TRUE(layout.group(0, Axis::embedding).empty());
}

TEST(RankLayout, AbsentAxesHaveSizeOne) {
  const RankLayout layout{{{Axis::tp, 4}}};
  EXPECT_EQ(layout.size(Axis::dp), 1);
  EXPECT_EQ(layout.coordinate(3, Axis::dp), 0);
  EXPECT_EQ(layout.group(3, Axis::dp), (Ranks{3}));
}

RC_GTEST_PROP(RankLayout, CoordinatesIdentifyTheRank, ()) {
  const auto size = [] { return *rc::gen::inRange<std::int64_t>(1, 6); };
  const RankLayout layout{{{Axis::pp, size()}, {Axis::tp, size()}, {Axis::dp, size()}}};
  const std::int64_t rank = *rc::gen::inRange<std::int64_t>(0, layout.ranks());
  std::int64_t rebuilt = 0;
  for (const Axis axis : {Axis::tp, Axis::dp, Axis::pp}) {
    rebuilt = layout.with(rebuilt, axis, layout.coordinate(rank, axis));
    const Ranks group = layout.group(rank, axis);
    RC_ASSERT(std::ssize(group) == layout.size(axis));
    RC_ASSERT(group[static_cast<std::size_t>(layout.coordinate(rank, axis))] == rank);
  }
  RC_ASSERT(rebuilt == rank);
}

}  // namespace
}  // namespace orrery
