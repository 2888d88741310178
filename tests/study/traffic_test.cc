// SPDX-License-Identifier: Apache-2.0
#include "study/traffic.h"

#include <gtest/gtest.h>

#include "../simulate/builder.h"
#include "study/run.h"

namespace orrery {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the builders of this test

/// Four nodes of two devices.
Machine nodes() {
  return machine_of({dimension(DimensionKind::switched, 2), dimension(DimensionKind::switched, 4)});
}

Traffic of(const Workload& workload, const Machine& machine) {
  return traffic_of(workload, machine, {});
}

Node of_kind(Node node, CollectiveKind kind) {
  node.collective = kind;
  return node;
}

const RankLayout kEight{{{Axis::tp, 8}, {Axis::dp, 1}, {Axis::pp, 1}}};

TEST(Traffic, KernelsCountTheirBytesOnceAndOnEveryDevice) {
  // 1 ms at 1 GB/s is 1 MB; issued 3 times on 8 devices.
  const Traffic traffic = of(workload_of(kEight, {{compute("a", 1_ms)}}, 3), nodes());
  EXPECT_DOUBLE_EQ(traffic.tiers[0], 3 * 8 * 1e6);
}

TEST(Traffic, AnAllReduceSendsTwiceItsBufferButForOneShare) {
  // 8 members: 2 * 7/8 MB each, 14 MB in all. Every second hop of a ring through the nodes leaves
  // one: 7 MB in each dimension.
  const Traffic traffic =
      of(workload_of(kEight, {{collective("reduce", Axis::tp, Bytes(1'000'000))}}), nodes());
  EXPECT_DOUBLE_EQ(traffic.links[0], 7e6);
  EXPECT_DOUBLE_EQ(traffic.links[1], 7e6);
}

TEST(Traffic, ReduceScatterAndAllGatherAreAnAllReduce) {
  const auto gather = collective("a", Axis::tp, Bytes(1'000'000));
  const Traffic halves = of(workload_of(kEight, {{of_kind(gather, CollectiveKind::reduce_scatter),
                                                  of_kind(gather, CollectiveKind::all_gather)}}),
                            nodes());
  const Traffic whole = of(workload_of(kEight, {{gather}}), nodes());
  EXPECT_EQ(halves.links, whole.links);
}

TEST(Traffic, AllToAllGoesToEveryPeerAlike) {
  // 8 pieces of 125 kB each; one of the 7 peers is in the node: 8 * 125 kB inside, 6 times that
  // out.
  const auto exchange =
      of_kind(collective("a", Axis::tp, Bytes(1'000'000)), CollectiveKind::all_to_all);
  const Traffic traffic = of(workload_of(kEight, {{exchange}}), nodes());
  EXPECT_DOUBLE_EQ(traffic.links[0], 1e6);
  EXPECT_DOUBLE_EQ(traffic.links[1], 6e6);
}

TEST(Traffic, SendsGoOverTheDimensionBetweenTheStages) {
  // tp 2 fills a node; stages are nodes: 2 devices send 1 MB each over the outer switch.
  const RankLayout layout{{{Axis::tp, 2}, {Axis::dp, 1}, {Axis::pp, 4}}};
  const Traffic traffic = of(
      workload_of(layout, {{send("a", Channel::forward, Bytes(1'000'000))}, {}, {}, {}}), nodes());
  EXPECT_DOUBLE_EQ(traffic.links[0], 0);
  EXPECT_DOUBLE_EQ(traffic.links[1], 2e6);
}

TEST(Traffic, ACopyGoesThroughBothTiers) {
  Machine machine = machine_of({dimension(DimensionKind::switched, 1)});
  machine.device.memory.push_back({"host", 1_GiB, 1_GBps, Time(0)});
  Node copy;
  copy.kind = Node::Kind::copy;
  copy.stream = StepStream::to_host;
  copy.group = Axis::to_host;
  copy.bytes = Bytes(5000);
  const Traffic traffic =
      of(workload_of({{{Axis::tp, 1}, {Axis::dp, 1}, {Axis::pp, 1}}}, {{copy}}, 2), machine);
  EXPECT_DOUBLE_EQ(traffic.tiers[0], 10000);
  EXPECT_DOUBLE_EQ(traffic.tiers[1], 10000);
}

/// Ranks 0 and 4 run role 0, all others role 1, which does nothing; rows but the groups' are those
/// of a step.
Workload two_of_eight(std::vector<Node> first, Members members) {
  Workload workload = workload_of(kEight, {{}});
  workload.role_map = {.digits = {}, .list = {0, 1, 1, 1, 0, 1, 1, 1}};
  workload.roles = {{"first", 0}, {"second", 1}};
  workload.programs = {{{{"pass", std::move(first)}}}, {{{"pass", {}}}}};
  workload.source = std::make_shared<InstanceLists>(
      std::vector<std::vector<Instance>>{{Instance{}}, {Instance{}}});
  workload.groups[*GroupIndex(Axis::tp)].members = std::move(members);
  return workload;
}

TEST(Traffic, RolesHaveAsManyRanksAsTheirListSays) {
  // Two ranks, not eight / two roles: 2 MB.
  const Traffic traffic = of(two_of_eight({compute("a", 1_ms)}, {}), nodes());
  EXPECT_DOUBLE_EQ(traffic.tiers[0], 2e6);
}

TEST(Traffic, EveryListedCommunicatorLiesWhereItsMembersAre) {
  // Ranks 0 1 are in one node, 4 6 in two. Role 0 has one rank of each: each sends 1/2 of 1 MB of
  // an all-gather, one inside its node and one out of it. Once both counted where rank 0 is.
  Node gather = of_kind(collective("a", Axis::tp, Bytes(1'000'000)), CollectiveKind::all_gather);
  const Traffic traffic = of(two_of_eight({gather}, Members::listed({{0, 1}, {4, 6}}, 8)), nodes());
  EXPECT_DOUBLE_EQ(traffic.links[0], 0.5e6);
  EXPECT_DOUBLE_EQ(traffic.links[1], 0.5e6);
}

TEST(Traffic, EverySendCountsWhereItsOwnRankSendsIt) {
  // Three devices a node: 0 -> 1 stays inside the first, 2 -> 3 crosses to the second, 4 -> 5
  // stays.
  const Machine machine =
      machine_of({dimension(DimensionKind::switched, 3), dimension(DimensionKind::switched, 2)});
  const RankLayout layout{{{Axis::pp, 2}, {Axis::dp, 3}, {Axis::tp, 1}}};
  const Traffic traffic =
      of(workload_of(layout, {{send("a", Channel::forward, Bytes(1'000'000))}, {}}), machine);
  EXPECT_DOUBLE_EQ(traffic.links[0], 2e6);
  EXPECT_DOUBLE_EQ(traffic.links[1], 1e6);
}

TEST(Traffic, OfZero3IsThreeGathersAgainstOneAllReduce) {
  // ZeRO-0: an all-reduce of the gradients, 2 (p-1)/p Psi. ZeRO-3 with one microbatch: gathers of
  // the parameters forward and backward and one reduce-scatter, 3 (p-1)/p Psi. All in bf16.
  Plan plan;
  plan.dp = 8;
  plan.global_batch = 8;
  plan.grad_reduce_type = plan.compute_type;
  const auto sent = [&](int zero) {
    plan.zero = zero;
    const auto run = run_step(load_model("gpt2-xl").value(), load_machine("dgx-a100-80g").value(),
                              plan, 0, {.allow_oom = true});
    EXPECT_TRUE(run) << run.error().to_string();
    return traffic_of(run->workload, run->machine, {}).links[0];
  };
  EXPECT_NEAR(sent(3) / sent(0), 1.5, 0.02);
}

}  // namespace
}  // namespace orrery
