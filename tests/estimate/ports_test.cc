// SPDX-License-Identifier: Apache-2.0
// Transfers that share the ports of a stage, and the host, in the order of time.
#include "estimate/ports.h"

#include <gtest/gtest.h>

#include <vector>

#include "estimate/node_run.h"
#include "nodes.h"

namespace orrery::estimate {
namespace {

using testing::Nobody;
using testing::template_of;

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

TEST(NodeRun, AGatherOfTheNextInstanceSharesThePortWithACopyOfThisOne) {
  // This instance: a copy of 40 us from 0 on and a kernel of 100 us. The next one, visible from 0
  // on: a gather of 20 us, and a kernel of 10 us behind it. Both transfers at half their rates
  // until 40, when the gather is over; the copy, of which 20 us are left then, at 60. The next
  // kernel begins at 100. Looked at after this instance, the gather would be over at 20 and the
  // copy at 40.
  const Transfers transfers{{{.serialisation = 40_us, .ports = {{0, 1.0}}}},
                            {{.serialisation = 20_us, .ports = {{0, 1.0}}}}};
  TimedNode copy{.kind = TimedNode::Kind::collective, .lane = 2, .transfer = 0};
  copy.work = 40_us;
  TimedNode gather{.kind = TimedNode::Kind::collective, .lane = 1, .transfer = 1};
  gather.work = 20_us;
  TimedNode kernel;
  kernel.work = 100_us;
  TimedNode next_kernel;
  next_kernel.work = 10_us;
  const TimedTemplate first = template_of({copy, kernel}, {{}, {}});
  const TimedTemplate second = template_of({gather, next_kernel}, {{}, {0}});
  const std::vector<std::uint32_t> ahead{0};
  NodeRun run;
  NodeRun next;
  Nobody nobody;
  Beside beside;
  Ports ports;
  const NodeRun::Surroundings around{.transfers = transfers, .beside = beside, .ports = ports};
  run.start(first, Clocks{});
  next.start_ahead(second, ahead, 0_us, run);
  ASSERT_TRUE(run.advance(nobody, around));
  EXPECT_EQ(run.clocks()[static_cast<std::size_t>(clock_of(1))], 40_us);
  EXPECT_EQ(run.clocks()[static_cast<std::size_t>(clock_of(2))], 60_us);
  EXPECT_EQ(run.taken()[0], 60_us);
  EXPECT_EQ(next.ends_ahead(0_us), std::vector<Time>{40_us});
  next.go_on(run.clocks(), true, {});
  ASSERT_TRUE(next.advance(nobody, around));
  EXPECT_EQ(next.clocks()[kCompute], 110_us);
}

}  // namespace
}  // namespace orrery::estimate
