// SPDX-License-Identifier: Apache-2.0
#include "machine/network/fair.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>

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

/// Rates by plain water-filling: every round the link with the least share fills. The reference.
std::vector<double> water_filling(const std::vector<std::vector<topology::Hop>>& routes,
                                  const std::vector<FlowTerms>& terms,
                                  const std::vector<double>& capacity) {
  std::vector<double> rate(routes.size(), -1);
  for (;;) {
    double least = std::numeric_limits<double>::infinity();
    std::size_t full = 0;
    bool at_cap = false;
    for (std::size_t f = 0; f < routes.size(); ++f) {
      const double level = terms[f].cap.value() / terms[f].weight;
      if (rate[f] < 0 && level < least) {
        least = level;
        full = f;
        at_cap = true;
      }
    }
    for (std::size_t l = 0; l < capacity.size(); ++l) {
      double spare = capacity[l];
      double wanted = 0;
      for (std::size_t f = 0; f < routes.size(); ++f) {
        for (const topology::Hop& hop : routes[f]) {
          if (hop.link == l) {
            const double part = capacity[l] / hop.bandwidth.value();
            (rate[f] < 0 ? wanted : spare) +=
                rate[f] < 0 ? terms[f].weight * part : -rate[f] * part;
          }
        }
      }
      if (wanted > 0 && std::max(spare, 0.0) / wanted < least) {
        least = std::max(spare, 0.0) / wanted;
        full = l;
        at_cap = false;
      }
    }
    if (least == std::numeric_limits<double>::infinity()) {
      return rate;
    }
    for (std::size_t f = 0; f < routes.size(); ++f) {
      const bool passes = std::any_of(routes[f].begin(), routes[f].end(),
                                      [&](const topology::Hop& hop) { return hop.link == full; });
      if (rate[f] < 0 && (at_cap ? f == full : passes)) {
        rate[f] = least * terms[f].weight;
      }
    }
  }
}

RC_GTEST_PROP(FairNetwork, EveryRateIsThatOfPlainWaterFilling, ()) {
  // Flows begin and end at random instants; after each the rates of all are compared.
  const auto links = *rc::gen::inRange<std::size_t>(1, 12);
  std::vector<double> capacity;
  for (std::size_t l = 0; l < links; ++l) {
    capacity.push_back(1e9 * *rc::gen::inRange(1, 20));
  }
  const auto count = *rc::gen::inRange<std::size_t>(1, 60);
  std::vector<std::vector<topology::Hop>> routes(count);
  std::vector<FlowTerms> terms(count);
  engine::EventQueue queue;
  for (std::size_t f = 0; f < count; ++f) {
    for (std::size_t l = 0; l < links; ++l) {
      if (*rc::gen::inRange(0, 3) == 0) {
        const double share = *rc::gen::element(1.0, 1.0, 0.5, 0.25);
        routes[f].push_back(
            {static_cast<topology::LinkId>(l), Bandwidth(capacity[l] / share), 0_us});
      }
    }
    if (routes[f].empty()) {
      routes[f].push_back({0, Bandwidth(capacity[0]), 0_us});
    }
    terms[f].weight = *rc::gen::element(1.0, 1.0, 2.0, 3.5);
    if (*rc::gen::inRange(0, 4) == 0) {
      terms[f].cap = Bandwidth(1e8 * *rc::gen::inRange(1, 50));
    }
    queue.push(Time(*rc::gen::inRange(0, 5) * 1'000'000), 0, static_cast<std::uint32_t>(f));
  }
  FairNetwork network(links);
  std::vector<TransferId> id_of(count);
  std::vector<std::size_t> live;
  while (!queue.empty()) {
    const auto event = queue.pop();
    if (event.kind == 0) {
      const std::size_t f = event.subject;
      id_of[f] = network.start(Bytes(*rc::gen::inRange(1, 2'000'000)), routes[f], queue, terms[f]);
      live.push_back(f);
    } else {
      // Drained flows leave at once: latency is 0, so the arrival comes at the same instant.
      if (network.handle(event, queue)) {
        std::erase_if(live, [&](std::size_t f) { return id_of[f] == event.subject; });
      }
    }
    if (queue.instant_is_over()) {
      network.settle(queue);
      std::vector<std::vector<topology::Hop>> live_routes;
      std::vector<FlowTerms> live_terms;
      for (const std::size_t f : live) {
        live_routes.push_back(routes[f]);
        live_terms.push_back(terms[f]);
      }
      const std::vector<double> rates = water_filling(live_routes, live_terms, capacity);
      for (std::size_t i = 0; i < live.size(); ++i) {
        const double found = network.rate(id_of[live[i]]).value();
        RC_ASSERT(std::abs(found - rates[i]) <= 1e-9 * rates[i]);
      }
    }
  }
  RC_ASSERT(live.empty());
}

TEST(FairNetwork, WeightsAndCapsShareALink) {
  // 100 GB/s: weights 1 and 3 beside one capped at 20: 80 are left, 20 and 60. 1 MB each: the
  // second ends at 16.67 us; then 80 of 100 go to the first, which has 0.667 MB left: 8.33 us more,
  // when the third has 0.5 MB left at 20 GB/s: 50 us.
  const std::vector<topology::Hop> route{{0, 100_GBps, 0_us}};
  engine::EventQueue queue;
  FairNetwork network(1);
  network.start(kMegabyte, route, queue);
  network.start(kMegabyte, route, queue, {.weight = 3});
  network.start(kMegabyte, route, queue, {.cap = 20_GBps});
  network.settle(queue);
  std::vector<double> ends(3);
  while (!queue.empty()) {
    const auto event = queue.pop();
    if (network.handle(event, queue)) {
      ends[event.subject] = to_seconds(queue.now());
    }
    if (queue.instant_is_over()) {
      network.settle(queue);
    }
  }
  EXPECT_NEAR(ends[0], 25e-6, 1e-11);
  EXPECT_NEAR(ends[1], 50e-6 / 3, 1e-11);
  EXPECT_NEAR(ends[2], 50e-6, 1e-11);
}

TEST(FairNetwork, ALostLinkHoldsItsFlowsUntilItIsBack) {
  // 1 MB at 100 GB/s; lost from 4 to 10 us, then half of it: 4 + 6 + 0.6 MB / 50 GB/s = 22 us.
  const std::vector<topology::Hop> route{{0, 100_GBps, 0_us}};
  engine::EventQueue queue;
  FairNetwork network(1);
  network.start(kMegabyte, route, queue);
  network.settle(queue);
  queue.push(4_us, 0, 0);
  queue.push(10_us, 1, 0);
  Time end{0};
  while (!queue.empty()) {
    const auto event = queue.pop();
    if (event.kind < FairNetwork::kFirstEvent) {
      network.scale(0, event.kind == 0 ? 0 : 0.5);
    } else if (network.handle(event, queue)) {
      end = queue.now();
    }
    if (queue.instant_is_over()) {
      network.settle(queue);
    }
  }
  EXPECT_NEAR(to_seconds(end), 22e-6, 1e-11);
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
    std::vector<topology::Hop> route;
    map.route(sent[m].source, sent[m].destination, route);
    Time least = sent[m].when;
    Time slowest{0};
    for (const topology::Hop& hop : route) {
      least += hop.latency;
      slowest = std::max(slowest, sent[m].bytes / hop.bandwidth);
    }
    RC_ASSERT(times[m] + Time(count) >= least + slowest);
  }
}

}  // namespace
}  // namespace orrery::network
