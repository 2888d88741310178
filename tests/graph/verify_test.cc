// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/workload.h"
#include "pipelines.h"

namespace orrery::graph {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the builders of this test
using ::testing::HasSubstr;

TEST(Verify, AcceptsMatchingMessagesAndCollectives) {
  EXPECT_EQ(
      mistakes_of(pipeline(
          {{compute_node(1), send(kForward, 1), receive(kBackward, 1), reduce(kEnds)},
           {receive(kForward, -1), compute_node(1, {0}), send(kBackward, -1), reduce(kEnds)}})),
      "");
}

TEST(Verify, LastStageSendsForwardToTheFirst) {
  // Interleaved chunks wrap around; each stage sends one and receives one.
  EXPECT_EQ(mistakes_of(pipeline({{receive(kForward, 2), send(kForward, 1)},
                                  {receive(kForward, -1), send(kForward, 1)},
                                  {receive(kForward, -1), send(kForward, -2)}})),
            "");
}

// ---- One node at a time.

TEST(Verify, RefusesADependencyThatIsNotEarlier) {
  EXPECT_THAT(mistakes_of(pipeline({{compute_node(1, {1}), compute_node(1)}})),
              HasSubstr("stage 0, template 'only', node 0 'work': depends on a node that is not "
                        "earlier"));
  EXPECT_NE(mistakes_of(pipeline({{compute_node(1, {0})}})), "");
  EXPECT_NE(mistakes_of(pipeline({{compute_node(1, {-1})}})), "");
}

TEST(Verify, RefusesKernelsBesideTheComputeStreamAndCommunicationOnIt) {
  Node node = reduce(kAlone);
  node.stream = kComputeStream;
  EXPECT_THAT(mistakes_of(pipeline({{node}})), HasSubstr("stream that is not its own"));
  node = compute_node(1);
  node.stream = kLink;
  EXPECT_THAT(mistakes_of(pipeline({{node}})), HasSubstr("stream that is not its own"));
  node.kind = Node::Kind::wait;  // stands on any
  node.operators.clear();
  EXPECT_EQ(mistakes_of(pipeline({{node}})), "");
}

TEST(Verify, RefusesRowsThatTheTablesDoNotHave) {
  const auto mistake = [](const auto& change) {
    Node node = reduce(kAlone);
    change(node);
    return mistakes_of(pipeline({{node}}));
  };
  const std::size_t beyond = 3;
  EXPECT_THAT(mistake([&](Node& node) { node.stream = StreamIndex(beyond); }),
              HasSubstr("node 0 'reduce': is on a stream that is not there"));
  EXPECT_THAT(mistake([&](Node& node) { node.phase = PhaseIndex(beyond); }),
              HasSubstr("is in a phase that is not there"));
  EXPECT_THAT(mistake([&](Node& node) { node.group = GroupIndex(beyond); }),
              HasSubstr("names a group that is not there"));
  EXPECT_THAT(mistake([&](Node& node) { node.group = {}; }),
              HasSubstr("names a group that is not there"));
  EXPECT_THAT(mistake([&](Node& node) { node.sharers = GroupIndex(beyond); }),
              HasSubstr("names sharers that are not there"));
  EXPECT_EQ(mistake([](Node&) {}), "");
}

TEST(Verify, RefusesNegativeAndOverflowingSizes) {
  EXPECT_NE(mistakes_of(pipeline({{compute_node(-1)}})), "");
  EXPECT_NE(mistakes_of(pipeline({{compute_node(std::nan(""))}})), "");
  EXPECT_NE(mistakes_of(pipeline({{reduce(kAlone, Bytes(-1))}})), "");
  EXPECT_NE(mistakes_of(pipeline({{reduce(kAlone, Bytes::max())}})), "");
}

TEST(Verify, RefusesKernelsOfCommunication) {
  Node node = reduce(kAlone);
  node.operators = compute_node(1).operators;
  EXPECT_THAT(mistakes_of(pipeline({{node}})), HasSubstr("has operators but computes nothing"));
}

// ---- Messages.

TEST(Verify, RefusesASendWithoutReceive) {
  EXPECT_THAT(mistakes_of(pipeline({{send(kBackward, 1)}, {compute_node(1)}})),
              HasSubstr("channel 1: stage 0 sends 1 messages, stage 1 receives 0"));
  // Another channel or another peer is another flow.
  EXPECT_NE(mistakes_of(pipeline({{send(kBackward, 1)}, {receive(kForward, -1)}})), "");
}

TEST(Verify, RefusesAReceiveWithoutSend) {
  EXPECT_THAT(mistakes_of(pipeline({{compute_node(1)}, {receive(kForward, -1)}})),
              HasSubstr("stage 1 receives 1 messages of channel 0 from rank -1, which sends none"));
}

TEST(Verify, RefusesAReceiveOfAnotherSize) {
  EXPECT_THAT(
      mistakes_of(pipeline({{send(kForward, 1, 64_B)}, {receive(kForward, -1, 32_B)}})),
      HasSubstr("channel 0: message 0 from stage 0 to stage 1 has 64 bytes, its receive 32"));
}

TEST(Verify, RefusesMessagesToRanksThatAreNotThere) {
  EXPECT_THAT(mistakes_of(pipeline({{compute_node(1)}, {send(kForward, 1)}})),
              HasSubstr("stage 1 sends to rank +1, which is not there"));
  EXPECT_THAT(mistakes_of(pipeline({{receive(kForward, -1)}, {compute_node(1)}})),
              HasSubstr("from rank -1, which sends none"));
  EXPECT_THAT(mistakes_of(pipeline({{send(kForward, 0)}})),
              HasSubstr("is a message to its own rank"));
}

// ---- Collectives.

TEST(Verify, RefusesCollectivesThatStagesDoNotShare) {
  EXPECT_THAT(mistakes_of(pipeline({{reduce(kEnds)}, {compute_node(1)}})),
              HasSubstr("stage 0 and stage 1 do not issue the same collectives on ends"));
  EXPECT_THAT(mistakes_of(pipeline({{reduce(kStages, 1_B), reduce(kStages, 2_B)},
                                    {reduce(kStages, 2_B), reduce(kStages, 1_B)}})),
              HasSubstr("do not issue the same collectives on stages"));
}

TEST(Verify, RefusesACollectiveOfARankThatIsLeftOut) {
  EXPECT_THAT(
      mistakes_of(pipeline({{reduce(kEnds)}, {reduce(kEnds)}, {reduce(kEnds)}})),
      HasSubstr("stage 1, template 'only', node 0 'reduce': is a collective of ends, which does "
                "not hold rank 1"));
}

TEST(Verify, CollectivesOfOneRoleNeedNoPartner) {
  EXPECT_EQ(mistakes_of(pipeline({{reduce(kAlone)}, {compute_node(1)}})), "");
}

// ---- Listed roles and communicators.

/// Four ranks in a row; every second one has role 1.
Workload listed(std::vector<Node> even, std::vector<Node> odd) {
  Workload workload = pipeline({std::move(even), std::move(odd)});
  workload.ranks = 4;
  workload.role_map = {.digits = {}, .list = {0, 1, 0, 1}};
  for (Group& group : workload.groups) {
    group.members = {};
  }
  return workload;
}

TEST(Verify, LooksAtTheNeighboursOfEveryRankOfAListedRole) {
  EXPECT_EQ(mistakes_of(listed({send(kForward, 1)}, {receive(kForward, -1)})), "");
  // Rank 0 finds rank 1, rank 2 rank 3; behind rank 3 there is nobody.
  EXPECT_THAT(mistakes_of(listed({receive(kForward, -1)}, {send(kForward, 1)})),
              HasSubstr("stage 1 sends to rank +1, which is not there"));
}

TEST(Verify, ListedCommunicatorsHoldRanksOfAnyRole) {
  const auto with = [](std::vector<std::vector<std::int64_t>> lists) {
    Workload workload = listed({reduce(kStages, 1_B)}, {reduce(kStages, 2_B)});
    workload.groups[*kStages].members = Members::listed(std::move(lists), 4);
    return mistakes_of(workload);
  };
  EXPECT_EQ(with({{0, 2}, {3, 1}}), "");
  EXPECT_THAT(with({{0, 2}, {3}}), HasSubstr("which does not hold rank 1"));
  EXPECT_THAT(with({{0, 1}, {2, 3}}),
              HasSubstr("stage 0 and stage 1 do not issue the same collectives on stages"));
}

}  // namespace
}  // namespace orrery::graph
