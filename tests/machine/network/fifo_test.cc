// SPDX-License-Identifier: Apache-2.0
#include "machine/network/fifo.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

#include "run_messages.h"

namespace orrery::network {
namespace {

using testing::arrivals;
using testing::dimension;
using testing::TimedMessage;
using Kind = topology::DimensionKind;

constexpr Bytes kMessageSize{1'000'000};

std::vector<Time> run_fifo(std::vector<topology::NetworkDimension> dimensions,
                           const std::vector<TimedMessage>& messages) {
  const topology::LinkMap map(std::move(dimensions));
  FifoNetwork network(map.links());
  return arrivals(network, map, messages);
}

TEST(FifoNetwork, CutThroughPaysLatenciesAndTheSlowestSerialisationOnce) {
  // 100 GB/s ring, 2 hops of 1 us, then a ring of 10 GB/s, 4 us: 2 + 4 + 1 MB / 10 GB/s = 100 us.
  const auto ring = dimension(Kind::ring, 4, 100, 1_us);
  const auto outer = dimension(Kind::ring, 2, 10, 4_us);
  EXPECT_EQ(run_fifo({ring, outer}, {{0, 6, kMessageSize}})[0], 106_us);
  // The slow link first changes nothing: the fast ones wait for its last byte.
  EXPECT_EQ(run_fifo({outer, ring}, {{0, 5, kMessageSize}})[0], 106_us);
}

TEST(FifoNetwork, TwoMessagesOnOneLinkFollowEachOther) {
  // 10 us each on a link with 1 us: 11 and 21 us.
  const auto times =
      run_fifo({dimension(Kind::ring, 4, 100, 1_us)}, {{0, 1, kMessageSize}, {0, 1, kMessageSize}});
  EXPECT_EQ(times[0], 11_us);
  EXPECT_EQ(times[1], 21_us);
}

TEST(FifoNetwork, BothDirectionsAreIndependent) {
  const auto times =
      run_fifo({dimension(Kind::ring, 4, 100, 1_us)}, {{0, 1, kMessageSize}, {1, 0, kMessageSize}});
  EXPECT_EQ(times[0], 11_us);
  EXPECT_EQ(times[1], 11_us);
}

TEST(FifoNetwork, FanInSerialisesAtTheReceiversPort) {
  // Three senders through a switch of 100 GB/s and 2 us: the down link takes 10 us for each.
  const auto times = run_fifo({dimension(Kind::switched, 4, 100, 2_us)},
                              {{1, 0, kMessageSize}, {2, 0, kMessageSize}, {3, 0, kMessageSize}});
  EXPECT_EQ(times[0], 12_us);
  EXPECT_EQ(times[1], 22_us);
  EXPECT_EQ(times[2], 32_us);
}

TEST(FifoNetwork, FanOutOverFullyConnectedLinksIsParallel) {
  const auto times = run_fifo({dimension(Kind::fully_connected, 4, 100, 2_us)},
                              {{0, 1, kMessageSize}, {0, 2, kMessageSize}, {0, 3, kMessageSize}});
  EXPECT_EQ(times, std::vector<Time>(3, 12_us));
}

TEST(FifoNetwork, DimensionsOfDifferentKindsDoNotShareLinks) {
  // 0 -> 1 in the ring and 0 -> 4 over the switch at once: 11 us, and 4 + 100 us.
  const auto times =
      run_fifo({dimension(Kind::ring, 4, 100, 1_us), dimension(Kind::switched, 2, 10, 4_us)},
               {{0, 1, kMessageSize}, {0, 4, kMessageSize}});
  EXPECT_EQ(times[0], 11_us);
  EXPECT_EQ(times[1], 104_us);
}

TEST(FifoNetwork, ASlowMessageHoldsAFastLinkOnlyForItsOwnTime) {
  // 0 -> 1 -> 3 over a switch of 10 GB/s and a ring of 100 GB/s: it takes 10 of the 100 us that its
  // bytes need to come. Another that wants the ring's link at 50 us is through at 61.
  const auto slow = dimension(Kind::switched, 2, 10, 1_us);
  const auto fast = dimension(Kind::ring, 4, 100, 1_us);
  const auto times = run_fifo({slow, fast}, {{0, 3, kMessageSize}, {1, 3, kMessageSize, 50_us}});
  EXPECT_EQ(times[0], 102_us);
  EXPECT_EQ(times[1], 61_us);
}

TEST(FifoNetwork, RingOfDifferentLinks) {
  // Four links of 10, 20, 40 and 80 GB/s, 1 us each. 1 MB round the ring takes 4 us + 100 us. One
  // step of a ring algorithm, every device to its next at once, takes each link its own time.
  const std::vector<topology::Hop> ring{
      {0, 10_GBps, 1_us}, {1, 20_GBps, 1_us}, {2, 40_GBps, 1_us}, {3, 80_GBps, 1_us}};
  const auto run_routes = [](const std::vector<std::span<const topology::Hop>>& routes) {
    FifoNetwork network(4);
    engine::EventQueue queue;
    std::vector<Time> arrival(routes.size());
    for (const auto& route : routes) {
      network.start(kMessageSize, route, queue);
    }
    while (!queue.empty()) {
      const auto event = queue.pop();
      if (network.handle(event, queue)) {
        arrival[event.subject] = queue.now();
      }
    }
    return arrival;
  };
  const std::span<const topology::Hop> all(ring);
  EXPECT_EQ(run_routes({all})[0], 104_us);
  EXPECT_EQ(
      run_routes({all.subspan(0, 1), all.subspan(1, 1), all.subspan(2, 1), all.subspan(3, 1)}),
      (std::vector<Time>{101_us, 51_us, 26_us, 13'500_ns}));
}

TEST(FifoNetwork, NicOfAnOuterSwitchReachesEveryDevice) {
  // Only the outer switch is crossed.
  const auto inner = dimension(Kind::ring, 4, 100, 1_us);
  const auto outer = dimension(Kind::switched, 2, 10, 4_us);
  EXPECT_EQ(run_fifo({inner, outer}, {{0, 6, kMessageSize}})[0], 104_us);
}

TEST(FifoNetwork, AMessageToItselfArrivesAtOnce) {
  EXPECT_EQ(run_fifo({dimension(Kind::ring, 4, 100, 1_us)}, {{2, 2, kMessageSize, 7_us}})[0], 7_us);
}

TEST(FifoNetwork, BusyTimeIsTheSumOfSerialisations) {
  const topology::LinkMap map({dimension(Kind::switched, 4, 100, 2_us)});
  FifoNetwork network(map.links());
  (void)arrivals(network, map, {{1, 0, kMessageSize}, {2, 0, kMessageSize}});
  std::vector<topology::Hop> route;
  map.route(1, 0, route);
  EXPECT_EQ(network.busy(route[0].link), 10_us);
  EXPECT_EQ(network.busy(route[1].link), 20_us);
}

/// Networks of up to three dimensions, any kinds, each with its own speed.
struct RandomCase {
  std::vector<topology::NetworkDimension> dimensions;
  std::vector<TimedMessage> messages;
};
RandomCase random_case() {
  RandomCase drawn;
  std::int64_t devices = 1;
  const int count = *rc::gen::inRange(1, 4);
  for (int d = 0; d < count; ++d) {
    const auto kind =
        *rc::gen::element(Kind::ring, Kind::fully_connected, Kind::switched, Kind::mesh);
    const std::int64_t size = *rc::gen::inRange<std::int64_t>(2, 6);
    drawn.dimensions.push_back(
        dimension(kind, size, *rc::gen::inRange(1, 200), Time(*rc::gen::inRange(0, 5'000'000))));
    devices *= size;
  }
  const int messages = *rc::gen::inRange(1, 30);
  for (int m = 0; m < messages; ++m) {
    drawn.messages.push_back(
        {*rc::gen::inRange<std::int64_t>(0, devices), *rc::gen::inRange<std::int64_t>(0, devices),
         Bytes(*rc::gen::inRange(1, 2'000'000)), Time(*rc::gen::inRange(0, 20'000'000))});
  }
  return drawn;
}

Time last(const std::vector<Time>& times) {
  return *std::max_element(times.begin(), times.end());
}

RC_GTEST_PROP(FifoNetwork, IsNeverFasterThanTheBandwidthBound, ()) {
  const RandomCase drawn = random_case();
  const topology::LinkMap map(drawn.dimensions);
  FifoNetwork network(map.links());
  const auto times = arrivals(network, map, drawn.messages);
  for (std::size_t m = 0; m < times.size(); ++m) {
    std::vector<topology::Hop> route;
    map.route(drawn.messages[m].source, drawn.messages[m].destination, route);
    Time latency{0};
    Time slowest{0};
    for (const topology::Hop& hop : route) {
      latency += hop.latency;
      slowest = std::max(slowest, drawn.messages[m].bytes / hop.bandwidth);
    }
    RC_ASSERT(times[m] >= drawn.messages[m].when + latency + slowest);
  }
  for (topology::LinkId link = 0; link < map.links(); ++link) {
    RC_ASSERT(network.busy(link) <= last(times));
  }
}

RC_GTEST_PROP(FifoNetwork, AloneTakesTheClosedForm, ()) {
  RandomCase drawn = random_case();
  drawn.messages.resize(1);
  const topology::LinkMap map(drawn.dimensions);
  std::vector<topology::Hop> route;
  map.route(drawn.messages[0].source, drawn.messages[0].destination, route);
  Time through = drawn.messages[0].when;
  Time slowest{0};
  for (const topology::Hop& hop : route) {
    const Time held = drawn.messages[0].bytes / hop.bandwidth;
    through += hop.latency;
    slowest = std::max(slowest, held);
  }
  RC_ASSERT(run_fifo(drawn.dimensions, drawn.messages)[0] == through + slowest);
}

RC_GTEST_PROP(FifoNetwork, OneLinkEndsSoonerWithMoreBandwidth, ()) {
  // On one link the end of first come first served falls with bandwidth. (Over several links it
  // need not: another order may be worse, as with every queue without preemption.)
  const int messages = *rc::gen::inRange(1, 20);
  const int gbps = *rc::gen::inRange(1, 100);
  std::vector<TimedMessage> sent;
  for (int m = 0; m < messages; ++m) {
    sent.push_back(
        {0, 1, Bytes(*rc::gen::inRange(1, 2'000'000)), Time(*rc::gen::inRange(0, 20'000'000))});
  }
  const auto slow = run_fifo({dimension(Kind::ring, 2, gbps, 1_us)}, sent);
  const auto fast = run_fifo({dimension(Kind::ring, 2, gbps + 1, 1_us)}, sent);
  for (std::size_t m = 0; m < slow.size(); ++m) {
    RC_ASSERT(fast[m] <= slow[m]);
  }
}

RC_GTEST_PROP(FifoNetwork, MoreBandwidthEverywhereScalesSerialisation, ()) {
  // Without latencies and with all messages at 0, twice the bandwidth is half the time (to the
  // rounding of a picosecond per hop and message).
  RandomCase drawn = random_case();
  for (TimedMessage& message : drawn.messages) {
    message.when = Time(0);
    message.bytes = Bytes(message.bytes.value() * 2000);
  }
  auto faster = drawn.dimensions;
  for (std::size_t d = 0; d < faster.size(); ++d) {
    drawn.dimensions[d].latency = Time(0);
    drawn.dimensions[d].bandwidth = 100_GBps;
    faster[d] = drawn.dimensions[d];
    faster[d].bandwidth = 200_GBps;
  }
  const auto slow = run_fifo(drawn.dimensions, drawn.messages);
  const auto fast = run_fifo(faster, drawn.messages);
  RC_ASSERT(std::abs((last(slow) - last(fast) * 2).value()) < 10'000);
}

}  // namespace
}  // namespace orrery::network
