// SPDX-License-Identifier: Apache-2.0
#include "machine/network/analytical.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace orrery::network {
namespace {

struct Start {
  Time when{0};
  Time serialisation{0};
  Time latency{0};
  std::vector<topology::LinkUse> links;
};

/// Runs transfers to their ends; result in the order given.
std::vector<Time> finish_times(const std::vector<Start>& starts, std::size_t links) {
  constexpr std::uint32_t kStart = 0;
  AnalyticalNetwork network(links);
  engine::EventQueue queue;
  std::map<TransferId, std::size_t> running;
  std::vector<Time> finish(starts.size());
  for (std::uint32_t i = 0; i < starts.size(); ++i) {
    queue.push(starts[i].when, kStart, i);
  }
  while (!queue.empty()) {
    const engine::EventQueue::Event event = queue.pop();
    if (event.kind == kStart) {
      const Start& s = starts[event.subject];
      running[network.start(queue.now(), s.serialisation, s.latency, s.links)] = event.subject;
    } else if (network.handle(event)) {
      finish[running.at(event.subject)] = queue.now();
    }
    if (queue.instant_is_over()) {
      network.settle(queue);
    }
  }
  return finish;
}

TEST(AnalyticalNetwork, AloneTakesSerialisationPlusLatency) {
  EXPECT_EQ(finish_times({{0_ms, 100_ms, 3_us, {{0}}}}, 1)[0], 100_ms + 3_us);
}

TEST(AnalyticalNetwork, TwoTransfersOnOneLinkEachGetHalf) {
  // 1 GB over 10 GB/s alone: 100 ms. Sharing: both end at 200 ms.
  const auto finish = finish_times({{0_ms, 100_ms, 0_us, {{0}}}, {0_ms, 100_ms, 0_us, {{0}}}}, 1);
  EXPECT_EQ(finish[0], 200_ms);
  EXPECT_EQ(finish[1], 200_ms);
}

TEST(AnalyticalNetwork, LateComerSharesOnlyWhileBothRun) {
  // A: 100 ms of work from 0; B: 20 ms from 50. Both at half rate from 50: B ends at 90, when A has
  // 50 - 20 = 30 ms left at full rate: 120. Latency 5 us shifts the ends only.
  const auto finish = finish_times({{0_ms, 100_ms, 5_us, {{0}}}, {50_ms, 20_ms, 5_us, {{0}}}}, 1);
  EXPECT_EQ(finish[1], 90_ms + 5_us);
  EXPECT_EQ(finish[0], 120_ms + 5_us);
}

TEST(AnalyticalNetwork, LatencyOccupiesNothing) {
  // A's bytes have left at 10 ms; B starts then and is alone, though A arrives at 30 ms.
  const auto finish = finish_times({{0_ms, 10_ms, 20_ms, {{0}}}, {10_ms, 10_ms, 0_ms, {{0}}}}, 1);
  EXPECT_EQ(finish[0], 30_ms);
  EXPECT_EQ(finish[1], 20_ms);
}

TEST(AnalyticalNetwork, LightlyUsedLinkDoesNotSlowDown) {
  // A and B need link 1 for a quarter and three quarters of their time: it is never short.
  const auto finish = finish_times(
      {{0_ms, 40_ms, 0_ms, {{0, 1.0}, {1, 0.25}}}, {0_ms, 10_ms, 0_ms, {{1, 0.75}, {2, 1.0}}}}, 3);
  EXPECT_EQ(finish[0], 40_ms);
  EXPECT_EQ(finish[1], 10_ms);
}

TEST(AnalyticalNetwork, WhatIsWantedOfALinkIsWhatItsTransfersGet) {
  // A wants a quarter of link 1, B all of it: 5/4. Both at 4/5 until B is done at 12.5 ms, when A
  // has 30 of its 40 ms left. Link 1 was never idle: 10 ms of B and 10/4 of A.
  const auto finish =
      finish_times({{0_ms, 40_ms, 0_ms, {{0, 1.0}, {1, 0.25}}}, {0_ms, 10_ms, 0_ms, {{1}}}}, 2);
  EXPECT_EQ(finish[1], 12'500_us);
  EXPECT_EQ(finish[0], 42'500_us);
}

TEST(AnalyticalNetwork, OneTransferMayStandForSeveralOnALink) {
  // As eight devices that share an adapter which each wants half of: four times as long.
  EXPECT_EQ(finish_times({{0_ms, 10_ms, 0_ms, {{0, 1.0}, {1, 4.0}}}}, 2)[0], 40_ms);
}

TEST(AnalyticalNetwork, SlowestLinkHoldsForTheWholeTransfer) {
  // Three on link 0, two of them also on link 1: all at a third.
  const auto finish = finish_times({{0_ms, 10_ms, 0_ms, {{0}, {1}}},
                                    {0_ms, 10_ms, 0_ms, {{0}, {1}}},
                                    {0_ms, 10_ms, 0_ms, {{0}}}},
                                   2);
  EXPECT_EQ(finish, (std::vector<Time>{30_ms, 30_ms, 30_ms}));
}

RC_GTEST_PROP(AnalyticalNetwork, NeverFasterThanAloneNorThanTheBusiestLink, ()) {
  constexpr std::size_t kLinks = 4;
  const auto count = *rc::gen::inRange<std::size_t>(1, 12);
  std::vector<Start> starts;
  std::vector<Time> load(kLinks);
  for (std::size_t i = 0; i < count; ++i) {
    const auto first = *rc::gen::inRange<topology::LinkId>(0, kLinks);
    const auto second = *rc::gen::inRange<topology::LinkId>(0, kLinks);
    Start s{Time(*rc::gen::inRange<std::int64_t>(0, 1000)) * 1000,
            Time(*rc::gen::inRange<std::int64_t>(0, 1000)) * 1000,
            7_ps,
            {{first}}};
    if (second != first) {
      s.links.push_back({second});
    }
    for (const topology::LinkUse& use : s.links) {
      load[use.link] += s.serialisation;
    }
    starts.push_back(s);
  }
  const auto finish = finish_times(starts, kLinks);
  const Time rounding = Time(1) * static_cast<std::int64_t>(count * count);
  for (std::size_t i = 0; i < count; ++i) {
    RC_ASSERT(finish[i] + rounding >= starts[i].when + starts[i].serialisation + 7_ps);
  }
  for (std::size_t link = 0; link < kLinks; ++link) {
    Time last{0};
    for (std::size_t i = 0; i < count; ++i) {
      const auto& uses = starts[i].links;
      if (std::any_of(uses.begin(), uses.end(),
                      [&](const topology::LinkUse& u) { return u.link == link; })) {
        last = std::max(last, finish[i]);
      }
    }
    RC_ASSERT(last + rounding >= load[link]);
  }
}

}  // namespace
}  // namespace orrery::network
