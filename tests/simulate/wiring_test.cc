// SPDX-License-Identifier: Apache-2.0
#include "simulate/wiring.h"

#include <gtest/gtest.h>

#include "builder.h"

namespace orrery::simulate {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the builders of this test

using Indices = std::vector<RankIndex>;
using Ranks = std::vector<std::int64_t>;

/// tp 2, dp 2, two stages on a switch: ranks 0..3 are stage 0.
const plan::RankLayout kEight{{{plan::Axis::tp, 2}, {plan::Axis::dp, 2}, {plan::Axis::pp, 2}}};

/// A workload, bound, and its wiring; everything that refers to one another.
struct Wired {
  graph::Workload workload;
  machine::Machine machine;
  collective::AlgorithmChoice algorithms;
  Binding bound;
  Fold fold;
  Wiring wiring;

  Wired(graph::Workload made, bool folds)
      : workload(std::move(made)),
        machine(machine_of({dimension(topology::DimensionKind::switched, workload.ranks)})),
        bound(workload, machine, algorithms),
        fold(fold_after_binding(folds)),
        wiring(workload, bound, fold) {}

  Fold fold_after_binding(bool folds) {
    bound.bind_all();
    return fold_ranks(workload, machine, bound,
                      folds ? std::nullopt : std::optional<std::string>("every rank is wanted"));
  }
  /// Simulated members of the rank's communicator.
  Indices members(RankIndex rank, plan::Axis axis) const {
    return wiring.communicator(wiring.communicator_of(rank, axis)).members;
  }
};

TEST(Wiring, ARankIsInOneCommunicatorOfEveryGroup) {
  const Wired all(workload_of(kEight, {{}, {}}), false);
  EXPECT_EQ(all.members(3, plan::Axis::tp), (Indices{2, 3}));
  EXPECT_EQ(all.members(3, plan::Axis::dp), (Indices{1, 3}));
  EXPECT_EQ(all.members(3, plan::Axis::pp), (Indices{3, 7}));
  // Four pairs each of tp, dp, pp and embedding (the first and the last stage).
  EXPECT_EQ(all.wiring.communicator_count(), 16U);
  EXPECT_EQ(all.wiring.communicator_of(3, plan::Axis::cp), Wiring::kNone);
}

TEST(Wiring, OfAFoldedGroupOnlyTheSimulatedMemberCounts) {
  // Ranks 0 and 4 stand for their stages.
  const Wired folded(workload_of(kEight, {{}, {}}), true);
  EXPECT_EQ(folded.wiring.ranks(), (Ranks{0, 4}));
  EXPECT_EQ(folded.members(1, plan::Axis::tp), (Indices{1}));
  EXPECT_EQ(folded.members(1, plan::Axis::pp), (Indices{0, 1}));
}

TEST(Wiring, ARankThatIsLeftOutHasNoCommunicator) {
  const plan::RankLayout layout{{{plan::Axis::tp, 1}, {plan::Axis::dp, 1}, {plan::Axis::pp, 4}}};
  const Wired all(workload_of(layout, {{}, {}, {}, {}}), false);
  EXPECT_EQ(all.members(3, plan::Axis::embedding), (Indices{0, 3}));
  EXPECT_EQ(all.wiring.communicator_of(1, plan::Axis::embedding), Wiring::kNone);
}

TEST(Wiring, EveryChannelEndsInAMailboxOfItsOwn) {
  const Wired all(
      workload_of(kEight,
                  {{send("a", plan::Channel::forward, 64_B), receive("b", plan::Channel::backward),
                    send("c", plan::Channel::returning_backward, 64_B)},
                   {receive("a", plan::Channel::forward), send("b", plan::Channel::backward, 64_B),
                    receive("c", plan::Channel::returning_backward)}}),
      false);
  // Each of the 4 + 4 ranks: two sends and one receive, or one and two.
  EXPECT_EQ(all.wiring.routes().size(), 12U);
  EXPECT_EQ(all.wiring.mailbox_count(), 12U);
  const FlowRoute& a = all.wiring.route_of(1, all.bound.flow(0, {true, 4, 0}));
  EXPECT_EQ(a.from, 1);
  EXPECT_EQ(a.to, 5);
  EXPECT_EQ(a.target, 5U);
  const auto channel = static_cast<std::uint32_t>(plan::Channel::returning_backward);
  EXPECT_EQ(a.mailbox, all.wiring.mailbox_of(5, all.bound.flow(1, {false, -4, 0})));
  EXPECT_NE(a.mailbox, all.wiring.mailbox_of(5, all.bound.flow(1, {false, -4, channel})));
}

TEST(Wiring, AMessageToAFoldedRankArrivesAtItsRepresentative) {
  // Every rank of stage 0 sends to the neighbour of its counterpart: 0 to 5, for which 4 stands.
  // The route on the machine is that to 5.
  graph::Node out = send("a", plan::Channel::forward, 64_B);
  graph::Node in = receive("a", plan::Channel::forward);
  graph::Workload workload = workload_of(kEight, {{out}, {in}});
  workload.programs[0].templates[0].nodes[0].peer = 5;
  workload.programs[1].templates[0].nodes[0].peer = -5;
  const Wired folded(std::move(workload), true);
  ASSERT_EQ(folded.wiring.routes().size(), 1U);
  const FlowRoute& route = folded.wiring.routes()[0];
  EXPECT_EQ(route.from, 0);
  EXPECT_EQ(route.to, 5);
  EXPECT_EQ(folded.wiring.ranks()[route.target], 4);
}

}  // namespace
}  // namespace orrery::simulate
