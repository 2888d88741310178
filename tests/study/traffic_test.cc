// SPDX-License-Identifier: Apache-2.0
#include "study/traffic.h"

#include <gtest/gtest.h>

#include "../simulate/builder.h"
#include "study/run.h"

namespace orrery::study {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the builders of this test

/// Four nodes of two devices.
machine::Machine nodes() {
  return machine_of({dimension(topology::DimensionKind::switched, 2),
                     dimension(topology::DimensionKind::switched, 4)});
}

Traffic traffic_on(const graph::Workload& workload, const machine::Machine& machine) {
  return traffic_of(workload, machine, {});
}

graph::Node of_kind(graph::Node node, graph::CollectiveKind kind) {
  node.collective = kind;
  return node;
}

const plan::RankLayout kEight{{{plan::Axis::tp, 8}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}};

TEST(Traffic, KernelsCountTheirBytesOnceAndOnEveryDevice) {
  // 1 ms at 1 GB/s is 1 MB; issued 3 times on 8 devices.
  const Traffic traffic =
      traffic_on(testing::workload_of(kEight, {{compute_node("a", 1_ms)}}, 3), nodes());
  EXPECT_DOUBLE_EQ(traffic.tiers[0], 3 * 8 * 1e6);
}

TEST(Traffic, AnAllReduceSendsTwiceItsBufferButForOneShare) {
  // 8 members: 2 * 7/8 MB each, 14 MB in all. Every second hop of a ring through the nodes leaves
  // one: 7 MB in each dimension.
  const Traffic traffic = traffic_on(
      testing::workload_of(kEight, {{collective_node("reduce", plan::Axis::tp, Bytes(1'000'000))}}),
      nodes());
  EXPECT_DOUBLE_EQ(traffic.links[0], 7e6);
  EXPECT_DOUBLE_EQ(traffic.links[1], 7e6);
}

TEST(Traffic, ReduceScatterAndAllGatherAreAnAllReduce) {
  const auto gather = collective_node("a", plan::Axis::tp, Bytes(1'000'000));
  const Traffic halves = traffic_on(
      testing::workload_of(kEight, {{of_kind(gather, graph::CollectiveKind::reduce_scatter),
                                     of_kind(gather, graph::CollectiveKind::all_gather)}}),
      nodes());
  const Traffic whole = traffic_on(testing::workload_of(kEight, {{gather}}), nodes());
  EXPECT_EQ(halves.links, whole.links);
}

TEST(Traffic, AllToAllGoesToEveryPeerAlike) {
  // 8 pieces of 125 kB each; one of the 7 peers is in the node: 8 * 125 kB inside, 6 times that
  // out.
  const auto exchange = of_kind(collective_node("a", plan::Axis::tp, Bytes(1'000'000)),
                                graph::CollectiveKind::all_to_all);
  const Traffic traffic = traffic_on(testing::workload_of(kEight, {{exchange}}), nodes());
  EXPECT_DOUBLE_EQ(traffic.links[0], 1e6);
  EXPECT_DOUBLE_EQ(traffic.links[1], 6e6);
}

TEST(Traffic, SendsGoOverTheDimensionBetweenTheStages) {
  // tp 2 fills a node; stages are nodes: 2 devices send 1 MB each over the outer switch.
  const plan::RankLayout layout{{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 4}}};
  const Traffic traffic =
      traffic_on(testing::workload_of(
                     layout, {{send("a", plan::Channel::forward, Bytes(1'000'000))}, {}, {}, {}}),
                 nodes());
  EXPECT_DOUBLE_EQ(traffic.links[0], 0);
  EXPECT_DOUBLE_EQ(traffic.links[1], 2e6);
}

TEST(Traffic, ACopyGoesThroughBothTiers) {
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 1)});
  machine.device.memory.push_back({"host", 1_GiB, 1_GBps, Time(0)});
  graph::Node copy;
  copy.kind = graph::Node::Kind::copy;
  copy.stream = plan::StepStream::to_host;
  copy.group = plan::Axis::to_host;
  copy.bytes = Bytes(5000);
  const Traffic traffic = traffic_on(
      testing::workload_of({{{plan::Axis::tp, 1}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}},
                           {{copy}}, 2),
      machine);
  EXPECT_DOUBLE_EQ(traffic.tiers[0], 10000);
  EXPECT_DOUBLE_EQ(traffic.tiers[1], 10000);
}

/// Ranks 0 and 4 run role 0, all others role 1, which does nothing; rows but the groups' are those
/// of a step.
graph::Workload two_of_eight(std::vector<graph::Node> first, graph::Members members) {
  graph::Workload workload = testing::workload_of(kEight, {{}});
  workload.role_map = {.digits = {}, .list = {0, 1, 1, 1, 0, 1, 1, 1}};
  workload.roles = {{"first", 0}, {"second", 1}};
  workload.programs = {{{{"pass", std::move(first)}}}, {{{"pass", {}}}}};
  workload.source = std::make_shared<graph::InstanceLists>(
      std::vector<std::vector<graph::Instance>>{{graph::Instance{}}, {graph::Instance{}}});
  workload.groups[*graph::GroupIndex(plan::Axis::tp)].members = std::move(members);
  return workload;
}

TEST(Traffic, RolesHaveAsManyRanksAsTheirListSays) {
  // Two ranks, not eight / two roles: 2 MB.
  const Traffic traffic = traffic_on(two_of_eight({compute_node("a", 1_ms)}, {}), nodes());
  EXPECT_DOUBLE_EQ(traffic.tiers[0], 2e6);
}

TEST(Traffic, EveryListedCommunicatorLiesWhereItsMembersAre) {
  // Ranks 0 1 are in one node, 4 6 in two. Role 0 has one rank of each: each sends 1/2 of 1 MB of
  // an all-gather, one inside its node and one out of it. Once both counted where rank 0 is.
  graph::Node gather = of_kind(collective_node("a", plan::Axis::tp, Bytes(1'000'000)),
                               graph::CollectiveKind::all_gather);
  const Traffic traffic =
      traffic_on(two_of_eight({gather}, graph::Members::listed({{0, 1}, {4, 6}}, 8)), nodes());
  EXPECT_DOUBLE_EQ(traffic.links[0], 0.5e6);
  EXPECT_DOUBLE_EQ(traffic.links[1], 0.5e6);
}

TEST(Traffic, EverySendCountsWhereItsOwnRankSendsIt) {
  // Three devices a node: 0 -> 1 stays inside the first, 2 -> 3 crosses to the second, 4 -> 5
  // stays.
  const machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 3),
                                               dimension(topology::DimensionKind::switched, 2)});
  const plan::RankLayout layout{{{plan::Axis::pp, 2}, {plan::Axis::dp, 3}, {plan::Axis::tp, 1}}};
  const Traffic traffic = traffic_on(
      testing::workload_of(layout, {{send("a", plan::Channel::forward, Bytes(1'000'000))}, {}}),
      machine);
  EXPECT_DOUBLE_EQ(traffic.links[0], 2e6);
  EXPECT_DOUBLE_EQ(traffic.links[1], 1e6);
}

TEST(Traffic, OfZero3IsThreeGathersAgainstOneAllReduce) {
  // ZeRO-0: an all-reduce of the gradients, 2 (p-1)/p Psi. ZeRO-3 with one microbatch: gathers of
  // the parameters forward and backward and one reduce-scatter, 3 (p-1)/p Psi. All in bf16.
  plan::Plan plan;
  plan.dp = 8;
  plan.global_batch = 8;
  plan.grad_reduce_type = plan.compute_type;
  const auto sent = [&](int zero) {
    plan.zero = zero;
    const auto run =
        run_step(zoo::load_model("gpt2-xl").value(), machine::load_machine("dgx-a100-80g").value(),
                 plan, 0, {.allow_oom = true});
    EXPECT_TRUE(run) << run.error().to_string();
    return traffic_of(run->workload, run->machine, {}).links[0];
  };
  EXPECT_NEAR(sent(3) / sent(0), 1.5, 0.02);
}

}  // namespace
}  // namespace orrery::study
