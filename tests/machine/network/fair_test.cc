// SPDX-License-Identifier: Apache-2.0
#include "machine/network/fair.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "run_messages.h"

namespace orrery::network {
namespace {

using testing::arrivals;
using testing::dimension;
using testing::TimedMessage;
using Kind = topology::DimensionKind;

constexpr Bytes kMegabyte{1'000'000};

std::vector<Time> run(const std::vector<topology::NetworkDimension>& dimensions,
                      const std::vector<TimedMessage>& messages) {
  const topology::LinkMap map(dimensions);
  FairNetwork network(map.links());
  return arrivals(network, map, messages);
}

TEST(FairNetwork, AloneIsLatencyPlusTheSlowestLink) {
  EXPECT_EQ(run({dimension(Kind::ring, 4, 100, 1_us), dimension(Kind::ring, 2, 10, 4_us)},
                {{0, 6, kMegabyte}})[0],
            106_us);
}

TEST(FairNetwork, TwoMessagesOnOneLinkEachGetHalf) {
  const auto times =
      run({dimension(Kind::ring, 4, 100, 1_us)}, {{0, 1, kMegabyte}, {0, 1, kMegabyte}});
  EXPECT_EQ(times, std::vector<Time>(2, 21_us));
}

TEST(FairNetwork, WhatABottleneckLeavesGoesToTheOthers) {
  // A line of 100 GB/s links 0-1-2-3. a: 0->2, b: 0->1, c: 1->3, d: 1->2: link 1-2 carries a, c, d
  // (33.3 each), so b gets 66.7 of link 0-1. 1 MB: b ends at 15 us; a, c, d together at 30.
  const auto times =
      run({dimension(Kind::mesh, 4, 100, 0_us)},
          {{0, 2, kMegabyte}, {0, 1, kMegabyte}, {1, 3, kMegabyte}, {1, 2, kMegabyte}});
  EXPECT_NEAR(to_seconds(times[1]), 15e-6, 1e-11);
  EXPECT_NEAR(to_seconds(times[0]), 30e-6, 1e-11);
  EXPECT_NEAR(to_seconds(times[2]), 30e-6, 1e-11);
}

TEST(FairNetwork, LateComerSharesOnlyWhileBothRun) {
  // 2 MB from 0, 0.5 MB from 10 us over 100 GB/s: 1 MB is left when the second comes; both at half
  // until 20 us, when the first has 0.5 MB left: 25 us.
  const auto times = run({dimension(Kind::ring, 2, 100, 0_us)},
                         {{0, 1, 2 * kMegabyte}, {0, 1, Bytes(500'000), 10_us}});
  EXPECT_NEAR(to_seconds(times[1]), 20e-6, 1e-11);
  EXPECT_NEAR(to_seconds(times[0]), 25e-6, 1e-11);
}

RC_GTEST_PROP(FairNetwork, OneLinkIsAsBusyAsWithFifo, ()) {
  // Both never idle while something waits, so the last byte of all leaves at the same time.
  const int count = *rc::gen::inRange(1, 20);
  std::vector<TimedMessage> sent;
  for (int m = 0; m < count; ++m) {
    sent.push_back(
        {0, 1, Bytes(*rc::gen::inRange(1, 2'000'000)), Time(*rc::gen::inRange(0, 20'000'000))});
  }
  const topology::LinkMap map({dimension(Kind::ring, 2, 50, 1_us)});
  FairNetwork fair(map.links());
  FifoNetwork fifo(map.links());
  const auto a = arrivals(fair, map, sent);
  const auto b = arrivals(fifo, map, sent);
  const Time last_a = *std::max_element(a.begin(), a.end());
  const Time last_b = *std::max_element(b.begin(), b.end());
  RC_ASSERT(std::abs((last_a - last_b).value()) <= 2 * count);
}

RC_GTEST_PROP(FairNetwork, IsNeverFasterThanTheBandwidthBound, ()) {
  const std::vector<topology::NetworkDimension> dimensions{
      dimension(Kind::ring, *rc::gen::inRange<std::int64_t>(2, 6), *rc::gen::inRange(1, 200), 1_us),
      dimension(Kind::switched, *rc::gen::inRange<std::int64_t>(2, 5), *rc::gen::inRange(1, 200),
                2_us)};
  const topology::LinkMap map(dimensions);
  const int count = *rc::gen::inRange(1, 30);
  std::vector<TimedMessage> sent;
  for (int m = 0; m < count; ++m) {
    sent.push_back({*rc::gen::inRange<std::int64_t>(0, map.devices()),
                    *rc::gen::inRange<std::int64_t>(0, map.devices()),
                    Bytes(*rc::gen::inRange(1, 2'000'000)),
                    Time(*rc::gen::inRange(0, 20'000'000))});
  }
  FairNetwork network(map.links());
  const auto times = arrivals(network, map, sent);
  for (topology::LinkId link = 0; link < map.links(); ++link) {
    RC_ASSERT(network.busy(link) <= *std::max_element(times.begin(), times.end()) + Time(count));
  }
  for (std::size_t m = 0; m < times.size(); ++m) {
    std::vector<topology::Hop> way;
    map.route(sent[m].source, sent[m].destination, way);
    Time least = sent[m].when;
    Time slowest{0};
    for (const topology::Hop& hop : way) {
      least += hop.latency;
      slowest = std::max(slowest, sent[m].bytes / hop.bandwidth);
    }
    RC_ASSERT(times[m] + Time(count) >= least + slowest);
  }
}

}  // namespace
}  // namespace orrery::network
