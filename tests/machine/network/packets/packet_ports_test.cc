// SPDX-License-Identifier: Apache-2.0
/// Ports of hosts and switches: who waits where.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "machine/network/packets/packet.h"
#include "machine/network/traffic.h"
#include "machine/topology/makers.h"
#include "machine/topology/read.h"
#include "packet_runs.h"

namespace orrery::packets {
namespace {

using topology::LinkGraph;
using topology::Router;
using topology::Routing;

TEST(PacketPorts, NdpsCreditsWaitAtEachPortForWhatItSends) {
  // Two hosts on a switch, 12.5 GB/s, d = 1 us; s = 725.12 ns, a = 5.12 ns. The first packet is
  // there at 2 s + 2 d; the other host's own began s / 2 before. The credit waits for its second
  // half, and in the switch, where it comes a after it, for all but a of it again. Then the second
  // packet and its acknowledgement: (1/2 + 1) s + 2 d + a back, 2 s + 2 d there, 2 a + 2 d back.
  const LinkGraph graph = *topology::parse_topology("leaf_spine:leaves=1,spines=1,hosts=2", "test");
  const Time start = from_seconds((1.5 * 725.12 + 2000) * 1e-9);
  const std::vector<FlowRequest> flows{
      {.source = 0, .target = 1, .bytes = Bytes(18'000)},
      {.source = 1, .target = 0, .bytes = Bytes(9'000), .start = start}};
  Router router(graph, Routing::ecmp, 1);
  const auto run = run_packets(router, flows, {.protocol = Protocol::ndp, .window = 1, .paths = 1});
  ASSERT_TRUE(run);
  EXPECT_NEAR(to_seconds(run->finish[0]), (5.5 * 725.12 + 8000 + 3 * 5.12) * 1e-9, 1e-11);
}

TEST(PacketPorts, SprayedOnesUseAllPortsOfAHost) {
  // Two hosts with a port of 12.5 GB/s to each of two switches, both send 10 MB: 800 us of one
  // port's, 400 us of both. Ways by hash are up to a tenth off even, and the last packet waits for
  // its route.
  const auto graph = topology::read_topology(
      "hosts: [a, b]\nswitches: [l, r]\nlinks:\n"
      "  - {from: a, to: l, bandwidth: 100 Gbit/s, latency: 1 us}\n"
      "  - {from: a, to: r, bandwidth: 100 Gbit/s, latency: 1 us}\n"
      "  - {from: b, to: l, bandwidth: 100 Gbit/s, latency: 1 us}\n"
      "  - {from: b, to: r, bandwidth: 100 Gbit/s, latency: 1 us}\n",
      "ports.yaml");
  ASSERT_TRUE(graph) << graph.error().to_string();
  const auto flows =
      network::make_traffic({.kind = network::Traffic::ring, .bytes = Bytes(10'000'000)}, 2);
  for (const Protocol protocol : {Protocol::eqds, Protocol::ndp, Protocol::roce, Protocol::hpcc,
                                  Protocol::dcqcn, Protocol::swift}) {
    Router both(*graph, Routing::spray, 1);
    Router one(*graph, Routing::shortest, 1);
    const PacketOptions options{.protocol = protocol};
    const auto sprayed = run_packets(both, flows, options);
    ASSERT_TRUE(sprayed) << sprayed.error().to_string();
    EXPECT_GT(sprayed->end, 400_us) << name_of(protocol);
    EXPECT_LT(to_seconds(sprayed->end), 560e-6) << name_of(protocol);
    EXPECT_GT(run_packets(one, flows, options)->end, 800_us) << name_of(protocol);
  }
}

RC_GTEST_PROP(PacketPorts, EveryFlowEndsOnATorusWhoseRoutersAreHosts, ()) {
  // Routes by hash leave a host over any of its links.
  const LinkGraph graph = *topology::parse_topology("torus:3x4", "test");
  std::vector<FlowRequest> flows;
  const int count = *rc::gen::inRange(1, 20);
  for (int f = 0; f < count; ++f) {
    flows.push_back({.source = *rc::gen::inRange(0, 12),
                     .target = *rc::gen::inRange(0, 12),
                     .bytes = Bytes(*rc::gen::inRange(0, 300'000))});
  }
  PacketOptions options;
  options.protocol = *rc::gen::element(Protocol::eqds, Protocol::ndp, Protocol::swift);
  options.seed = *rc::gen::inRange<std::uint64_t>(0, 100);
  Router router(graph, *rc::gen::element(Routing::ecmp, Routing::spray), options.seed);
  const auto run = run_packets(router, flows, options);
  RC_ASSERT(run.has_value());
  RC_ASSERT(std::ranges::all_of(run->load, [](double bytes) { return bytes >= 0; }));
}

TEST(PacketPorts, RefusesWhatNeverEnds) {
  // 15 flows of 100 TB are 3.7e11 packets over 2 to 6 links.
  const LinkGraph graph = *topology::parse_topology("fat_tree:k=4", "test");
  Router router(graph, Routing::ecmp, 1);
  const auto flows = network::make_traffic(
      {.kind = network::Traffic::incast, .bytes = Bytes(100'000'000'000'000)}, 16);
  const auto run = run_packets(router, flows, {});
  ASSERT_FALSE(run);
  EXPECT_NE(run.error().to_string().find("packets pass links about"), std::string::npos);
}

}  // namespace
}  // namespace orrery::packets
