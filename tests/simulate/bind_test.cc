// SPDX-License-Identifier: Apache-2.0
#include "simulate/bind.h"

#include <gtest/gtest.h>

#include "builder.h"

namespace orrery::simulate {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the builders of this test

using Numbers = std::vector<std::uint32_t>;

const plan::RankLayout kAlone{{{plan::Axis::tp, 1}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}};
const plan::RankLayout kPair{{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}};

machine::Machine one_device() {
  return machine_of({dimension(topology::DimensionKind::switched, 1)});
}

/// The first node of the only template of rank 0's program.
BoundNode first_node(const graph::Workload& workload, const machine::Machine& machine) {
  const collective::AlgorithmChoice algorithms;
  return Binding(workload, machine, algorithms).shape(0, 0).nodes.front();
}

graph::Node two_kernels(Time first, Time second) {
  graph::Node node = compute_node("two", first);
  node.operators.push_back(kernel(second));
  return node;
}

TEST(Bind, AHostThatIsSlowerThanTheKernelsEndsTheNode) {
  // Issued at 10 and 20 us, the second runs for 5: 25 us, of which kernels take 3 + 5.
  graph::Workload workload = workload_of(kAlone, {{two_kernels(3_us, 5_us)}});
  workload.host_dispatch = 10_us;
  const BoundNode node = first_node(workload, one_device());
  EXPECT_EQ(node.work, 8_us);
  EXPECT_EQ(node.host_cost, 20_us);
  EXPECT_EQ(node.host_span, 25_us);
}

TEST(Bind, KernelsThatAreSlowerThanTheHostEndTheNode) {
  // The first is issued at 10 us; then 30 + 30 us back to back.
  graph::Workload workload = workload_of(kAlone, {{two_kernels(30_us, 30_us)}});
  workload.host_dispatch = 10_us;
  EXPECT_EQ(first_node(workload, one_device()).host_span, 70_us);
}

TEST(Bind, EveryKernelIsSlowedDownOnItsOwn) {
  // 3 ms bound by memory, of which a collective takes a quarter: 4 ms. 1 ms as measured stays.
  machine::Machine machine = one_device();
  machine.device.overlap_memory = 0.25;
  graph::Node node = two_kernels(3_ms, 1_ms);
  node.operators[1] = {.name = "measured", .gemm = {}, .duration = 1_ms};
  const graph::Workload workload = workload_of(kAlone, {{node}});
  const collective::AlgorithmChoice algorithms;
  Binding bound(workload, machine, algorithms);
  const std::vector<BoundKernel>& kernels = bound.shape(0, 0).kernels;
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_NEAR(kernels[0].slow(Concurrent::collectives), 4.0 / 3, 1e-9);
  EXPECT_EQ(kernels[0].slow(Concurrent::messages), 1);
  EXPECT_EQ(kernels[0].after[0], 1_ms);
  EXPECT_EQ(kernels[1].slow(Concurrent::collectives), 1);
}

TEST(Bind, NodesAreListedByStreamInIssueOrder) {
  const graph::Workload workload = workload_of(
      kPair,
      {{collective_node("first", plan::Axis::tp, 64_B), compute_node("a", 1_ms),
        collective_node("second", plan::Axis::tp, 64_B, {1}), compute_node("b", 1_ms, {0, 2})}});
  const machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 2)});
  const collective::AlgorithmChoice algorithms;
  Binding bound(workload, machine, algorithms);
  const BoundTemplate& shape = bound.shape(0, 0);
  EXPECT_EQ(shape.by_stream[*graph::StreamIndex(plan::StepStream::compute)], (Numbers{1, 3}));
  EXPECT_EQ(shape.by_stream[*plan::stream_of(plan::Axis::tp)], (Numbers{0, 2}));
  // The host issues the collective's stream first, as its first node is the list's.
  EXPECT_EQ(shape.streams, (std::vector<graph::StreamIndex>{plan::stream_of(plan::Axis::tp),
                                                            graph::kComputeStream}));
  EXPECT_EQ(shape.pending, (Numbers{0, 0, 1, 2}));
  EXPECT_EQ(shape.dependents, (Numbers{3, 2, 3}));
  EXPECT_TRUE(shape.free_nodes.empty());
}

TEST(Bind, NodesOfUnorderedStreamsThatNeedNothingAreFreeAtOnce) {
  graph::Node late = receive("late", plan::Channel::forward);
  late.after = {0};
  graph::Workload workload =
      workload_of({{{plan::Axis::tp, 1}, {plan::Axis::dp, 1}, {plan::Axis::pp, 2}}},
                  {{}, {compute_node("a", 1_ms), receive("early", plan::Channel::forward), late}});
  workload.streams[*graph::StreamIndex(plan::StepStream::receive)].order = graph::Order::none;
  const machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 2)});
  const collective::AlgorithmChoice algorithms;
  Binding bound(workload, machine, algorithms);
  const BoundTemplate& shape = bound.shape(1, 0);
  EXPECT_EQ(shape.free_nodes, (Numbers{1}));
  EXPECT_EQ(shape.streams, (std::vector<graph::StreamIndex>{graph::kComputeStream}));
  EXPECT_EQ(bound.flows(1).size(), 1U);  // both receives are of one flow
}

TEST(Bind, EqualCollectivesAreOne) {
  const graph::Workload workload = workload_of(
      kPair,
      {{collective_node("a", plan::Axis::tp, 64_B), collective_node("b", plan::Axis::tp, 64_B, {0}),
        collective_node("c", plan::Axis::tp, 128_B, {1})}});
  const machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 2)});
  const collective::AlgorithmChoice algorithms;
  Binding bound(workload, machine, algorithms);
  const std::vector<BoundNode>& nodes = bound.shape(0, 0).nodes;
  EXPECT_EQ(nodes[0].collective, nodes[1].collective);
  EXPECT_NE(nodes[0].collective, nodes[2].collective);
  EXPECT_EQ(bound.collectives().size(), 2U);
}

TEST(Bind, ACopyTakesItsBytesFromTheTier) {
  // 1 MB at 1 GB/s after 2 us: one phase on no port.
  machine::Machine machine = one_device();
  machine.device.memory.push_back({"host", 1_GiB, 1_GBps, 2_us});
  graph::Node copy;
  copy.kind = graph::Node::Kind::copy;
  copy.stream = plan::StepStream::to_host;
  copy.group = plan::Axis::to_host;
  copy.bytes = Bytes(1'000'000);
  const graph::Workload workload = workload_of(kAlone, {{copy}});
  const collective::AlgorithmChoice algorithms;
  Binding bound(workload, machine, algorithms);
  const int number = bound.shape(0, 0).nodes[0].collective;
  ASSERT_EQ(bound.phases(number, 0).size(), 1U);
  EXPECT_EQ(bound.phases(number, 0)[0].latency, 1_ms + 2_us);
  EXPECT_EQ(bound.phases(number, 0)[0].serialisation, Time(0));
}

TEST(Bind, ACopyThroughASwitchKeepsItsPortForItsBytes) {
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 2)});
  machine.device.memory.push_back({"host", 1_GiB, 1_GBps, 2_us});
  machine.device.memory.back().through = machine.network[0].name;
  graph::Node copy;
  copy.kind = graph::Node::Kind::copy;
  copy.stream = plan::StepStream::to_host;
  copy.group = plan::Axis::to_host;
  copy.bytes = Bytes(1'000'000);
  copy.direction = graph::CopyDirection::out;
  const graph::Workload workload = workload_of(kPair, {{copy}});
  const collective::AlgorithmChoice algorithms;
  Binding bound(workload, machine, algorithms);
  const int number = bound.shape(0, 0).nodes[0].collective;
  EXPECT_EQ(bound.phases(number, 0)[0].serialisation, 1_ms);
  EXPECT_EQ(bound.phases(number, 0)[0].latency, 2_us);
}

TEST(Bind, EveryListedCommunicatorHasPhasesOfItsOwn) {
  // Nodes of two devices: 0 1 are in one, 2 4 in two, 3 alone.
  graph::Workload workload =
      workload_of({{{plan::Axis::tp, 8}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}},
                  {{collective_node("a", plan::Axis::tp, Bytes(1'000'000))}});
  workload.groups[*graph::GroupIndex(plan::Axis::tp)].members =
      graph::Members::listed({{0, 1}, {2, 4}}, 8);
  const machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 2),
                                               dimension(topology::DimensionKind::switched, 4)});
  const collective::AlgorithmChoice algorithms;
  Binding bound(workload, machine, algorithms);
  const int number = bound.shape(0, 0).nodes[0].collective;
  ASSERT_FALSE(bound.phases(number, 0).empty());
  EXPECT_EQ(bound.phases(number, 0)[0].ports.at(0).extent.dimension, 0);
  EXPECT_EQ(&bound.phases(number, 0), &bound.phases(number, 1));
  ASSERT_FALSE(bound.phases(number, 4).empty());
  EXPECT_EQ(bound.phases(number, 4)[0].ports.at(0).extent.dimension, 1);
  EXPECT_TRUE(bound.phases(number, 3).empty());
}

TEST(Bind, ACopyThatGoesOnPaysNoLatencyAndNoDispatch) {
  // 1 MB at 1 GB/s behind 2 us, and once more without them.
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 2)});
  machine.device.memory.push_back({"host", 1_GiB, 1_GBps, 2_us});
  graph::Node copy;
  copy.kind = graph::Node::Kind::copy;
  copy.stream = plan::StepStream::receive;
  copy.group = plan::Axis::to_host;
  copy.bytes = Bytes(1'000'000);
  graph::Node next = copy;
  next.continues = true;
  graph::Workload workload = workload_of(
      {{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}}, {{copy, next}});
  workload.host_dispatch = 3_us;
  const collective::AlgorithmChoice algorithms;
  Binding bound(workload, machine, algorithms);
  const std::vector<BoundNode>& nodes = bound.shape(0, 0).nodes;
  EXPECT_EQ(bound.phases(nodes[0].collective, 0)[0].latency, 1_ms + 2_us);
  EXPECT_EQ(bound.phases(nodes[1].collective, 0)[0].latency, 1_ms);
  EXPECT_EQ(nodes[0].host_cost, 3_us);
  EXPECT_EQ(nodes[1].host_cost, Time(0));
}

TEST(Bind, WhatAnEngineMovesTakesWhatAMessageTakes) {
  graph::Node collective = collective_node("a", plan::Axis::tp, Bytes(1'000'000));
  graph::Node engine = collective;
  engine.by_engine = true;
  graph::Workload workload = workload_of(
      {{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}}, {{collective, engine}});
  workload.host_dispatch = 3_us;
  const machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 2)});
  const collective::AlgorithmChoice algorithms;
  Binding bound(workload, machine, algorithms);
  const std::vector<BoundNode>& nodes = bound.shape(0, 0).nodes;
  EXPECT_EQ(nodes[0].takes, Concurrent::collectives);
  EXPECT_EQ(nodes[1].takes, Concurrent::messages);
  EXPECT_EQ(nodes[0].host_cost, 3_us);
  EXPECT_EQ(nodes[1].host_cost, Time(0));
}

}  // namespace
}  // namespace orrery::simulate
