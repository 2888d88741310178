// SPDX-License-Identifier: Apache-2.0
// Flows on networks whose links break, by hand. 12.5 MB take 1 ms at 100 Gbit/s; every link adds 1
// us.
#include "machine/network/link_faults.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "machine/network/flows.h"
#include "machine/network/traffic.h"
#include "machine/topology/makers.h"

namespace orrery::network {
namespace {

using topology::Routing;

struct Case {
  topology::LinkGraph graph;
  Routing routing = Routing::shortest;

  Result<FlowRun> run(const std::vector<FlowRequest>& flows, const std::string& faults) const {
    topology::Router router(graph, routing, 3);
    return faults::parse_faults(faults, "faults.yaml")
        .and_then([&](const faults::FaultPlan& plan) {
          return faults::schedule_of(plan, places_of(graph));
        })
        .and_then([&](const faults::Schedule& schedule) {
          return run_flows(router, flows, {}, schedule);
        });
  }
  double load(const FlowRun& run, const std::string& link) const {
    return run.load[places_of(graph).links_named(link).front()];
  }
};

Case leaf_spine(int spines, Routing routing = Routing::shortest) {
  const std::string spec = "leaf_spine:leaves=2,hosts=1,spines=" + std::to_string(spines);
  return {std::move(*topology::parse_topology(spec, "--topology")), routing};
}

const std::vector<FlowRequest> kOne{
    {.source = 0, .target = 1, .bytes = Bytes(12'500'000), .start = Time(0)}};
constexpr Time kAlone = 1_ms + 4_us;

TEST(LinkFaults, HalfALinkTakesTwiceAsLongForTheRest) {
  // 0.5 ms at full rate, the other half at half the rate: 0.5 + 1 ms.
  const auto run = leaf_spine(1).run(
      kOne, "faults: [{kind: link, links: [host0->leaf0], bandwidth_share: 0.5, at: 500 us}]");
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(run->end, kAlone + 500_us);
  EXPECT_EQ(run->rerouted, 0U);
}

TEST(LinkFaults, WithoutAnotherWayItWaitsUntilTheLinkIsBack) {
  for (const char* what :
       {"kind: link, links: [leaf0--spine0], bandwidth_share: 0", "kind: node, nodes: [1]"}) {
    const auto run =
        leaf_spine(1).run(kOne, "{reroute_after: 1 ms, faults: [{" + std::string(what) +
                                    ", at: 500 us, lasts: 2 ms}]}");
    ASSERT_TRUE(run) << run.error().to_string();
    EXPECT_EQ(run->end, kAlone + 2_ms) << what;
    EXPECT_EQ(run->rerouted, 0U);
  }
}

TEST(LinkFaults, WithAnotherWayItWaitsUntilTheLossIsKnown) {
  // From 0.5 to 1.5 ms nothing moves, then the other half goes over the other spine.
  const Case two = leaf_spine(2);
  const auto run =
      two.run(kOne,
              "{reroute_after: 1 ms, "
              "faults: [{kind: link, links: [leaf0->spine0], bandwidth_share: 0, at: 500 us}]}");
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(run->end, kAlone + 1_ms);
  EXPECT_EQ(run->rerouted, 1U);
  EXPECT_NEAR(two.load(*run, "leaf0->spine0"), 6.25e6, 1);
  EXPECT_NEAR(two.load(*run, "leaf0->spine1"), 6.25e6, 1);
  EXPECT_NEAR(two.load(*run, "host0->leaf0"), 12.5e6, 1);
}

TEST(LinkFaults, ASprayedFlowGoesOnOverWhatIsLeft) {
  // Two hosts a leaf, two spines: sprayed, both flows have the full rate. One uplink less: half.
  Case spray{std::move(*topology::parse_topology("leaf_spine:leaves=2,hosts=2,spines=2", "")),
             Routing::spray};
  const std::vector<FlowRequest> flows{{0, 2, Bytes(12'500'000), Time(0)},
                                       {1, 3, Bytes(12'500'000), Time(0)}};
  const auto healthy = spray.run(flows, "faults: []");
  ASSERT_TRUE(healthy) << healthy.error().to_string();
  EXPECT_EQ(healthy->end, kAlone);
  const auto run =
      spray.run(flows,
                "{reroute_after: 0, "
                "faults: [{kind: link, links: [leaf0->spine0], bandwidth_share: 0, at: 500 us}]}");
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(run->end, kAlone + 500_us);
}

TEST(LinkFaults, ThenItGoesBackWhenTheLinkIs) {
  // Two flows of two spines; one spine is gone from 0.25 to 0.75 ms, known at once: in this time
  // each has half. 0.25 + 0.5 / 2 are done, 0.5 ms are left.
  const Case spray{std::move(*topology::parse_topology("leaf_spine:leaves=2,hosts=2,spines=2", "")),
                   Routing::spray};
  const auto run =
      spray.run({{0, 2, Bytes(12'500'000), Time(0)}, {1, 3, Bytes(12'500'000), Time(0)}},
                "{reroute_after: 0, faults: [{kind: link, links: [leaf0--spine0], "
                "bandwidth_share: 0, at: 250 us, lasts: 500 us}]}");
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(run->end, kAlone + 250_us);
}

TEST(LinkFaults, AColouringIsDoneAgainWhereTheFileSaysSo) {
  // Four flows on four spines, one of which is gone from 0.25 ms on: of three uplinks a flow has
  // 3/4 of its rate if all are spread, a half if the one without a route joins another.
  const Case colour{
      std::move(*topology::parse_topology("leaf_spine:leaves=2,hosts=4,spines=4", "")),
      Routing::colour};
  std::vector<FlowRequest> flows;
  for (std::int32_t host = 0; host < 4; ++host) {
    flows.push_back({host, host + 4, Bytes(12'500'000), Time(0)});
  }
  const std::string loss =
      "reroute_after: 0, faults: [{kind: link, links: [leaf0--spine0], bandwidth_share: 0, "
      "at: 250 us";
  const auto hashed = colour.run(flows, "{" + loss + "}]}");
  const auto again = colour.run(flows, "{recolour: true, " + loss + "}]}");
  const auto back = colour.run(flows, "{recolour: true, " + loss + ", lasts: 200 us}]}");
  ASSERT_TRUE(hashed && again && back) << again.error().to_string();
  EXPECT_EQ(hashed->end, kAlone + 750_us);
  EXPECT_EQ(again->end, kAlone + 250_us);
  EXPECT_EQ(again->rerouted, 4U);
  EXPECT_NEAR(colour.load(*again, "leaf0->spine1"), 12.5e6 * (0.25 + 1), 100);
  // 0.25 ms whole, 0.2 ms at 3/4, the rest whole again.
  EXPECT_EQ(back->end, kAlone + 50_us);
  // Nothing to colour without that routing, nor in a run of a workload.
  const Case hashed_only{colour.graph, Routing::ecmp};
  EXPECT_THAT(hashed_only.run(flows, "{recolour: true, " + loss + "}]}").error().to_string(),
              ::testing::HasSubstr("recolour: found 'ecmp', expected routing colour"));
  faults::Places computing = places_of(colour.graph);
  computing.compute = true;
  const auto plan = faults::parse_faults("{recolour: true, faults: []}", "faults.yaml");
  ASSERT_TRUE(plan);
  EXPECT_FALSE(faults::schedule_of(*plan, computing));
}

RC_GTEST_PROP(LinkFaults, ColouredAgainAnUplinkLessCostsNoMoreThanItsShare, ()) {
  // Of S uplinks S - 1 carry the D flows of the leaf that has most; a host sends and gets one flow.
  const auto leaves = *rc::gen::inRange(2, 6);
  const auto spines = *rc::gen::inRange(2, 6);
  const auto hosts = *rc::gen::inRange(1, 7);
  const Case tree{
      std::move(*topology::parse_topology(
          fmt::format("leaf_spine:leaves={},spines={},hosts={}", leaves, spines, hosts), "")),
      Routing::colour};
  TrafficSpec spec;
  spec.kind = Traffic::permutation;
  spec.bytes = Bytes(12'500'000);
  spec.seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
  const auto flows = make_traffic(spec, tree.graph.hosts);
  std::vector<int> sent(static_cast<std::size_t>(leaves));
  std::vector<int> got(sent);
  for (const FlowRequest& flow : flows) {
    const auto from = static_cast<std::size_t>(flow.source / hosts);
    const auto to = static_cast<std::size_t>(flow.target / hosts);
    sent[from] += from == to ? 0 : 1;
    got[to] += from == to ? 0 : 1;
  }
  const auto run = tree.run(flows,
                            "{recolour: true, reroute_after: 0, faults: [{kind: link, links: "
                            "[leaf0--spine0], bandwidth_share: 0, at: 0 s}]}");
  RC_ASSERT(run);
  const double most = std::max(*std::ranges::max_element(sent), *std::ranges::max_element(got));
  const double left = spines - 1;
  const double there = std::max(sent[0], got[0]);
  const double end = to_seconds(run->end - 4_us) / to_seconds(1_ms);
  RC_ASSERT(end <= std::max(1.0, most / left) + 1e-6);
  RC_ASSERT(end >= there / left - 1e-2);  // some stay inside a leaf and save 2 us
}

TEST(LinkFaults, ForGoodItStopsWithTheReason) {
  const auto run = leaf_spine(2).run(
      kOne,
      "faults: [{kind: link, links: [leaf1--spine0, leaf1--spine1], bandwidth_share: 0, "
      "at: 500 us}]");
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().to_string(), ::testing::HasSubstr("1 of 1 flows"));
  EXPECT_THAT(run.error().to_string(),
              ::testing::HasSubstr("link leaf1--spine1 is lost at 500 us"));
}

TEST(LinkFaults, StragglersAreOfNoUseWithoutKernels) {
  const auto run =
      leaf_spine(2).run(kOne, "faults: [{kind: straggler, ranks: [0], factor: 2, at: 0 s}]");
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().to_string(), ::testing::HasSubstr("flows have no kernels"));
}

RC_GTEST_PROP(LinkFaults, WhatHappensAfterTheEndChangesNothing, ()) {
  const Case tree{std::move(*topology::parse_topology("fat_tree:k=4", "")),
                  *rc::gen::element(Routing::ecmp, Routing::spray, Routing::colour)};
  TrafficSpec spec;
  spec.kind = Traffic::permutation;
  spec.bytes = Bytes(12'500'000);
  spec.seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
  const auto flows = make_traffic(spec, tree.graph.hosts);
  const auto healthy = tree.run(flows, "faults: []");
  const auto late = tree.run(flows, "faults: [{kind: node, nodes: [all], at: 1 s}]");
  RC_ASSERT(healthy && late);
  RC_ASSERT(healthy->finish == late->finish);
  RC_ASSERT(healthy->load == late->load);
}

RC_GTEST_PROP(LinkFaults, OneFlowIsNeverFaster, ()) {
  const Case tree{std::move(*topology::parse_topology("fat_tree:k=4", "")),
                  *rc::gen::element(Routing::ecmp, Routing::spray, Routing::d_mod_k)};
  const auto target = *rc::gen::inRange(1, 16);
  const std::vector<FlowRequest> flow{{0, target, Bytes(12'500'000), Time(0)}};
  const auto healthy = tree.run(flow, "faults: []");
  const auto seed = *rc::gen::inRange(0, 1000);
  // Each of the 96 links is gone for 100 us every 1.8 ms on average.
  const auto run = tree.run(
      flow, "{until: 20 ms, reroute_after: 30 us, seed: " + std::to_string(seed) +
                ", faults: [{kind: link, links: [all], bandwidth_share: 0, mtbf_hours: 5e-7, "
                "lasts: 100 us}]}");
  RC_ASSERT(healthy && run);
  RC_ASSERT(run->end >= healthy->end);
}

}  // namespace
}  // namespace orrery::network
