// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

namespace orrery::plan {
namespace {

using testing::HasSubstr;
using Ranks = std::vector<std::int64_t>;

TEST(Layout, ContextParallelRanksStandNextToTensorParallelOnes) {
  const RankLayout layout = layout_of({.tp = 2, .pp = 2, .dp = 3, .cp = 4});
  EXPECT_EQ(layout.ranks(), 48);
  EXPECT_EQ(layout.members(Axis::tp).group(0), (Ranks{0, 1}));
  EXPECT_EQ(layout.members(Axis::cp).group(0), (Ranks{0, 2, 4, 6}));
  // Gradients are summed over dp x cp = 12 ranks, two apart.
  EXPECT_EQ(layout.size(Axis::dp), 12);
  EXPECT_EQ(layout.members(Axis::dp).group(1).back(), 23);
  EXPECT_EQ(layout.members(Axis::pp).group(0), (Ranks{0, 24}));
}

TEST(Layout, EveryOrderOfTheAxesIsUnderstood) {
  Plan plan{.tp = 2, .pp = 3, .dp = 5};
  for (const char* order :
       {"tp-dp-pp", "tp-pp-dp", "dp-tp-pp", "dp-pp-tp", "pp-tp-dp", "pp-dp-tp"}) {
    plan.order = order;
    const RankLayout layout = layout_of(plan);
    EXPECT_EQ(layout.ranks(), 30) << order;
    EXPECT_EQ(layout.axes.front().axis == Axis::pp ? layout.stride(Axis::pp) : 1, 1) << order;
    EXPECT_EQ(layout.members(Axis::dp).group(0).size(), 5U) << order;
  }
  plan.order = "pp-dp-tp";  // pp 3, then dp 5, then tp 2
  EXPECT_EQ(layout_of(plan).members(Axis::tp).group(0), (Ranks{0, 15}));
}

TEST(Layout, OrdersThatMissAnAxisAreRefused) {
  Plan plan{.tp = 2, .pp = 2, .order = "tp-dp"};
  EXPECT_THAT(layout_mistakes(plan).to_string(), HasSubstr("an order that names pp"));
  plan.order = "tp-tp-dp-pp";
  EXPECT_THAT(layout_mistakes(plan).to_string(), HasSubstr("every axis once"));
  plan.order = "tp,dp,pp";
  EXPECT_THAT(layout_mistakes(plan).to_string(), HasSubstr("such as 'tp-cp-dp-pp'"));
  plan.order = "tp-cp-ep-dp-pp";  // as Megatron-LM writes it
  EXPECT_TRUE(layout_mistakes(plan).empty());
}

TEST(Layout, ExpertsTileTheRanksOfAStageOnceMore) {
  // tp 2, dp 8, two stages; etp 1, ep 4: 16 ranks of a stage = ep 4 x edp 4.
  const RankLayout layout = layout_of({.tp = 2, .pp = 2, .dp = 8, .ep = 4, .etp = 1}, true);
  EXPECT_EQ(layout.size(Axis::etp), 1);
  EXPECT_EQ(layout.members(Axis::ep).group(5), (Ranks{4, 5, 6, 7}));
  EXPECT_EQ(layout.members(Axis::edp).group(5), (Ranks{1, 5, 9, 13}));
  EXPECT_EQ(layout.members(Axis::ep).group(17), (Ranks{16, 17, 18, 19}));
  // Without its own degrees an expert lies as the dense layers do.
  const RankLayout same = layout_of({.tp = 2, .dp = 8}, true);
  EXPECT_EQ(same.members(Axis::etp).group(0), same.members(Axis::tp).group(0));
  EXPECT_EQ(same.members(Axis::edp).group(0), same.members(Axis::dp).group(0));
}

TEST(Layout, ExpertsOfAStageStayInItWhenAxesOfSizeOneStandBeforePp) {
  // Ranks 0, 2, 4, 6 are stage 0. Once groups of ep held both stages, which then waited for each
  // other's tokens.
  const RankLayout layout = layout_of({.pp = 2, .dp = 4, .ep = 2, .order = "tp-cp-pp-dp"}, true);
  EXPECT_EQ(layout.members(Axis::ep).group(0), (Ranks{0, 2}));
  EXPECT_EQ(layout.members(Axis::edp).group(1), (Ranks{1, 5}));
}

TEST(Layout, ShardsAreInnermostRanksOfDp) {
  // n = 16 ranks two apart: 2 share parameters, 4 gradients, 8 optimizer states.
  const Plan plan{
      .tp = 2, .dp = 16, .zero = 3, .shard_params = 2, .shard_grads = 4, .shard_optimizer = 8};
  EXPECT_TRUE(layout_mistakes(plan).empty());
  const RankLayout layout = layout_of(plan);
  EXPECT_EQ(layout.members(Axis::shard).group(0), (Ranks{0, 2}));
  EXPECT_EQ(layout.members(Axis::grad_shard).group(0), (Ranks{0, 2, 4, 6}));
  EXPECT_EQ(layout.members(Axis::optimizer_shard).group(0), (Ranks{0, 8}));
  EXPECT_EQ(layout.members(Axis::replica).group(0), (Ranks{0, 16}));
  EXPECT_EQ(layout.members(Axis::update).group(0), (Ranks{0, 4, 8, 12}));
}

TEST(Layout, ShardsThatDoNotNestAreRefused) {
  const auto reasons = [](const Plan& plan) { return layout_mistakes(plan).to_string(); };
  EXPECT_THAT(reasons({.dp = 8, .zero = 3, .shard_params = 3}),
              HasSubstr("shard_params: found '3', expected a divisor of dp x cp = 8"));
  EXPECT_THAT(reasons({.dp = 8, .zero = 1, .shard_params = 2}),
              HasSubstr("shard_params: found '2', expected 0, or zero of 3 or more"));
  EXPECT_THAT(reasons({.dp = 12, .zero = 3, .shard_params = 4, .shard_optimizer = 6}),
              HasSubstr("a divisor of shard_optimizer = 6"));
  EXPECT_THAT(reasons({.dp = 4, .ep = 3, .etp = 1}), HasSubstr("ep: found '3'"));
  EXPECT_THAT(reasons({.tp = 2, .pp = 2, .dp = 2, .ep = 2, .etp = 1, .order = "tp-pp-dp"}),
              HasSubstr("pp as the innermost or outermost axis"));
}

RC_GTEST_PROP(LayoutProperty, EveryGroupOfACommunicatorHoldsEachOfItsRanksOnce, ()) {
  const auto size = [] { return *rc::gen::element<std::int64_t>(1, 2, 4); };
  Plan plan{.tp = size(), .pp = size(), .dp = size(), .cp = size(), .ep = size(), .etp = 1};
  plan.order = *rc::gen::element<std::string>("tp-cp-dp-pp", "tp-cp-pp-dp", "dp-tp-cp-pp",
                                              "pp-tp-cp-dp", "cp-pp-tp-dp");
  plan.zero = 3;
  plan.shard_params = std::min(size(), plan.dp * plan.cp);
  RC_PRE(layout_mistakes(plan).empty());
  const RankLayout layout = layout_of(plan, true);
  for (const auto& axis : kNames<Axis>) {
    if (axis.value == Axis::embedding) {
      continue;
    }
    std::vector<int> seen(static_cast<std::size_t>(layout.ranks()));
    for (std::int64_t rank = 0; rank < layout.ranks(); ++rank) {
      const Ranks group = layout.members(axis.value).group(rank);
      RC_ASSERT(std::ssize(group) == layout.size(axis.value));
      RC_ASSERT(group[static_cast<std::size_t>(layout.coordinate(rank, axis.value))] == rank);
      for (const std::int64_t member : group) {
        const bool same_stage =
            layout.coordinate(member, Axis::pp) == layout.coordinate(rank, Axis::pp);
        RC_ASSERT(same_stage || axis.value == Axis::pp);
      }
      if (group.front() == rank) {
        for (const std::int64_t member : group) {
          ++seen[static_cast<std::size_t>(member)];
        }
      }
    }
    RC_ASSERT(seen == std::vector<int>(seen.size(), 1));
  }
}

RC_GTEST_PROP(LayoutProperty, AtomsOfAllCommunicatorsMultiplyToTheRanksOfAStage, ()) {
  const auto size = [] { return *rc::gen::element<std::int64_t>(1, 2, 4); };
  const Plan plan{.tp = size(), .pp = size(), .dp = size(), .cp = size(), .ep = size(), .etp = 1};
  RC_PRE(layout_mistakes(plan).empty());
  const auto digits = graph::atoms(step_workload(layout_of(plan, true)));
  RC_ASSERT(digits.has_value());
  std::int64_t product = 1;
  for (const graph::Digit& atom : *digits) {
    product *= atom.size;
  }
  RC_ASSERT(product == plan.tp * plan.cp * plan.dp);
}

}  // namespace
}  // namespace orrery::plan
