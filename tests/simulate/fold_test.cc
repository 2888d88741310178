// SPDX-License-Identifier: Apache-2.0
// Which ranks fold, rule by rule (tests/property/fold_test.cc: that folding changes no time).
#include "simulate/fold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "builder.h"

namespace orrery::simulate {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the builders of this test
using ::testing::HasSubstr;

using Ranks = std::vector<std::int64_t>;

plan::RankLayout layout(std::int64_t tp, std::int64_t dp, std::int64_t pp = 1) {
  return {{{plan::Axis::tp, tp}, {plan::Axis::dp, dp}, {plan::Axis::pp, pp}}};
}

/// Of stages that all do the same, with default algorithms.
Fold fold_of(const plan::RankLayout& ranks, const machine::Machine& machine,
             const std::vector<graph::Node>& nodes = {compute_node("work", 1_ms)}) {
  const std::vector<std::vector<graph::Node>> stages(
      static_cast<std::size_t>(ranks.size(plan::Axis::pp)), nodes);
  const graph::Workload workload = workload_of(ranks, stages);
  const collective::AlgorithmChoice algorithms;
  Binding bound(workload, machine, algorithms);
  bound.bind_all();
  return fold_ranks(workload, machine, bound, std::nullopt);
}

TEST(Folding, OneRankPerStageStaysOnSwitches) {
  // tp 2 x dp 4 x pp 2 on nodes of 2: rank 0 stands for 0..7, rank 8 for the others.
  const Fold fold =
      fold_of(layout(2, 4, 2), machine_of({dimension(topology::DimensionKind::switched, 2),
                                           dimension(topology::DimensionKind::switched, 8)}));
  EXPECT_EQ(fold.ranks, (Ranks{0, 8}));
  EXPECT_EQ(fold.representative(7), 0);
  EXPECT_EQ(fold.representative(13), 8);
  EXPECT_TRUE(fold.report.reasons.empty());
  EXPECT_EQ(fold.report.ranks, 16);
  EXPECT_EQ(fold.report.simulated, 2);
}

TEST(Folding, OfARingOnlyTheOutermostPartFolds) {
  // tp pairs in a ring of 4: ranks 0 and 1 have a neighbour of their own pair on different sides.
  // dp rotates the ring by 2, which maps pairs onto pairs.
  const Fold fold =
      fold_of(layout(2, 2), machine_of({dimension(topology::DimensionKind::ring, 4)}));
  EXPECT_EQ(fold.ranks, (Ranks{0, 1}));
  ASSERT_EQ(fold.report.reasons.size(), 1U);
  EXPECT_THAT(fold.report.reasons[0], HasSubstr("tp covers 2 of the 4 devices of ring"));
}

TEST(Folding, MeshesDoNotFold) {
  const Fold fold =
      fold_of(layout(1, 4), machine_of({dimension(topology::DimensionKind::mesh, 4)}));
  EXPECT_EQ(fold.ranks, (Ranks{0, 1, 2, 3}));
  ASSERT_EQ(fold.report.reasons.size(), 1U);
  EXPECT_THAT(fold.report.reasons[0], HasSubstr("whose ends have one neighbour less"));
}

TEST(Folding, OneDigitThatStraddlesADimensionKeepsAllRanks) {
  // Three ranks of tp on nodes of two: no shift keeps who shares a node with whom.
  const Fold fold =
      fold_of(layout(3, 2), machine_of({dimension(topology::DimensionKind::switched, 2),
                                        dimension(topology::DimensionKind::switched, 3)}));
  EXPECT_EQ(fold.ranks.size(), 6U);
  ASSERT_EQ(fold.report.reasons.size(), 1U);
  EXPECT_THAT(fold.report.reasons[0], HasSubstr("straddles"));
}

TEST(Folding, ABroadcastKeepsTheMembersOfItsGroup) {
  // Over dp; tp still folds.
  graph::Node broadcast = collective_node("parameters", plan::Axis::dp, 64_KiB);
  broadcast.collective = graph::CollectiveKind::broadcast;
  const Fold fold = fold_of(layout(2, 2),
                            machine_of({dimension(topology::DimensionKind::switched, 2),
                                        dimension(topology::DimensionKind::switched, 2)}),
                            {broadcast});
  EXPECT_EQ(fold.ranks, (Ranks{0, 2}));
  ASSERT_EQ(fold.report.reasons.size(), 1U);
  EXPECT_THAT(fold.report.reasons[0], HasSubstr("whose ranks have different neighbours"));
}

}  // namespace
}  // namespace orrery::simulate
