// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/network.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>

#include "machine/network/flit/link_order.h"
#include "machine/topology/read.h"

namespace orrery::flit {
namespace {

using topology::DimensionKind;
using topology::LinkMap;
using topology::NetworkDimension;

/// 50 bytes per cycle of 1 ns, 100 cycles; packets of 256 bytes: a head and 6 flits.
FabricSettings chimera() {
  return {.flit = 50_B, .packet = 256_B, .cycle = 1_ns, .ports = Ports::node, .buffer = 318};
}

NetworkDimension dimension(DimensionKind kind, std::int64_t size, Bandwidth bandwidth,
                           Time latency) {
  NetworkDimension made;
  made.name = "links";
  made.kind = kind;
  made.size = size;
  made.bandwidth = bandwidth;
  made.latency = latency;
  return made;
}

struct Sent {
  Time start{0};
  std::int64_t from = 0;
  std::int64_t to = 0;
  Bytes bytes{0};
};

struct Outcome {
  std::vector<Time> ends;
  std::uint64_t cycles = 0;
};

/// Ends of all messages, by place.
Outcome run_network(const LinkMap& map, const FabricSettings& settings,
                    const std::vector<Sent>& messages, bool shortcuts) {
  constexpr std::uint32_t kSend = 1;
  FlitNetwork network(map, settings, shortcuts);
  EXPECT_TRUE(network.check());
  engine::EventQueue queue;
  std::vector<std::vector<topology::Hop>> routes(messages.size());
  for (std::uint32_t i = 0; i < messages.size(); ++i) {
    map.route(messages[i].from, messages[i].to, routes[i]);
    queue.push(messages[i].start, kSend, i);
  }
  Outcome outcome{std::vector<Time>(messages.size()), 0};
  std::vector<std::uint32_t> owner(messages.size());
  while (!queue.empty()) {
    const auto event = queue.pop();
    if (event.kind == kSend) {
      owner[network.start(messages[event.subject].bytes, routes[event.subject], queue)] =
          event.subject;
    } else if (network.handle(event, queue)) {
      outcome.ends[owner[event.subject]] = queue.now();
    }
    if (queue.instant_is_over()) {
      network.settle(queue);
    }
  }
  outcome.cycles = network.cycles_simulated();
  return outcome;
}

Time step(const LinkMap& map, const FabricSettings& settings, Bytes bytes, bool shortcuts) {
  return run_network(map, settings, {{Time(0), 0, 1, bytes}}, shortcuts).ends[0];
}

TEST(FlitNetwork, StepsWithoutContentionAreThosePublished) {
  // F(B) = 7 floor(B/256) + (r > 0 ? ceil(8 r / 400) + 1 : 0); one hop F + 109, over a switch whose
  // routing takes a cycle F + 205 (Chimera's artifact, ISCA 2025, 2x2 and 4-GPU groups).
  const LinkMap ring({dimension(DimensionKind::ring, 2, Bandwidth(50e9), 100_ns)});
  FabricSettings at_switch = chimera();
  at_switch.routing_delay = 1;
  at_switch.credit_delay = 1;
  const LinkMap gpus({dimension(DimensionKind::switched, 4, Bandwidth(50e9), 200_ns)});
  for (const bool shortcuts : {true, false}) {
    const auto hop = [&](Bytes bytes) { return step(ring, chimera(), bytes, shortcuts); };
    const auto over = [&](Bytes bytes) { return step(gpus, at_switch, bytes, shortcuts); };
    // All-gather of 2x2, 4 KB and 64 KB: 28 + 109 + 56 + 109, 448 + 109 + 896 + 109.
    EXPECT_EQ(hop(1_KiB) + hop(2_KiB), 302_ns);
    EXPECT_EQ(hop(16_KiB) + hop(32_KiB), 1562_ns);
    // Reduce-scatter is 3 cycles more, an all-reduce both and 1: 305, 1565; 608, 3128.
    EXPECT_EQ(hop(2_KiB) + hop(1_KiB) + 3_ns, 305_ns);
    EXPECT_EQ(2 * (hop(1_KiB) + hop(2_KiB)) + 4_ns, 608_ns);
    EXPECT_EQ(2 * (hop(16_KiB) + hop(32_KiB)) + 4_ns, 3128_ns);
    // All-to-all of 4M in two steps: 2 (56 + 109), 2 (896 + 109).
    EXPECT_EQ(2 * hop(2_KiB), 330_ns);
    EXPECT_EQ(2 * hop(32_KiB), 2010_ns);
    // A message with a rest of 44 bytes: 7 + 1 + 1.
    EXPECT_EQ(hop(300_B), 118_ns);
    // Over the switch: AG = step(M/4) + step(M/2) = 28 + 205 + 56 + 205, RS = 2 AG + 7 as
    // published.
    EXPECT_EQ(over(1_KiB) + over(2_KiB), 494_ns);
    EXPECT_EQ(2 * (over(1_KiB) + over(2_KiB)) + 7_ns, 995_ns);
  }
}

TEST(FlitNetwork, TwoMessagesOverOneLinkShareIt) {
  // On a line of 3, both 0 -> 2 and 1 -> 2 pass the last link: 2 x 70 flits in a row, whoever
  // comes first.
  const LinkMap line({dimension(DimensionKind::mesh, 3, Bandwidth(100e9), 1_ns)});
  const std::vector<Sent> both{{Time(0), 0, 2, 2560_B}, {Time(0), 1, 2, 2560_B}};
  const Outcome outcome = run_network(line, chimera(), both, true);
  const Time last = std::max(outcome.ends[0], outcome.ends[1]);
  EXPECT_GE(last, Time(1000) * (140 + 9));
  EXPECT_LE(last, Time(1000) * (140 + 20));
  EXPECT_GT(outcome.cycles, 100U);
}

TEST(FlitNetwork, MessagesThatDoNotMeetNeedNoCycle) {
  const LinkMap ring({dimension(DimensionKind::ring, 8, Bandwidth(100e9), 100_ns)});
  std::vector<Sent> steps;
  for (std::int64_t i = 0; i < 8; ++i) {
    steps.push_back({Time(0), i, (i + 1) % 8, 1_MiB});
  }
  EXPECT_EQ(run_network(ring, chimera(), steps, true).cycles, 0U);
}

/// Random messages on a random network of several dimensions.
RC_GTEST_PROP(FlitNetwork, ShortcutsChangeNothing, ()) {
  const auto random_dimension = [] {
    const DimensionKind kind =
        *rc::gen::element(DimensionKind::ring, DimensionKind::mesh, DimensionKind::switched,
                          DimensionKind::fully_connected);
    return dimension(kind, *rc::gen::inRange(2, 6),
                     Bandwidth(1e9 * *rc::gen::element(20, 50, 64, 100)),
                     1_ns * *rc::gen::element(0, 3, 40));
  };
  std::vector<NetworkDimension> dimensions{random_dimension()};
  if (*rc::gen::arbitrary<bool>()) {
    dimensions.push_back(random_dimension());
  }
  const LinkMap map(dimensions);
  FabricSettings settings{.flit = 50_B, .packet = *rc::gen::element(50_B, 256_B)};
  settings.ports = *rc::gen::element(Ports::link, Ports::node);
  settings.flow_control = *rc::gen::element(FlowControl::wormhole, FlowControl::cut_through);
  settings.vcs = *rc::gen::inRange(2, 5);
  std::vector<Sent> messages;
  Time now{0};
  for (int i = *rc::gen::inRange(1, 12); i > 0; --i) {
    now += 1_ns * *rc::gen::element(0, 7, 300, 2000);
    const std::int64_t from = *rc::gen::inRange<std::int64_t>(0, map.devices());
    const std::int64_t to = *rc::gen::inRange<std::int64_t>(0, map.devices());
    messages.push_back({now, from, to, Bytes(*rc::gen::element(0, 1, 50, 300, 5000))});
  }
  const Outcome fast = run_network(map, settings, messages, true);
  const Outcome all = run_network(map, settings, messages, false);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    RC_ASSERT(fast.ends[i].value() == all.ends[i].value());
  }
}

/// Holds devices on a switch, laid on a network of links, which must outlive its map.
struct Laid {
  topology::Wires wires;
  LinkMap map;

  Laid(const std::string& spec, std::int64_t devices,
       topology::Routing routing = topology::Routing::automatic)
      : wires{.spec = spec, .routing = routing, .graph = {}},
        map({dimension(DimensionKind::switched, devices, Bandwidth(50e9), 0_ns)}) {
    auto graph = topology::load_topology(spec, "test");
    EXPECT_TRUE(graph) << graph.error().to_string();
    wires.graph = std::make_shared<const topology::LinkGraph>(std::move(*graph));
    map.lay(wires);
  }
};

LinkOrder order_of(const LinkMap& map) {
  return order_links(map.links(), [&](const auto& visit) {
    for (std::int64_t from = 0; from < map.devices(); ++from) {
      for (std::int64_t to = 0; to < map.devices(); ++to) {
        std::vector<topology::Hop> hops;
        map.route(from, to, hops);
        visit(hops);
      }
    }
  });
}

TEST(FlitOnLinks, ClassesByHand) {
  // Up and down a tree, and dimension by dimension over a mesh, nothing goes in a circle. A ring is
  // cut in one place, which a route passes at most once; a torus in one place of each ring, of
  // which a route passes two.
  const auto classes = [](const char* spec, std::int64_t devices) {
    return order_of(Laid(spec, devices).map).classes;
  };
  EXPECT_EQ(classes("leaf_spine:leaves=3,spines=2,hosts=2", 6), 1);
  EXPECT_EQ(classes("fat_tree:k=4", 16), 1);
  EXPECT_EQ(classes("mesh:shape=3x4", 12), 1);
  EXPECT_EQ(classes("torus:shape=6", 6), 2);
  EXPECT_GE(classes("torus:shape=4x5", 20), 2);
  EXPECT_LE(classes("torus:shape=4x5", 20), 3);
}

TEST(FlitOnLinks, AMessageAloneTakesTheClosedForm) {
  // Host, leaf, spine, leaf, host: 4 links of 100 cycles, the engine's routers at their ends
  // besides: 2560 B are 10 packets, F = 70; F - 1 + 2 + 3 H + L with H = 5 routers, L = 400 + 2.
  const Laid laid(
      "leaf_spine:leaves=2,spines=1,hosts=2,bandwidth=50 GB/s,uplink_bandwidth=50 GB/s,"
      "latency=100 ns,uplink_latency=100 ns",
      4);
  FabricSettings settings = chimera();
  settings.buffer = 512;
  const Time fast = run_network(laid.map, settings, {{Time(0), 0, 3, 2560_B}}, true).ends[0];
  EXPECT_EQ(fast, run_network(laid.map, settings, {{Time(0), 0, 3, 2560_B}}, false).ends[0]);
  EXPECT_EQ(fast, 1_ns * (70 - 1 + 2 + 3 * 5 + 402));
}

TEST(FlitOnLinks, ATrunkIsShared) {
  // Both pass the one cable between the leaves: 2 x 70 flits in a row.
  const Laid laid(
      "leaf_spine:leaves=2,spines=1,hosts=2,bandwidth=50 GB/s,uplink_bandwidth=50 GB/s,"
      "latency=1 ns,uplink_latency=1 ns",
      4);
  const std::vector<Sent> both{{Time(0), 0, 2, 2560_B}, {Time(0), 1, 3, 2560_B}};
  const Outcome outcome = run_network(laid.map, chimera(), both, true);
  const Time last = std::max(outcome.ends[0], outcome.ends[1]);
  EXPECT_GE(last, 140_ns);
  EXPECT_LE(last, 175_ns);
}

TEST(FlitOnLinks, WhatFlitsCannotDoIsRefused) {
  const Laid sprayed("leaf_spine:leaves=2,spines=2,hosts=2", 4, topology::Routing::spray);
  const auto checked = FlitNetwork(sprayed.map, chimera(), true).check();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().mistakes.front().field, "topology.routing");
}

/// Every ordered pair of hosts of any network of links at once, with as little room as a packet
/// needs: all arrive, by shortcuts or without.
RC_GTEST_PROP(FlitOnLinks, AllArriveOnAnyNetworkAndShortcutsChangeNothing, ()) {
  const auto spec = *rc::gen::element<std::string>(
      "leaf_spine:leaves=3,spines=2,hosts=2", "torus:shape=2x4", "torus:shape=3x3,hosts=1",
      "mesh:shape=3x2", "dragonfly:hosts=1,routers=2,globals=2", "fat_tree:k=4",
      "hammingmesh:board=2x2,shape=2x1", "flattened_butterfly:shape=3x3,hosts=1");
  auto graph = topology::load_topology(spec, "test");
  RC_ASSERT(graph.has_value());
  const Laid laid(spec, graph->hosts);
  const FabricSettings settings{.flit = 50_B,
                                .packet = 100_B,
                                .cycle = 1_ns,
                                .ports = *rc::gen::element(Ports::link, Ports::node),
                                .vcs = *rc::gen::inRange(1, 3),
                                .buffer = 3};
  std::vector<Sent> messages;
  for (std::int64_t from = 0; from < laid.map.devices(); ++from) {
    for (std::int64_t to = 0; to < laid.map.devices(); ++to) {
      messages.push_back(
          {1_ns * *rc::gen::element(0, 0, 5, 40), from, to, Bytes(*rc::gen::element(0, 50, 700))});
    }
  }
  std::ranges::stable_sort(messages, {}, &Sent::start);
  const Outcome fast = run_network(laid.map, settings, messages, true);
  const Outcome all = run_network(laid.map, settings, messages, false);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    RC_ASSERT(fast.ends[i].value() == all.ends[i].value());
    RC_ASSERT(messages[i].from == messages[i].to || messages[i].bytes == Bytes(0) ||
              fast.ends[i] > messages[i].start);
  }
}

}  // namespace
}  // namespace orrery::flit
