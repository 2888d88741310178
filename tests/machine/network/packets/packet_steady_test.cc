// SPDX-License-Identifier: Apache-2.0
/// Phases in which rates stay as they are, skipped.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "packet_runs.h"

namespace orrery::packets {
namespace {

using topology::LinkGraph;

TEST(PacketSteady, ASteadyPhaseIsSkipped) {
  // One flow of 100 MB at line rate: nothing but its first and last packets needs to run, and its
  // closed form stays: N = 11 190 packets of 9064 B, 6 links.
  const LinkGraph graph = tree(4, "100Gbit/s");
  const std::vector<FlowRequest> flows{{.source = 0, .target = 15, .bytes = Bytes(100'000'000)}};
  const PacketRun all = run_packets_on(graph, flows, {.protocol = Protocol::roce});
  const PacketRun some = run_packets_on(graph, flows, {.protocol = Protocol::roce, .steady = 0.01});
  EXPECT_EQ(all.skipped, 0U);
  EXPECT_GT(some.skipped * 10, some.packets * 9);
  EXPECT_LT(some.events * 10, all.events);
  EXPECT_EQ(some.packets, all.packets);
  EXPECT_NEAR(to_seconds(some.end) / to_seconds(all.end), 1, 1e-4);
  for (std::size_t l = 0; l < all.load.size(); ++l) {
    EXPECT_NEAR(some.load[l], all.load[l], 1) << graph.link_name(l);
  }
}

TEST(PacketSteady, WhatSkipsMissNoStart) {
  // The second flow begins in the middle of the first and shares its last link, where both then
  // have half: both end within 1 % of the run of all packets.
  const LinkGraph graph = tree(4, "100Gbit/s");
  const std::vector<FlowRequest> flows{
      {.source = 4, .target = 0, .bytes = Bytes(60'000'000)},
      {.source = 8, .target = 0, .bytes = Bytes(60'000'000), .start = 2_ms}};
  for (const Protocol protocol : {Protocol::eqds, Protocol::ndp, Protocol::roce}) {
    const PacketRun all = run_packets_on(graph, flows, {.protocol = protocol});
    const PacketRun some = run_packets_on(graph, flows, {.protocol = protocol, .steady = 0.01});
    EXPECT_GT(some.skipped, 1000U) << name_of(protocol);
    for (std::size_t f = 0; f < flows.size(); ++f) {
      EXPECT_NEAR(to_seconds(some.finish[f]) / to_seconds(all.finish[f]), 1, 0.01)
          << name_of(protocol);
    }
  }
}

RC_GTEST_PROP(PacketSteady, SkippingIsOffByAPercent, ()) {
  // The error that packet.h states: 1 % where rates may change by 1 %.
  const LinkGraph graph = tree(4, "100Gbit/s");
  std::vector<FlowRequest> flows;
  const int count = *rc::gen::inRange(1, 6);
  for (int f = 0; f < count; ++f) {
    const auto source = *rc::gen::inRange(0, 16);
    flows.push_back({.source = source,
                     .target = (source + *rc::gen::inRange(1, 16)) % 16,
                     .bytes = Bytes(*rc::gen::inRange(1, 8) * 1'000'000),
                     .start = Time(*rc::gen::inRange(0, 3) * 100'000'000)});
  }
  PacketOptions options;
  options.protocol = *rc::gen::element(Protocol::eqds, Protocol::ndp, Protocol::roce);
  const PacketRun all = run_packets_on(graph, flows, options);
  options.steady = 0.01;
  const PacketRun some = run_packets_on(graph, flows, options);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const double took = to_seconds(all.finish[f] - flows[f].start);
    RC_ASSERT(std::abs(to_seconds(some.finish[f] - all.finish[f])) <= 0.01 * took);
  }
}

}  // namespace
}  // namespace orrery::packets
