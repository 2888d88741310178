// SPDX-License-Identifier: Apache-2.0
#include "estimate/pass_map.h"

#include <gtest/gtest.h>

namespace orrery::estimate {
namespace {

constexpr std::uint8_t kTp = 1;

/// A template node by node.
class Nodes {
 public:
  TimedNode& add(TimedNode node, const std::vector<std::uint32_t>& after = {}) {
    node.first_before = static_cast<std::uint32_t>(nodes_.before.size());
    node.befores = static_cast<std::uint32_t>(after.size());
    node.least = node.work;
    nodes_.before.insert(nodes_.before.end(), after.begin(), after.end());
    return nodes_.nodes.emplace_back(node);
  }
  TimedNode& kernels(Time work, const std::vector<std::uint32_t>& after = {}) {
    return add({.work = work}, after);
  }
  void collective(Time work, const std::vector<std::uint32_t>& after) {
    add({.kind = TimedNode::Kind::collective, .lane = kTp, .slows_kernels = true, .work = work},
        after);
  }
  const TimedTemplate& done() const { return nodes_; }

 private:
  TimedTemplate nodes_;
};

/// From all clocks at zero to the end of compute.
Time makespan(const Nodes& nodes) {
  const PassMap map = map_of(nodes.done(), {}, Works::slowed);
  Time latest = kNever;
  for (std::size_t input = 0; input < map.inputs(); ++input) {
    latest = std::max(latest, map.entry(0, input));
  }
  return latest;
}

TEST(PassMap, KernelsRunInOrder) {
  Nodes nodes;
  nodes.kernels(3_us);
  nodes.kernels(4_us);
  EXPECT_EQ(makespan(nodes), 7_us);
}

TEST(PassMap, ACollectiveRunsBesideWhatDoesNotWaitForIt) {
  // 2, then a collective of 5 beside kernels of 3, then 1: 2 + 5 + 1.
  Nodes nodes;
  nodes.kernels(2_us);
  nodes.collective(5_us, {0});
  nodes.kernels(3_us);
  nodes.kernels(1_us, {1});
  EXPECT_EQ(makespan(nodes), 8_us);
}

TEST(PassMap, KernelsBesideACollectiveSlowDown) {
  // Twice as slow for the 4 us of the collective: 2 of 6 us are done by then; 4 remain: 2 + 4 + 4.
  Nodes nodes;
  nodes.kernels(2_us);
  nodes.collective(4_us, {0});
  nodes.kernels(6_us).beside_collective = 2;
  nodes.kernels(0_us, {1});
  EXPECT_EQ(makespan(nodes), 10_us);
}

TEST(PassMap, TheLeastWorksAreThoseWithoutCommunicationBeside) {
  Nodes nodes;
  nodes.kernels(2_us);
  nodes.collective(4_us, {0});
  nodes.kernels(6_us).beside_collective = 2;
  nodes.kernels(0_us, {1});
  EXPECT_EQ(map_of(nodes.done(), {}, Works::least).entry(0, 0), 8_us);
}

TEST(PassMap, AHostIsAClockLikeTheDevice) {
  // Three kernels of 1 us, each issued in 5 us. From the device's free moment 3 us; from the
  // host's: issue, issue, issue and the last kernel.
  Nodes nodes;
  for (int i = 0; i < 3; ++i) {
    TimedNode& node = nodes.kernels(1_us);
    node.host_cost = 5_us;
    node.host_span = 6_us;
  }
  const PassMap map = map_of(nodes.done(), {}, Works::slowed);
  ASSERT_EQ(map.clocks, (std::vector<int>{kCompute, kHost, kVisible}));
  EXPECT_EQ(map.entry(0, 0), 3_us);
  EXPECT_EQ(map.entry(0, 1), 16_us);
  EXPECT_EQ(map.entry(1, 1), 15_us);
  EXPECT_EQ(map.entry(1, 0), kNever);
}

TEST(PassMap, AHostThatWaitsForTheDeviceIsNotAhead) {
  // 10 us on the device, then the host waits; the next kernel is issued in 5 us and takes 1.
  Nodes nodes;
  TimedNode& first = nodes.kernels(10_us);
  first.host_cost = 5_us;
  first.host_span = 5_us;
  first.host_sync = true;
  TimedNode& second = nodes.kernels(1_us);
  second.host_cost = 5_us;
  second.host_span = 6_us;
  EXPECT_EQ(makespan(nodes), 16_us);
}

TEST(PassMap, AMessageLeavesWhenItsKernelsAreDone) {
  // In: device, visible, the lane of messages, then the message that is waited for.
  Nodes nodes;
  nodes.add({.kind = TimedNode::Kind::receive, .lane = 2, .flow = 0});
  nodes.kernels(4_us, {0});
  nodes.add({.kind = TimedNode::Kind::message, .lane = 1, .flow = 0, .work = 7_us}, {1});
  const PassMap map = map_of(nodes.done(), {}, Works::slowed);
  const std::size_t message = map.outputs.size() - 1;
  ASSERT_EQ(map.outputs[message].flow, 0);
  EXPECT_EQ(map.outputs[message].work, 7_us);
  EXPECT_EQ(map.entry(message, 0), 4_us);
  EXPECT_EQ(map.entry(message, map.clocks.size()), 4_us);
  EXPECT_FALSE(map.stepwise);
}

TEST(PassMap, AGatherThatFollowsNoKernelDependsOnTheClocks) {
  Nodes nodes;
  nodes.collective(5_us, {});
  nodes.kernels(3_us, {0}).beside_collective = 2;
  EXPECT_TRUE(map_of(nodes.done(), {}, Works::slowed).stepwise);
}

TEST(Ports, TwoThatShareAPortTakeTwiceAsLong) {
  // 10 us each from the same moment: both end at 20 us.
  PortPhase phase{.serialisation = 10_us};
  phase.ports = {{.port = 0, .load = 1}};
  const std::vector<PortPhase> phases{phase};
  Ports ports;
  EXPECT_EQ(ports.start({.lane = 1, .node = 0}, 0_us, phases), 10_us);
  EXPECT_EQ(ports.start({.lane = 2, .node = 1}, 0_us, phases), 20_us);
  ASSERT_EQ(ports.moved().size(), 1U);
  EXPECT_EQ(ports.moved()[0].end, 20_us);
}

TEST(Ports, ALateOneTakesItsShareFromThen) {
  // The first alone for 6 us. The second needs 2 us: 4 us at half speed, which cost the first 2.
  PortPhase phase{.serialisation = 10_us};
  phase.ports = {{.port = 0, .load = 1}};
  const std::vector<PortPhase> large{phase};
  phase.serialisation = 2_us;
  const std::vector<PortPhase> small{phase};
  Ports ports;
  ports.start({.lane = 1, .node = 0}, 0_us, large);
  EXPECT_EQ(ports.start({.lane = 2, .node = 1}, 6_us, small), 10_us);
  EXPECT_EQ(ports.moved()[0].end, 12_us);
}

TEST(Ports, TransfersOfOtherPortsDoNotMeet) {
  PortPhase phase{.serialisation = 10_us};
  phase.ports = {{.port = 0, .load = 1}};
  const std::vector<PortPhase> out{phase};
  phase.ports = {{.port = 1, .load = 1}};
  const std::vector<PortPhase> in{phase};
  Ports ports;
  ports.start({.lane = 1, .node = 0}, 0_us, out);
  EXPECT_EQ(ports.start({.lane = 2, .node = 1}, 0_us, in), 10_us);
  EXPECT_TRUE(ports.moved().empty());
}

}  // namespace
}  // namespace orrery::estimate
