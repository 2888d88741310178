// SPDX-License-Identifier: Apache-2.0
/// The laws of FlowOptions. Links of 1 GB/s without latency unless said: 1 MB takes 1 ms.
#include "machine/network/congestion.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "machine/network/flows.h"
#include "machine/network/traffic.h"
#include "machine/topology/makers.h"

namespace orrery::network {
namespace {

using topology::LinkGraph;
using topology::Router;
using topology::Routing;

constexpr Bytes kFlowSize{1'000'000};

LinkGraph star(int hosts, const std::string& latency = "0us") {
  return *topology::parse_topology("leaf_spine:leaves=1,spines=1,hosts=" + std::to_string(hosts) +
                                       ",bandwidth=1 GB/s,latency=" + latency,
                                   "test");
}

FlowRun congested_on(const LinkGraph& graph, const std::vector<FlowRequest>& flows,
                     const FlowOptions& options, Routing routing = Routing::ecmp) {
  Router router(graph, routing, 1);
  return *run_flows(router, flows, options);
}

TEST(Congestion, IncastPaysForItsFanIn) {
  // 4 flows of 1 MB into host 0, a = 0.4: 4 ms * (1 + 0.4 * 3/4).
  const LinkGraph graph = star(5);
  const auto flows = make_traffic({.kind = Traffic::incast, .bytes = kFlowSize}, 5);
  EXPECT_NEAR(to_seconds(congested_on(graph, flows, {.incast_penalty = 0.4}).end), 5.2e-3, 1e-11);
  // One flow has no fan-in.
  EXPECT_NEAR(to_seconds(congested_on(graph, {flows[0]}, {.incast_penalty = 0.4}).end), 1e-3,
              1e-11);
}

TEST(Congestion, TheFanInIsThatOfTheMoment) {
  // Host 1 sends 1 MB to host 0, host 2 sends 2 MB: together 2.4 ms for the first 2 MB with a = 0.4
  // (1 + 0.4 / 2 = 1.2), then 1 ms for the last alone.
  const std::vector<FlowRequest> flows{{.source = 1, .target = 0, .bytes = kFlowSize},
                                       {.source = 2, .target = 0, .bytes = 2 * kFlowSize}};
  const FlowRun run = congested_on(star(3), flows, {.incast_penalty = 0.4});
  EXPECT_NEAR(to_seconds(run.finish[0]), 2.4e-3, 1e-11);
  EXPECT_NEAR(to_seconds(run.finish[1]), 3.4e-3, 1e-11);
}

TEST(Congestion, AFlowThatIsHeldUpHoldsUpOthersOfItsLink) {
  // Host 1 sends to 0, where 2, 3 and 4 send too, and to 5, where nobody does: half of its link's
  // flows are held up, which leaves 1 / (1 + 0.5 h) of it. Max-min: 1 -> 0 has a quarter, 1 -> 5
  // the rest of 1 / 1.25 GB/s (h = 0.5), 0.55.
  const std::vector<FlowRequest> flows{{.source = 1, .target = 0, .bytes = 10 * kFlowSize},
                                       {.source = 2, .target = 0, .bytes = 10 * kFlowSize},
                                       {.source = 3, .target = 0, .bytes = 10 * kFlowSize},
                                       {.source = 4, .target = 0, .bytes = 10 * kFlowSize},
                                       {.source = 1, .target = 5, .bytes = kFlowSize}};
  const FlowRun run = congested_on(star(6), flows, {.head_of_line = 0.5});
  EXPECT_NEAR(to_seconds(run.finish[4]), 1e-3 / 0.55, 1e-10);
  // The incast itself is as fast as before: its own links have more than they need.
  EXPECT_NEAR(to_seconds(run.end), 40e-3, 1e-10);
}

TEST(Congestion, SprayedFlowsEndWithTheirSlowestRoute) {
  // 4 hosts a leaf over 4 spines, all to the other leaf: a trunk has 4 flows over 4 routes, so it
  // gives 1 / (1 + z sqrt(3 / 256)).
  const LinkGraph graph = *topology::parse_topology(
      "leaf_spine:leaves=2,spines=4,hosts=4,bandwidth=1 GB/s,latency=0us", "test");
  std::vector<FlowRequest> flows;
  for (std::int32_t h = 0; h < 4; ++h) {
    flows.push_back({.source = h, .target = h + 4, .bytes = kFlowSize});
  }
  const double slower = 1 + 2 * std::sqrt(3.0 / 256);
  EXPECT_NEAR(to_seconds(congested_on(graph, flows, {.spray_imbalance = 2}, Routing::spray).end),
              1e-3 * slower, 1e-9);
  // Alone a flow needs a quarter of each trunk: its own link decides.
  EXPECT_NEAR(
      to_seconds(congested_on(graph, {flows[0]}, {.spray_imbalance = 2}, Routing::spray).end), 1e-3,
      1e-9);
}

TEST(Congestion, ARampDoublesEveryRoundTrip) {
  // Two links of 10 us: trips of 40 us. 10 kB in the first, 20 kB in the second; then 1 GB/s
  // (40 kB a trip): 100 kB end after 2 trips and 70 us, and arrive 20 us later.
  const std::vector<FlowRequest> flows{{.source = 0, .target = 1, .bytes = Bytes(100'000)}};
  const LinkGraph graph = star(2, "10us");
  EXPECT_NEAR(to_seconds(congested_on(graph, flows, {.ramp = Bytes(10'000)}).end), 170e-6, 1e-11);
  EXPECT_NEAR(to_seconds(congested_on(graph, flows, {}).end), 120e-6, 1e-11);
  // A first window of a trip or more changes nothing.
  EXPECT_NEAR(to_seconds(congested_on(graph, flows, {.ramp = Bytes(40'000)}).end), 120e-6, 1e-11);
}

TEST(Congestion, OverheadIsMoreBytes) {
  const std::vector<FlowRequest> flows{{.source = 0, .target = 1, .bytes = kFlowSize}};
  EXPECT_NEAR(to_seconds(congested_on(star(2), flows, {.overhead = 1.25}).end), 1.25e-3, 1e-11);
}

RC_GTEST_PROP(Congestion, OptionsOnlySlowOnePhaseDown, ()) {
  const LinkGraph graph = *topology::parse_topology("fat_tree:k=4", "test");
  std::vector<FlowRequest> flows;
  const int count = *rc::gen::inRange(1, 30);
  for (int f = 0; f < count; ++f) {
    const auto source = *rc::gen::inRange(0, 16);
    flows.push_back({.source = source,
                     .target = (source + *rc::gen::inRange(1, 16)) % 16,
                     .bytes = Bytes(*rc::gen::inRange(1, 1'000'000))});
  }
  const auto routing = *rc::gen::element(Routing::ecmp, Routing::spray, Routing::colour);
  const FlowOptions options{.incast_penalty = *rc::gen::inRange(0, 3) * 0.3,
                            .head_of_line = *rc::gen::inRange(0, 3) * 0.3,
                            .spray_imbalance = *rc::gen::inRange(0, 3) * 0.7,
                            .ramp = Bytes(*rc::gen::inRange(0, 2) * 20'000),
                            .overhead = 1 + *rc::gen::inRange(0, 3) * 0.1};
  const FlowRun free = congested_on(graph, flows, {}, routing);
  const FlowRun crowded = congested_on(graph, flows, options, routing);
  // Every link's bytes still pass it, and no faster than it is.
  for (std::size_t l = 0; l < graph.links.size(); ++l) {
    RC_ASSERT(std::abs(crowded.load[l] - free.load[l] * options.overhead) < 1e-3);
    RC_ASSERT(to_seconds(crowded.end) >= crowded.load[l] / 12.5e9 * (1 - 1e-9));
  }
  if (options == FlowOptions{}) {
    RC_ASSERT(free.finish == crowded.finish);
  }
}

}  // namespace
}  // namespace orrery::network
