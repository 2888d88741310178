// SPDX-License-Identifier: Apache-2.0
/// SimGrid's platforms: routes that follow from zones, clusters and routers, by SimGrid's rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/topology/read.h"
#include "machine/topology/routing.h"

namespace orrery::topology {
namespace {

using ::testing::HasSubstr;

Result<LinkGraph> simgrid_input(const std::string& name) {
  return load_topology(ORRERY_SOURCE_DIR "/tests/machine/topology/inputs/" + name, "test");
}

Result<LinkGraph> platform(const std::string& inside) {
  return read_topology("<platform version=\"4.1\">" + inside + "</platform>", "p.xml");
}

/// Names of the links from one host to another, with a blank between.
std::string names_between(const LinkGraph& graph, const std::string& from, const std::string& to) {
  const auto number = [&](const std::string& name) {
    const auto found = std::ranges::find(graph.vertices, name, &Vertex::name);
    return static_cast<std::int32_t>(found - graph.vertices.begin());
  };
  Router router(graph, Routing::automatic);
  std::vector<Hop> hops;
  if (!router.route(number(from), number(to), 0, hops)) {
    return "none";
  }
  std::string names;
  for (const Hop& hop : hops) {
    names += (names.empty() ? "" : " ") + graph.link_name(hop.link);
  }
  return names;
}

TEST(Simgrid, ABackboneIsSharedByAllPairsOfACluster) {
  const auto graph = simgrid_input("simgrid_cluster_backbone.xml");
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_EQ(graph->hosts, 16);
  EXPECT_EQ(names_between(*graph, "node-0.me", "node-5.me"),
            "bob_link_0_UP bob_backbone bob_link_5_DOWN");
  Router router(*graph, Routing::automatic);
  std::vector<Hop> hops;
  ASSERT_TRUE(router.route(0, 5, 0, hops));
  EXPECT_EQ(hops[1].bandwidth, Bandwidth(2.25e9));
  EXPECT_EQ(hops[0].latency + hops[1].latency + hops[2].latency, 600_us);  // 50 + 500 + 50
}

TEST(Simgrid, ALimiterIsPassedUpAndDown) {
  const auto graph = platform(
      "<zone id=\"w\" routing=\"Full\"><cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-1\" "
      "speed=\"1Gf\" bw=\"1GBps\" lat=\"1us\" limiter_link=\"1.5GBps\" loopback_bw=\"9GBps\" "
      "loopback_lat=\"0\"/></zone>");
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_EQ(names_between(*graph, "n0", "n1"),
            "c_link_0_limiter c_link_0_UP c_link_1_DOWN c_link_1_limiter");
  EXPECT_EQ(names_between(*graph, "n1", "n1"), "c_link_1_loopback");
}

TEST(Simgrid, RoutersJoinHostsOverTheFewestLinks) {
  const auto graph = simgrid_input("simgrid_router.xml");
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_EQ(names_between(*graph, "a", "b"), "l1 l2");
  EXPECT_EQ(names_between(*graph, "b", "a"), "l2 l1");
  // A route of two links counts two: over r it is three, over q two.
  const auto counted = platform(
      "<zone id=\"w\" routing=\"Dijkstra\"><host id=\"a\" speed=\"1Gf\"/><host id=\"b\" "
      "speed=\"1Gf\"/><router id=\"r\"/><router id=\"q\"/>"
      "<link id=\"1\" bandwidth=\"1GBps\" latency=\"0\"/><link id=\"2\" bandwidth=\"1GBps\"/>"
      "<link id=\"3\" bandwidth=\"1GBps\"/><link id=\"4\" bandwidth=\"1GBps\"/>"
      "<link id=\"5\" bandwidth=\"1GBps\"/>"
      "<route src=\"a\" dst=\"r\"><link_ctn id=\"1\"/><link_ctn id=\"2\"/></route>"
      "<route src=\"r\" dst=\"b\"><link_ctn id=\"3\"/></route>"
      "<route src=\"a\" dst=\"q\"><link_ctn id=\"4\"/></route>"
      "<route src=\"q\" dst=\"b\"><link_ctn id=\"5\"/></route></zone>");
  ASSERT_TRUE(counted) << counted.error().to_string();
  EXPECT_EQ(names_between(*counted, "a", "b"), "4 5");
}

TEST(Simgrid, ZonesAreJoinedFromGatewayToGateway) {
  // Clusters of two hosts with a backbone each, as SimGrid's two_clusters.xml, and a zone between
  // them that is crossed from one gateway to another.
  const auto cluster = [](const std::string& id) {
    return "<cluster id=\"" + id + "\" prefix=\"" + id +
           "-\" suffix=\".me\" radical=\"0-1\" speed=\"1Gf\" bw=\"1GBps\" lat=\"1us\" "
           "bb_bw=\"2GBps\" bb_lat=\"1us\"/>";
  };
  const auto graph =
      platform("<zone id=\"world\" routing=\"Floyd\">" + cluster("x") + cluster("y") +
               "<zone id=\"core\" routing=\"Full\"><router id=\"p\"/><router id=\"q\"/>"
               "<link id=\"pq\" bandwidth=\"5GBps\" latency=\"1us\"/>"
               "<route src=\"p\" dst=\"q\"><link_ctn id=\"pq\"/></route></zone>"
               "<link id=\"l\" bandwidth=\"1GBps\" latency=\"1us\" sharing_policy=\"SPLITDUPLEX\"/>"
               "<link id=\"r\" bandwidth=\"1GBps\" latency=\"1us\"/>"
               "<zoneRoute src=\"x\" dst=\"core\" gw_src=\"x-x_router.me\" gw_dst=\"p\">"
               "<link_ctn id=\"l\" direction=\"UP\"/></zoneRoute>"
               "<zoneRoute src=\"core\" dst=\"y\" gw_src=\"q\" gw_dst=\"y-y_router.me\">"
               "<link_ctn id=\"r\"/></zoneRoute></zone>");
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_EQ(graph->hosts, 4);
  EXPECT_EQ(names_between(*graph, "x-0.me", "x-1.me"), "x_link_0_UP x_backbone x_link_1_DOWN");
  EXPECT_EQ(names_between(*graph, "x-0.me", "y-1.me"),
            "x_link_0_UP x_backbone l_UP pq r y_backbone y_link_1_DOWN");
  EXPECT_EQ(names_between(*graph, "y-1.me", "x-0.me"),
            "y_link_1_UP y_backbone r pq l_DOWN x_backbone x_link_0_DOWN");
}

TEST(Simgrid, WhatChangesOverTimeAndWhatIsUnknownIsRefusedByLine) {
  for (const auto& [name, part] :
       {std::pair("simgrid_bandwidth_file.xml", ":5: link.bandwidth_file"),
        {"simgrid_vivaldi.xml", ":3: zone.routing: found 'Vivaldi'"}}) {
    const auto graph = simgrid_input(name);
    ASSERT_FALSE(graph) << name;
    EXPECT_THAT(graph.error().to_string(), HasSubstr(part));
  }
  const auto typo = platform(
      "<zone id=\"w\" routing=\"Full\"><host id=\"a\" speed=\"1Gf\"/><host id=\"b\" "
      "speed=\"1Gf\"/>\n<link id=\"l\" bandwidth=\"1GBps\" ltency=\"1us\"/>\n"
      "<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route></zone>");
  ASSERT_FALSE(typo);
  EXPECT_THAT(typo.error().to_string(), ::testing::AllOf(HasSubstr("p.xml:2: link.ltency"),
                                                         HasSubstr("did you mean 'latency'?")));
  const auto entities = read_topology(
      "<?xml version=\"1.0\"?>\n<!DOCTYPE platform [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>\n"
      "<platform version=\"4.1\"/>",
      "p.xml");
  ASSERT_FALSE(entities);
  EXPECT_THAT(entities.error().to_string(), HasSubstr("p.xml:2: a DOCTYPE without entities"));
  const auto apart = platform(
      "<zone id=\"w\" routing=\"Full\"><host id=\"a\" speed=\"1Gf\"/><host id=\"b\" "
      "speed=\"1Gf\"/></zone>");
  ASSERT_FALSE(apart);
  EXPECT_THAT(apart.error().to_string(), HasSubstr("routes between its hosts"));
}

}  // namespace
}  // namespace orrery::topology
