// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/cost.h"
#include "networks.h"

namespace orrery::collective {
namespace {

using testing::bare_machine;
using testing::cluster_of;
using testing::dimension_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Extents, OneMemberHasNone) {
  EXPECT_THAT(extents_of(4, 1, cluster_of(8, 4)), IsEmpty());
}

TEST(Extents, NeighboursFillTheInnermostDimensionFirst) {
  const machine::Machine machine = cluster_of(8, 4);
  EXPECT_THAT(extents_of(1, 8, machine), ElementsAre(Extent{0, 8, 1}));
  EXPECT_THAT(extents_of(1, 4, machine), ElementsAre(Extent{0, 4, 1}));
  EXPECT_THAT(extents_of(1, 16, machine), ElementsAre(Extent{0, 8, 1}, Extent{1, 2, 1}));
}

TEST(Extents, StrideInsideANodeCarriesOverToTheNext) {
  // Ranks 0 2 4 6 | 8 10 12 14 | ...: four in each of four nodes.
  EXPECT_THAT(extents_of(2, 16, cluster_of(8, 4)), ElementsAre(Extent{0, 4, 2}, Extent{1, 4, 1}));
}

TEST(Extents, StrideOfWholeNodesTouchesOnlyTheOuterDimension) {
  const machine::Machine machine = cluster_of(8, 4);
  EXPECT_THAT(extents_of(8, 4, machine), ElementsAre(Extent{1, 4, 1}));
  EXPECT_THAT(extents_of(16, 2, machine), ElementsAre(Extent{1, 2, 2}));
}

TEST(Extents, GroupsThatCrossNodesUnevenlyLieFlatOutside) {
  // Ranks 0-2, 3-5, 6-8: the third group has two devices in one node and one in the next.
  EXPECT_THAT(extents_of(1, 3, cluster_of(8, 3)), ElementsAre(Extent{1, 3, 1}));
  // Stride 3 does not divide 8: ranks 0 3 6 9 ...
  EXPECT_THAT(extents_of(3, 8, cluster_of(8, 3)), ElementsAre(Extent{1, 8, 1}));
}

TEST(Extents, UnevenGroupInsideAnOuterBlockStaysInsideIt) {
  // Nodes of 8, racks of 3 nodes, 2 racks: groups of 12 fill half of a rack of 24 each.
  const machine::Machine machine =
      bare_machine({dimension_of(topology::DimensionKind::switched, 8),
                    dimension_of(topology::DimensionKind::switched, 3),
                    dimension_of(topology::DimensionKind::switched, 2)});
  EXPECT_THAT(extents_of(1, 12, machine), ElementsAre(Extent{1, 12, 1}));
  EXPECT_THAT(extents_of(1, 48, machine),
              ElementsAre(Extent{0, 8, 1}, Extent{1, 3, 1}, Extent{2, 2, 1}));
}

TEST(Extents, OpenOutermostDimensionHoldsAnyGroup) {
  const machine::Machine machine = cluster_of(8, 0);
  EXPECT_THAT(extents_of(1, 1024, machine), ElementsAre(Extent{0, 8, 1}, Extent{1, 128, 1}));
  EXPECT_THAT(extents_of(64, 16, machine), ElementsAre(Extent{1, 16, 8}));
}

}  // namespace
}  // namespace orrery::collective
