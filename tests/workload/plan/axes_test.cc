// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/axes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <span>

namespace orrery::plan {
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
  EXPECT_EQ(layout.members(Axis::tp).group(17), (Ranks{16, 17}));
  EXPECT_EQ(layout.members(Axis::dp).group(17), (Ranks{13, 15, 17}));
  EXPECT_EQ(layout.members(Axis::pp).group(17), (Ranks{5, 11, 17, 23}));
}

TEST(RankLayout, EmbeddingGroupIsFirstAndLastStage) {
  const RankLayout layout = layout_2_3_4();
  EXPECT_EQ(layout.members(Axis::embedding).group(5), (Ranks{5, 23}));
  EXPECT_EQ(layout.members(Axis::embedding).group(23), (Ranks{5, 23}));
  EXPECT_TRUE(layout.members(Axis::embedding).group(11).empty());
  EXPECT_EQ(layout.size(Axis::embedding), 2);
  EXPECT_EQ(layout.members(Axis::embedding).coordinate(5), 0);
  EXPECT_EQ(layout.members(Axis::embedding).coordinate(23), 1);
}

TEST(RankLayout, OfOneStageEveryRankIsAloneInItsEmbeddingGroup) {
  const RankLayout layout{{{Axis::tp, 2}, {Axis::dp, 3}, {Axis::pp, 1}}};
  EXPECT_EQ(layout.size(Axis::embedding), 1);
  EXPECT_EQ(layout.members(Axis::embedding).group(4), (Ranks{4}));
}

TEST(RankLayout, AbsentAxesHaveSizeOne) {
  const RankLayout layout{{{Axis::tp, 4}}};
  EXPECT_EQ(layout.size(Axis::dp), 1);
  EXPECT_EQ(layout.coordinate(3, Axis::dp), 0);
  EXPECT_EQ(layout.members(Axis::dp).group(3), (Ranks{3}));
}

RC_GTEST_PROP(RankLayout, CoordinatesIdentifyTheRank, ()) {
  const auto size = [] { return *rc::gen::inRange<std::int64_t>(1, 6); };
  const RankLayout layout{{{Axis::pp, size()}, {Axis::tp, size()}, {Axis::dp, size()}}};
  const std::int64_t rank = *rc::gen::inRange<std::int64_t>(0, layout.ranks());
  std::int64_t rebuilt = 0;
  for (const Axis axis : {Axis::tp, Axis::dp, Axis::pp}) {
    rebuilt = layout.with(rebuilt, axis, layout.coordinate(rank, axis));
    const Ranks group = layout.members(axis).group(rank);
    RC_ASSERT(std::ssize(group) == layout.size(axis));
    RC_ASSERT(group[static_cast<std::size_t>(layout.coordinate(rank, axis))] == rank);
  }
  RC_ASSERT(rebuilt == rank);
}

// ---- Messages of a pipeline.

RC_GTEST_PROP(RankLayout, WhatAStageSendsItsTargetReceivesFromIt, ()) {
  const auto size = [] { return *rc::gen::inRange<std::int64_t>(1, 6); };
  const RankLayout layout{{{Axis::tp, size()}, {Axis::pp, size()}, {Axis::dp, size()}}};
  const std::int64_t stages = layout.size(Axis::pp);
  const std::int64_t stage = *rc::gen::inRange<std::int64_t>(0, stages);
  for (const Named<Channel>& channel : kNames<Channel>) {
    const std::int64_t target = target_stage(channel.value, stage, stages);
    RC_ASSERT(source_stage(channel.value, target, stages) == stage);
    const std::int64_t there = layout.peer(graph::Node::Kind::send, channel.value, stage);
    RC_ASSERT(there == layout.with(0, Axis::pp, target) - layout.with(0, Axis::pp, stage));
    RC_ASSERT(layout.peer(graph::Node::Kind::receive, channel.value, target) == -there);
  }
}

TEST(RankLayout, NeighboursOfAStageAreItsStrideAway) {
  // Stages are 6 ranks apart; the last one's next is the first, 18 ranks before.
  const RankLayout layout = layout_2_3_4();
  EXPECT_EQ(layout.peer(graph::Node::Kind::send, Channel::forward, 1), 6);
  EXPECT_EQ(layout.peer(graph::Node::Kind::receive, Channel::forward, 1), -6);
  EXPECT_EQ(layout.peer(graph::Node::Kind::send, Channel::forward, 3), -18);
  EXPECT_EQ(layout.peer(graph::Node::Kind::send, Channel::mirror, 1), 6);
  EXPECT_EQ(layout.peer(graph::Node::Kind::send, Channel::mirror, 3), -18);
}

// ---- The tables of a training step.

TEST(StepWorkload, EveryEnumNamesTheRowOfItsName) {
  const graph::Workload workload = step_workload(layout_2_3_4());
  // Axes from secondary on have rows where they are used, which this layout does not.
  const auto rows = static_cast<std::size_t>(Axis::secondary);
  ASSERT_EQ(workload.groups.size(), rows);
  for (const Named<Axis>& axis : std::span(kNames<Axis>).first(rows)) {
    EXPECT_EQ(workload.group(axis.value).name, axis.name);
    EXPECT_EQ(workload.group_named(axis.name), graph::GroupIndex(axis.value));
    EXPECT_EQ(workload.group(axis.value).category, graph::CategoryIndex(exposed_of(axis.value)));
    EXPECT_EQ(workload.streams[*stream_of(axis.value)].name, axis.name);
  }
  for (const Named<StepPhase>& phase : kNames<StepPhase>) {
    EXPECT_EQ(workload.phases[*graph::PhaseIndex(phase.value)].name, phase.name);
  }
  for (const Named<Exposed>& category : kNames<Exposed>) {
    EXPECT_EQ(workload.categories[*graph::CategoryIndex(category.value)].name, category.name);
  }
  EXPECT_EQ(workload.streams[*graph::StreamIndex(StepStream::compute)].name, "compute");
  EXPECT_EQ(workload.streams[*graph::StreamIndex(StepStream::receive)].name, "receive");
  EXPECT_TRUE(workload.group_named("data").none());
}

TEST(StepWorkload, RolesAreStagesAndGroupsThoseOfTheLayout) {
  // 17 = 1 + 2 * 2 + 6 * 2: stage 2.
  const RankLayout layout = layout_2_3_4();
  const graph::Workload workload = step_workload(layout);
  EXPECT_EQ(workload.ranks, 24);
  EXPECT_EQ(workload.roles.size(), 4);
  EXPECT_EQ(workload.role(workload.role_of(17)).name, "stage 2");
  EXPECT_EQ(workload.group(Axis::dp).members, layout.members(Axis::dp));
  EXPECT_EQ(workload.group(Axis::to_host).members.size(), 1);
}

TEST(StepWorkload, AtomsAreDigitsOfAStage) {
  // dp 6 as shards of 2 inside replicas of 3; tp 2 and pp 4 around. Stages are no atom.
  RankLayout layout{{{Axis::tp, 2}, {Axis::dp, 6}, {Axis::pp, 4}}};
  layout.communicators = {{Axis::shard, {{2, 2}}}, {Axis::replica, {{3, 4}}}};
  EXPECT_EQ(graph::atoms(step_workload(layout)),
            (std::vector<graph::Digit>{{2, 1}, {2, 2}, {3, 4}}));
  // Shards of 4 out of 6 do not divide dp.
  layout.communicators = {{Axis::shard, {{4, 2}}}};
  EXPECT_EQ(graph::atoms(step_workload(layout)), std::nullopt);
}

}  // namespace
}  // namespace orrery::plan
