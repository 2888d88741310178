// SPDX-License-Identifier: Apache-2.0
#include "estimate/rank_time.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TimedNode kernels(Time work, std::vector<int> after = {}, double contention = 1) {
  return {.stream = Stream::compute,
          .work = work,
          .contention = contention,
          .kernels = true,
          .after = std::move(after)};
}
TimedNode collective(Time work, std::vector<int> after) {
  return {.stream = Stream::tp, .work = work, .after = std::move(after)};
}

TEST(RankTime, KernelsRunInOrder) {
  EXPECT_EQ(makespan({kernels(3_us), kernels(4_us)}, false), 7_us);
}

TEST(RankTime, ACollectiveRunsBesideWhatDoesNotWaitForIt) {
  // 2, then a collective of 5 beside kernels of 3, then 1: 2 + 5 + 1.
  EXPECT_EQ(
      makespan({kernels(2_us), collective(5_us, {0}), kernels(3_us), kernels(1_us, {1})}, false),
      8_us);
}

TEST(RankTime, KernelsBesideACollectiveSlowDown) {
  // Twice as slow for the 4 us of the collective: 2 of 6 us are done by then; 4 remain: 2 + 4 + 4.
  EXPECT_EQ(makespan({kernels(2_us), collective(4_us, {0}), kernels(6_us, {}, 2)}, false), 10_us);
}

TEST(RankTime, TheHostIssuesOneAfterTheOther) {
  // Three kernels of 1 us, each issued in 5 us: the last ends at 15 + 1.
  TimedNode node = kernels(1_us);
  node.host_cost = 5_us;
  node.host_span = 6_us;
  const TimedTemplate three{node, node, node};
  EXPECT_EQ(makespan(three, true), 16_us);
  EXPECT_EQ(makespan(three, false), 3_us);
}

TEST(RankTime, AHostThatWaitsForTheDeviceIsNotAhead) {
  // 10 us on the device, then the host waits; the next kernel is issued in 5 us and takes 1.
  TimedNode first = kernels(10_us);
  first.host_cost = first.host_span = 5_us;
  first.host_sync = true;
  TimedNode second = kernels(1_us);
  second.host_cost = 5_us;
  second.host_span = 6_us;
  EXPECT_EQ(makespan({first, second}, true), 16_us);
  first.host_sync = false;
  EXPECT_EQ(makespan({first, second}, true), 11_us);
}

TEST(RankTime, JoinedInstancesKeepTheirDependencies) {
  // Each: 2 us of kernels, a collective of 3 that the next kernel of 1 waits for: 6 us; twice 12.
  const TimedTemplate one{kernels(2_us), collective(3_us, {0}), kernels(1_us, {1})};
  TimedTemplate chain;
  join(chain, one);
  join(chain, one);
  EXPECT_EQ(makespan(chain, false), 12_us);
}

}  // namespace
}  // namespace orrery
