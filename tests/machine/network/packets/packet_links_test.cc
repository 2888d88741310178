// SPDX-License-Identifier: Apache-2.0
#include "machine/network/packets/packet_links.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

#include "../run_messages.h"
#include "machine/network/fair.h"
#include "machine/topology/makers.h"
#include "packet_runs.h"

namespace orrery::packets {
namespace {

using orrery::testing::arrivals;
using orrery::testing::dimension;
using orrery::testing::TimedMessage;
using topology::DimensionKind;
using topology::LinkMap;

constexpr Time kMicrosecond = 1_us;

/// Returns a switch of 1 GB/s and 1 us.
LinkMap switch_of(std::int64_t devices) {
  return LinkMap({dimension(DimensionKind::switched, devices, 1, kMicrosecond)});
}

using Graph = std::shared_ptr<const topology::LinkGraph>;

Graph graph_of(const char* spec) {
  return std::make_shared<const topology::LinkGraph>(*topology::parse_topology(spec, "test"));
}

/// The graph must outlive it.
LinkMap laid(const Graph& graph, topology::Routing routing) {
  LinkMap map({dimension(DimensionKind::switched, graph->hosts, 12.5, kMicrosecond)});
  map.lay({.spec = "test", .routing = routing, .seed = 1, .graph = graph});
  return map;
}

std::vector<Time> packet_arrivals(const LinkMap& map, const PacketOptions& options,
                                  const std::vector<TimedMessage>& messages) {
  PacketLinks links(map, options);
  EXPECT_TRUE(links.check());
  return arrivals(links, map, messages);
}

TEST(PacketLinks, AMessageAloneIsItsClosedForm) {
  // RoCE, 100 packets of 9,064 B at 1 GB/s: (H-1) s + N s + 1 us, H = 2.
  const LinkMap map = switch_of(3);
  EXPECT_EQ(
      packet_arrivals(map, {.protocol = Protocol::roce}, {{0, 1, Bytes(900'000), 5_us}}).front(),
      5_us + Time(9'064'000) * 101 + kMicrosecond);
  // EQDS, a first window of 50 packets at 100 Gbit/s, 4 here: 4 of 4,150 B, and one of 100 B more
  // behind 3, for which it waits at the switch: s + 3 s + 164 ns + 1 us.
  EXPECT_EQ(packet_arrivals(map, {}, {{0, 1, Bytes(4 * 4'086), Time(0)}}).front(),
            Time(4'150'000) * 5 + kMicrosecond);
  EXPECT_EQ(packet_arrivals(map, {}, {{0, 1, Bytes(3 * 4'086 + 100), Time(0)}}).front(),
            Time(4'150'000) * 4 + Time(164'000) + kMicrosecond);
}

TEST(PacketLinks, WhatAWayStatesBeyondItsLinksComesAfterAndItsRateCounts) {
  // 3 us of software, and 0.5 of the bandwidth: packets take 18,128 ns on both links.
  const LinkMap map = switch_of(2);
  PacketLinks links(map, {.protocol = Protocol::roce});
  std::vector<topology::Hop> route;
  map.route(0, 1, route);
  for (topology::Hop& hop : route) {
    hop.bandwidth = hop.bandwidth * 0.5;
  }
  route.back().latency += 3_us;
  engine::EventQueue queue;
  links.start({0, 1, Bytes(90'000)}, route, queue);
  links.settle(queue);
  ASSERT_FALSE(queue.empty());
  EXPECT_EQ(queue.next_time(), Time(18'128'000) * 11 + 4_us);
}

TEST(PacketLinks, AMessageToItselfArrivesAtOnce) {
  EXPECT_EQ(packet_arrivals(switch_of(2), {}, {{1, 1, Bytes(1000), 7_us}}).front(), 7_us);
}

TEST(PacketLinks, AMessageThatBeginsLaterSharesTheRest) {
  // Both of 100 packets from one port, the second 10 packets later: 10 alone, then in turn. The
  // first's last is the 190th to leave, the second's the 200th.
  const Time s(9'064'000);
  const auto found =
      packet_arrivals(switch_of(3), {.protocol = Protocol::roce},
                      {{0, 1, Bytes(900'000), Time(0)}, {0, 2, Bytes(900'000), s * 10}});
  EXPECT_GE(found[0], s * 190 + kMicrosecond);
  EXPECT_LE(found[0], s * 192 + kMicrosecond);
  EXPECT_EQ(found[1], s * 201 + kMicrosecond);
}

class EveryProtocol : public ::testing::TestWithParam<Protocol> {};
INSTANTIATE_TEST_SUITE_P(PacketLinks, EveryProtocol,
                         ::testing::Values(Protocol::eqds, Protocol::ndp, Protocol::roce,
                                           Protocol::hpcc, Protocol::dcqcn, Protocol::swift),
                         [](const auto& param) { return std::string(name_of(param.param)); });

TEST_P(EveryProtocol, OneMessageAfterAnotherTakesTheSame) {
  // 700 of them: places of those that are gone are given back on the way.
  const LinkMap map = switch_of(4);
  const Time apart = 20'000_us;
  std::vector<TimedMessage> messages;
  for (std::int64_t i = 0; i < 700; ++i) {
    messages.push_back({i % 3, 3, Bytes(200'000), apart * i});
  }
  const auto found = packet_arrivals(map, {.protocol = GetParam()}, messages);
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i] - messages[i].when, found[0]) << i;
  }
}

TEST_P(EveryProtocol, AllArriveAndNoLinkIsFasterThanItIs) {
  rc::check([&] {
    constexpr std::int64_t kDevices = 8;
    const bool tree = *rc::gen::arbitrary<bool>();
    const Graph graph = graph_of("leaf_spine:leaves=2,spines=2,hosts=4");
    const LinkMap map =
        tree ? laid(graph, *rc::gen::element(topology::Routing::ecmp, topology::Routing::spray))
             : LinkMap({dimension(DimensionKind::fully_connected, 2, 12.5, kMicrosecond),
                        dimension(DimensionKind::switched, 4, 12.5, kMicrosecond)});
    std::vector<TimedMessage> messages;
    std::map<std::int64_t, Bytes> into;
    for (int i = *rc::gen::inRange(1, 30); i > 0; --i) {
      const auto from = *rc::gen::inRange<std::int64_t>(0, kDevices);
      const auto ahead = *rc::gen::inRange<std::int64_t>(1, kDevices);
      messages.push_back({from, (from + ahead) % kDevices,
                          Bytes(*rc::gen::inRange<std::int64_t>(1, 300'000)),
                          Time(*rc::gen::inRange<std::int64_t>(0, 30'000'000))});
      into[messages.back().destination] += messages.back().bytes;
    }
    const PacketOptions options{.protocol = GetParam()};
    const auto found = packet_arrivals(map, options, messages);
    Time last{0};
    for (std::size_t i = 0; i < messages.size(); ++i) {
      RC_ASSERT(found[i] > messages[i].when + kMicrosecond / 2);
      last = std::max(last, found[i]);
    }
    // A device takes 12.5 GB/s over each of its two kinds of links at most.
    for (const auto& [device, bytes] : into) {
      RC_ASSERT(last >= bytes / Bandwidth(25e9));
    }
    RC_ASSERT(found == packet_arrivals(map, options, messages));
  });
}

TEST(PacketLinks, MessagesTogetherAreTheBareRunsFlows) {
  // An incast of 5 hosts on a tree of k = 4, one way each: the sender hears 64 B / C + 1 us for
  // each link after the last packet has come, for nothing goes the other way.
  const Graph graph = graph_of("fat_tree:k=4,bandwidth=100Gbit/s");
  const LinkMap map = laid(graph, topology::Routing::ecmp);
  std::vector<TimedMessage> messages;
  std::vector<FlowRequest> flows;
  std::vector<std::vector<std::int32_t>> routes;
  for (const std::int32_t source : {1, 2, 3, 7, 12}) {
    messages.push_back({source, 0, Bytes(90'000 + source * 20'000), Time(0)});
    flows.push_back({.source = source, .target = 0, .bytes = messages.back().bytes});
    std::vector<topology::Hop> hops;
    map.route(source, 0, hops);
    routes.emplace_back();
    for (const topology::Hop& hop : hops) {
      routes.back().push_back(static_cast<std::int32_t>(hop.link));
    }
  }
  const PacketOptions options{.protocol = Protocol::roce};
  const PacketRun run = run_packets(*graph, flows, routes, options);
  const auto found = packet_arrivals(map, options, messages);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const auto links = static_cast<std::int64_t>(routes[f].size());
    EXPECT_EQ(run.finish[f], found[f] + (Bytes(64) / Bandwidth(12.5e9) + kMicrosecond) * links);
  }
}

TEST(PacketLinks, PausesThatWaitForEachOtherAreSaid) {
  // Everyone sends two hops around a ring of four with room for one packet.
  const LinkMap map({dimension(DimensionKind::ring, 4, 1, kMicrosecond)});
  std::vector<TimedMessage> messages;
  for (std::int64_t device = 0; device < 4; ++device) {
    messages.push_back({device, (device + 2) % 4, Bytes(900'000), Time(0)});
  }
  PacketLinks links(map, {.protocol = Protocol::roce, .pause = 1, .resume = 1});
  arrivals(links, map, messages);
  ASSERT_TRUE(links.stall());
  EXPECT_NE(links.stall()->find("4 messages never arrive"), std::string::npos);

  PacketLinks trims(map, {.protocol = Protocol::eqds});
  arrivals(trims, map, messages);
  EXPECT_FALSE(trims.stall());
}

TEST(PacketLinks, LinksThatNobodySharesAreRefused) {
  topology::LinkGraph shared = *graph_of("leaf_spine:leaves=2,spines=1,hosts=2");
  shared.links[3].pipe = true;
  const Graph graph = std::make_shared<const topology::LinkGraph>(std::move(shared));
  const LinkMap map = laid(graph, topology::Routing::ecmp);
  const auto refused = PacketLinks(map, {}).check();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().to_string().find(graph->link_name(3)), std::string::npos);
}

}  // namespace
}  // namespace orrery::packets
