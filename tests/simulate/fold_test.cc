// SPDX-License-Identifier: Apache-2.0
// Which ranks fold, rule by rule (tests/property/fold_test.cc: that folding changes no time).
#include "simulate/fold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "builder.h"
#include "machine/topology/read.h"
#include "simulate/message_fold.h"
#include "simulate/simulate.h"

namespace orrery::simulate {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the builders of this test
using ::testing::HasSubstr;

using Ranks = std::vector<std::int64_t>;

plan::RankLayout layout(std::int64_t tp, std::int64_t dp, std::int64_t pp = 1) {
  return {{{plan::Axis::tp, tp}, {plan::Axis::dp, dp}, {plan::Axis::pp, pp}}};
}

/// Returns the fold of stages that all do the same, with default algorithms.
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

TEST(Folding, GroupsThatStraddleSwitchesAlikeFold) {
  // Three ranks of tp on nodes of two: both groups have two ranks of one node and one of another.
  const Fold fold =
      fold_of(layout(3, 2), machine_of({dimension(topology::DimensionKind::switched, 2),
                                        dimension(topology::DimensionKind::switched, 3)}));
  EXPECT_EQ(fold.ranks, (Ranks{0}));
  EXPECT_TRUE(fold.report.reasons.empty());
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

/// Sixteen hosts, four on each of four leaves, that all run one collective, message by message.
Fold fold_on_leaves(graph::CollectiveKind kind, collective::CollectiveAlgorithm algorithm,
                    topology::Routing routing) {
  graph::Node node = collective_node("exchange", plan::Axis::dp, 16_MiB);
  node.collective = kind;
  const graph::Workload workload = workload_of(layout(1, 16), {{node}});
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 16)});
  machine.wires.spec = "leaf_spine:leaves=4,spines=4,hosts=4";
  machine.wires.routing = routing;
  machine.wires.graph = std::make_shared<const topology::LinkGraph>(
      topology::load_topology(machine.wires.spec, "test").value());
  collective::AlgorithmChoice algorithms;
  algorithms.fill(workload.groups.size(), algorithm);
  Binding bound(workload, machine, algorithms, PhaseChoice::with_messages);
  bound.bind_all();
  return fold_messages(workload, machine, bound, std::nullopt);
}

TEST(MessageFolding, ARingOverLeavesFoldsByLeaf) {
  // Of a leaf's four hosts the last sends to another leaf. Four leaves rotate, so every link has
  // four images, and nobody shares one.
  const Fold fold = fold_on_leaves(graph::CollectiveKind::all_reduce,
                                   collective::CollectiveAlgorithm::ring, topology::Routing::spray);
  EXPECT_EQ(fold.ranks, (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(fold.representative(14), 2);
  EXPECT_EQ(fold.report.simulated, 4);
  EXPECT_THAT(fold.report.reasons,
              ::testing::ElementsAre(HasSubstr("16 ranks of stride 1 send alike in 4 classes")));
  std::vector<topology::Hop> hops{{0, Bandwidth(1e9), Time(0)}};  // host0->leaf0
  fold.mirrors.mirror(hops);
  EXPECT_EQ(hops[0], (topology::Hop{0, Bandwidth(1e9), Time(0)}));
}

TEST(MessageFolding, SprayedAllToAllFoldsToOneRankWhoseUplinksCarryFour) {
  // Leaves rotate, and hosts within them: 16 shifts. A host's cable has 16 images, an uplink the 4
  // of the other leaves: four mirrors of a message pass it.
  const Fold fold =
      fold_on_leaves(graph::CollectiveKind::all_to_all, collective::CollectiveAlgorithm::direct,
                     topology::Routing::spray);
  EXPECT_EQ(fold.ranks, (Ranks{0}));
  EXPECT_TRUE(fold.report.reasons.empty());
  const topology::LinkGraph graph =
      topology::load_topology("leaf_spine:leaves=4,spines=4,hosts=4", "test").value();
  const auto multiplicity = [&](const std::string& name) {
    for (std::size_t link = 0; link < graph.links.size(); ++link) {
      if (graph.link_name(link) == name) {
        return fold.mirrors.multiplicity[link];
      }
    }
    return 0.0;
  };
  EXPECT_EQ(multiplicity("host5->leaf1"), 1);
  EXPECT_EQ(multiplicity("leaf1->spine2"), 4);
  EXPECT_EQ(multiplicity("spine2->leaf1"), 4);
}

TEST(MessageFolding, AHashHasNoSymmetry) {
  const Fold fold =
      fold_on_leaves(graph::CollectiveKind::all_to_all, collective::CollectiveAlgorithm::direct,
                     topology::Routing::ecmp);
  EXPECT_EQ(fold.ranks.size(), 16U);
  EXPECT_THAT(fold.report.reasons, ::testing::ElementsAre(HasSubstr("in 16 classes")));
}

/// An all-reduce over trees on eight devices of a switch of 100 GB/s, folded and rank by rank.
struct TreeRuns {
  Fold fold;
  Timeline folded;
  Timeline unfolded;
};
TreeRuns run_trees(Bytes bytes) {
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 8)});
  machine.network[0].bandwidth = 100_GBps;
  const graph::Workload workload =
      workload_of(layout(1, 8),
                  {{compute_node("work", 1_ms), collective_node("norm", plan::Axis::dp, bytes, {0}),
                    compute_node("update", 1_ms, {1})}});
  SimulateOptions options;
  options.network = NetworkModel::flow;
  options.algorithms.set(plan::Axis::dp, collective::CollectiveAlgorithm::double_binary_tree);
  Binding bound(workload, machine, options.algorithms, PhaseChoice::with_messages);
  bound.bind_all();
  TreeRuns runs{.fold = fold_messages(workload, machine, bound, std::nullopt),
                .folded = simulate(workload, machine, options).value(),
                .unfolded = {}};
  options.fold = false;
  runs.unfolded = simulate(workload, machine, options).value();
  return runs;
}

TEST(MessageFolding, ATreeThatCarriesNextToNothingRunsApart) {
  // 4 B: 16 messages of a byte each way per edge, at most three edges of a rank and tree: 96 B on
  // a link, 1 ns. Alone it takes what its messages take; nothing else is on the links.
  const TreeRuns runs = run_trees(Bytes(4));
  EXPECT_EQ(runs.fold.ranks, (Ranks{0}));
  EXPECT_EQ(runs.fold.mirrors.apart.size(), 1U);
  EXPECT_TRUE(runs.fold.report.reasons.empty());
  EXPECT_EQ(runs.folded.step_time, runs.unfolded.step_time);
  EXPECT_GT(runs.folded.step_time, 2_ms + 6_us);  // three levels up and down of 1 us each
}

TEST(MessageFolding, ATreeThatCarriesMuchDoesNotFold) {
  const TreeRuns runs = run_trees(Bytes(100'000));
  EXPECT_EQ(runs.fold.ranks.size(), 8U);
  EXPECT_TRUE(runs.fold.mirrors.apart.empty());
  EXPECT_EQ(runs.folded.step_time, runs.unfolded.step_time);
}

}  // namespace
}  // namespace orrery::simulate
