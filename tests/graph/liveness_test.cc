// SPDX-License-Identifier: Apache-2.0
#include "graph/liveness.h"

#include <gtest/gtest.h>

#include "graph/workload.h"

namespace orrery::graph {
namespace {

using Lifetime = Tensor::Lifetime;

constexpr MemoryIndex kKept{std::size_t{0}};
constexpr MemoryIndex kWork{std::size_t{1}};

Allocation held(MemoryIndex memory, Bytes bytes, std::size_t first, std::size_t last,
                Lifetime lifetime = Lifetime::instance) {
  return {.name = "",
          .memory = memory,
          .bytes = bytes,
          .first = first,
          .last = last,
          .lifetime = lifetime};
}

TEST(Liveness, TheFullestMomentIsWhereMostOverlaps) {
  // Moments 0, 1, 2 hold 3, 3 + 5, 5 bytes.
  const std::vector<Allocation> two{held(kKept, 3_B, 0, 1), held(kWork, 5_B, 1, 2)};
  const Liveness life = liveness(two, 3);
  EXPECT_EQ(life.moment, 1U);
  EXPECT_EQ(life.most_total, 8_B);
  EXPECT_EQ(life.most[kKept], 3_B);
  EXPECT_EQ(life.highest[kWork], 5_B);
  EXPECT_EQ(life.change, MemoryBytes{});
}

TEST(Liveness, OfRowsOnTheirOwnMayBeHighestElsewhere) {
  // kKept: 4 at moment 0, 1 at moment 1; kWork: 5 at moment 1, which has 6 in all.
  const std::vector<Allocation> three{held(kKept, 4_B, 0, 0), held(kKept, 1_B, 1, 1),
                                      held(kWork, 5_B, 1, 1)};
  const Liveness life = liveness(three, 2);
  EXPECT_EQ(life.most_total, 6_B);
  EXPECT_EQ(life.most[kKept], 1_B);
  EXPECT_EQ(life.highest[kKept], 4_B);
}

TEST(Liveness, WhatLeavesStaysAndWhatEntersGoes) {
  // 7 bytes come at moment 1 and stay; 2 are there from the start until moment 0 is over, which
  // the level counts already: 0, then -2 + 7.
  const std::vector<Allocation> both{held(kKept, 7_B, 1, 0, Lifetime::leaves),
                                     held(kKept, 2_B, 0, 0, Lifetime::enters)};
  const Liveness life = liveness(both, 2);
  EXPECT_EQ(life.most_total, 5_B);
  EXPECT_EQ(life.moment, 1U);
  EXPECT_EQ(life.change[kKept], 5_B);
}

TEST(Liveness, WhatLeavesAfterTheLastMomentIsHeldByNone) {
  const Liveness life = liveness(std::vector{held(kKept, 7_B, 2, 0, Lifetime::leaves)}, 2);
  EXPECT_EQ(life.most_total, 0_B);
  EXPECT_EQ(life.change[kKept], 7_B);
}

// A forward of two blocks that keep 10 each, its backward that frees them; 3 and 5 beside each.
const std::vector<Allocation> kForwardHeld{held(kKept, 10_B, 0, 0, Lifetime::leaves),
                                           held(kKept, 10_B, 1, 0, Lifetime::leaves),
                                           held(kWork, 3_B, 0, 0), held(kWork, 3_B, 1, 1)};
const std::vector<Allocation> kBackwardHeld{held(kKept, 10_B, 0, 0, Lifetime::enters),
                                            held(kKept, 10_B, 0, 1, Lifetime::enters),
                                            held(kWork, 5_B, 0, 0), held(kWork, 5_B, 1, 1)};

TEST(Liveness, OneInstanceThenAnother) {
  // All of the forward, 20, is there when the backward begins: 25, at the third moment.
  Liveness both = liveness(kForwardHeld, 2);
  both.then(liveness(kBackwardHeld, 2));
  EXPECT_EQ(both.most_total, 25_B);
  EXPECT_EQ(both.moment, 2U);
  EXPECT_EQ(both.moments, 4U);
  EXPECT_EQ(both.change, MemoryBytes{});
  EXPECT_EQ(both.highest[kKept], 20_B);
  EXPECT_EQ(both.highest[kWork], 5_B);
}

TEST(Liveness, OneInstanceBesideAnotherThatIsNeverBehind) {
  // The backward begins with 5, then -10 + 5. First forward block: 10 + 3 with 5: 18; second, when
  // the backward is in its own second: 20 + 3 - 5: 18.
  const Liveness beside = concurrent_liveness(kForwardHeld, 2, kBackwardHeld, 2);
  EXPECT_EQ(beside.most_total, 18_B);
  EXPECT_EQ(beside.moment, 0U);
  EXPECT_EQ(beside.change, MemoryBytes{});
  // Heavier at the second of two that run alone: 3 + 10 of the forward's first beside it.
  const std::vector<Allocation> late{held(kWork, 50_B, 1, 1)};
  EXPECT_EQ(concurrent_liveness(kForwardHeld, 2, late, 2).most_total, 73_B);
  EXPECT_EQ(concurrent_liveness(kForwardHeld, 2, late, 2).moment, 1U);
  EXPECT_EQ(concurrent_liveness(kForwardHeld, 2, {}, 0).most_total,
            liveness(kForwardHeld, 2).most_total);
  EXPECT_EQ(concurrent_liveness({}, 0, kBackwardHeld, 2).most_total,
            liveness(kBackwardHeld, 2).most_total);
}

TEST(MemoryLevel, FollowsWhatLeavesAndEnters) {
  // State 10; two forwards keep 3 each and hold 2 beside; a backward frees one again.
  MemoryBytes state;
  state[kWork] = 10_B;
  MemoryLevel level(state);
  const Liveness forward =
      liveness(std::vector{held(kKept, 3_B, 0, 0, Lifetime::leaves), held(kWork, 2_B, 0, 0)}, 1);
  const Liveness backward = liveness(std::vector{held(kKept, 3_B, 0, 0, Lifetime::enters)}, 1);
  EXPECT_EQ(level.run(forward).total(), 15_B);
  EXPECT_EQ(level.run(forward).total(), 18_B);
  EXPECT_EQ(level.run(backward).total(), 16_B);
  EXPECT_EQ(level.level().total(), 13_B);
  EXPECT_EQ(level.highest()[kKept], 6_B);
  level.skip(backward, 1);
  EXPECT_EQ(level.level(), state);
}

TEST(MemoryLevel, CountsASharedAllocationOnceWhileAnyoneHasIt) {
  Allocation parameters = held(kWork, 5_B, 0, 0, Lifetime::leaves);
  parameters.shared = 1;
  const Liveness forward = liveness(std::vector{parameters}, 1);
  parameters.lifetime = Lifetime::enters;
  const Liveness backward = liveness(std::vector{parameters}, 1);
  MemoryLevel level({});
  EXPECT_EQ(level.run(forward).total(), 5_B);
  EXPECT_EQ(level.run(forward).total(), 5_B);
  EXPECT_EQ(level.run(backward).total(), 5_B);
  EXPECT_EQ(level.level().total(), 5_B);
  level.run(backward);
  EXPECT_EQ(level.level().total(), 0_B);
}

TEST(MemoryLevel, LowerTiersAreCountedApart) {
  Allocation away = held(kKept, 4_B, 0, 0, Lifetime::leaves);
  away.tier = 1;
  const Liveness forward = liveness(std::vector{away}, 1);
  MemoryLevel level({}, {1_B, 0_B, 0_B});
  level.run(forward);
  level.run(forward);
  EXPECT_EQ(level.level().total(), 0_B);
  EXPECT_EQ(level.most_lower()[0], 9_B);
}

TEST(Liveness, MomentsOfATemplateAreItsOperators) {
  // A kernel of two operators: the first writes 3 bytes that the second reads, which writes 4 for
  // the wait behind it: 3, 3 + 4, 4.
  Template t;
  t.tensors = {{.name = "a", .bytes = 3_B, .layout = {}, .memory = kWork},
               {.name = "b", .bytes = 4_B, .layout = {}, .memory = kWork},
               {.name = "value", .bytes = 9_B, .layout = {}, .memory = {}}};
  Node kernel;
  kernel.operators.resize(2);
  kernel.writes = {{0, 0}, {1, 1}, {2, 1}};
  kernel.reads = {{0, 1}};
  Node wait;
  wait.kind = Node::Kind::wait;
  wait.reads = {{1, 0}, {2, 0}};
  t.nodes = {kernel, wait};
  const Liveness life = liveness(t);
  EXPECT_EQ(life.moments, 3U);
  EXPECT_EQ(life.moment, 1U);
  EXPECT_EQ(life.most_total, 7_B);
}

// ---- verify()

/// One role with two streams: a kernel, then a copy on the other stream.
Workload two_streams() {
  Workload workload;
  workload.roles = {{.name = "role"}};
  workload.phases = {{"phase", ""}};
  workload.categories = {{"exposed", ""}};
  workload.groups = {{"copies", "", {}, CategoryIndex(std::size_t{0})}};
  workload.streams = {{"compute", "", Order::issue}, {"copy", "", Order::issue}};
  workload.memory = {{"memory", ""}};
  Node kernel;
  kernel.operators.resize(1);
  kernel.writes = {{0, 0}};
  Node copy;
  copy.kind = Node::Kind::copy;
  copy.stream = StreamIndex(std::size_t{1});
  copy.group = GroupIndex(std::size_t{0});
  copy.reads = {{0, 0}};
  Template t;
  t.name = "t";
  t.nodes = {kernel, copy};
  t.tensors = {{.name = "", .bytes = 1_B, .layout = {}, .memory = {}}};
  workload.programs = {{{t}}};
  workload.source =
      std::make_shared<InstanceLists>(std::vector<std::vector<Instance>>{{Instance{}}});
  return workload;
}

Template& only(Workload& workload) {
  return workload.programs[0].templates[0];
}

void expect_mistake(const Workload& workload, const std::string& part) {
  const auto verified = verify(workload);
  ASSERT_FALSE(verified) << "expected: " << part;
  EXPECT_NE(verified.error().to_string().find(part), std::string::npos)
      << verified.error().to_string();
}

TEST(VerifyTensors, AReaderWaitsForTheWriter) {
  Workload workload = two_streams();
  expect_mistake(workload, "node 1 '': reads what node 0 writes and does not wait for it");
  only(workload).nodes[1].after = {0};
  EXPECT_TRUE(verify(workload));
}

TEST(VerifyTensors, AReaderMayWaitForSomethingLaterOfTheWritersStream) {
  Workload workload = two_streams();
  Node second;
  second.operators.resize(1);
  only(workload).nodes.insert(only(workload).nodes.begin() + 1, second);
  only(workload).nodes[2].after = {1};
  EXPECT_TRUE(verify(workload));
}

TEST(VerifyTensors, AllocationsSayNothingOfOrder) {
  Workload workload = two_streams();
  only(workload).tensors[0].memory = MemoryIndex(std::size_t{0});
  EXPECT_TRUE(verify(workload));
  only(workload).tensors[0].memory = MemoryIndex(std::size_t{1});
  expect_mistake(workload, "tensor 0 '': counts as a kind of memory that is not there");
}

TEST(VerifyTensors, NobodyReadsWhatNothingHasWritten) {
  Workload workload = two_streams();
  only(workload).nodes[0].writes.clear();
  expect_mistake(workload, "reads what nothing has written");
}

TEST(VerifyTensors, TensorsAndTheirRowsAreThere) {
  Workload workload = two_streams();
  only(workload).nodes[1].reads = {{1, 0}};
  expect_mistake(workload, "uses a tensor that is not there");
  workload = two_streams();
  only(workload).nodes[1].after = {0};
  only(workload).tensors[0].layout = {{.group = GroupIndex(std::size_t{3})}};
  expect_mistake(workload, "is held by a group that is not there");
  workload = two_streams();
  only(workload).nodes[1].after = {0};
  only(workload).tensors[0].bytes = Bytes(-1);
  expect_mistake(workload, "has a negative or overflowing size");
  workload = two_streams();
  only(workload).nodes[1].after = {0};
  only(workload).tensors[0].lifetime = Lifetime::leaves;
  expect_mistake(workload, "outlives its instance but is no allocation");
}

}  // namespace
}  // namespace orrery::graph
