// SPDX-License-Identifier: Apache-2.0
// Transfers that share the ports of a stage, and the host, in the order of time.
#include "estimate/ports.h"

#include <gtest/gtest.h>

#include <vector>

#include "estimate/node_run.h"

namespace orrery::estimate {
namespace {

std::vector<PortPhase> transfer(Time serialisation) {
  return {{.serialisation = serialisation,
           .latency = 1_us,
           .ports = {{0, 1.0}},
           .arrival = {{0, 1.0}}}};
}

TEST(Ports, MessagesThatComeInShareTheirPort) {
  // The first has 6 of 10 us left when the second comes at 4: both move at half their rates until
  // 16; the second then has 4 left and is over at 20. A latency of 1 us follows each.
  const std::vector<PortPhase> message = transfer(10_us);
  Ports ports;
  EXPECT_EQ(ports.receive(0_us, message, 7), 11_us);
  EXPECT_EQ(ports.receive(4_us, message, 8), 21_us);
  ASSERT_EQ(ports.moved().size(), 1U);
  EXPECT_EQ(ports.moved().front().lane, Ports::kIncoming);
  EXPECT_EQ(ports.moved().front().node, 7U);
  EXPECT_EQ(ports.moved().front().end, 17_us);
}

TEST(Ports, AMessageThatIsPutOffDoesNotPutOffOthersThatMeetItLater) {
  // 0 to 10, alone; then 12 to 22, alone: the second is not behind the first as on a lane.
  const std::vector<PortPhase> message = transfer(10_us);
  Ports ports;
  ports.receive(0_us, message, 0);
  ports.receive(12_us, message, 1);
  // From 8 on a third: the first has 2 left and ends at 12; the third has 8 left, and with the
  // second from 12 on both end 16 and 18 later: the third at 28, the second, with 2 left, at 30.
  EXPECT_EQ(ports.receive(8_us, message, 2), 29_us);
  ASSERT_EQ(ports.moved().size(), 2U);
  EXPECT_EQ(ports.moved()[0].end, 13_us);
  EXPECT_EQ(ports.moved()[1].end, 31_us);
}

TimedTemplate template_of(const std::vector<TimedNode>& nodes,
                          const std::vector<std::vector<std::uint32_t>>& after) {
  TimedTemplate made;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    TimedNode node = nodes[i];
    node.first_before = static_cast<std::uint32_t>(made.before.size());
    node.befores = static_cast<std::uint32_t>(after[i].size());
    made.before.insert(made.before.end(), after[i].begin(), after[i].end());
    made.nodes.push_back(node);
  }
  return made;
}

/// Nothing comes and nothing is said.
class Nobody final : public Listener {
 public:
  Time hears(const TimedNode&) override { return kNever; }
  Time says(const TimedNode&, Time, Time end) override { return end; }
};

TEST(NodeRun, AGatherAheadFindsTheHostWhereItWasThen) {
  // The instance before ran from 0 to 100 us and the host waited for its end. The gather is visible
  // from 0 on: issued at 1, over at 11, and no later than the kernel that begins at 100.
  TimedNode gather{.kind = TimedNode::Kind::collective, .lane = 1};
  gather.work = 10_us;
  gather.host_cost = 1_us;
  const TimedTemplate nodes = template_of({gather}, {{}});
  Clocks clocks{};
  clocks[kCompute] = clocks[kHost] = 100_us;
  NodeRun run;
  Nobody nobody;
  Beside beside;
  Ports ports;
  run.start(nodes, clocks, true, {.begin = 0_us, .end = 100_us, .from = 0_us, .until = 0_us});
  ASSERT_TRUE(run.advance(nobody, {.transfers = {}, .beside = beside, .ports = ports}));
  EXPECT_EQ(run.clocks()[static_cast<std::size_t>(clock_of(1))], 11_us);
}

TEST(NodeRun, ACollectiveThatItsLaneKeepsWaitingTakesThePortAfterWhatBeginsBefore) {
  // Lane 1: a transfer of 10 us, then another. Lane 2: one of 4 us, issued last, from 0 on. It
  // meets the first alone: both at half their rates until 8, the first over at 14, the second from
  // 14 to 24.
  const Transfers transfers{{{.serialisation = 10_us, .ports = {{0, 1.0}}}},
                            {{.serialisation = 4_us, .ports = {{0, 1.0}}}}};
  TimedNode lane_one{.kind = TimedNode::Kind::collective, .lane = 1, .transfer = 0};
  lane_one.work = 10_us;
  TimedNode lane_two{.kind = TimedNode::Kind::collective, .lane = 2, .transfer = 1};
  lane_two.work = 4_us;
  const TimedTemplate nodes = template_of({lane_one, lane_one, lane_two}, {{}, {}, {}});
  NodeRun run;
  Nobody nobody;
  Beside beside;
  Ports ports;
  run.start(nodes, Clocks{});
  ASSERT_TRUE(run.advance(nobody, {.transfers = transfers, .beside = beside, .ports = ports}));
  EXPECT_EQ(run.clocks()[static_cast<std::size_t>(clock_of(2))], 8_us);
  EXPECT_EQ(run.clocks()[static_cast<std::size_t>(clock_of(1))], 24_us);
  EXPECT_EQ(run.taken()[0], 14_us);
}

}  // namespace
}  // namespace orrery::estimate
