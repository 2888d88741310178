// SPDX-License-Identifier: Apache-2.0
/// Topology files of other programs: sizes, rates, latencies and routes by hand.
#include "machine/topology/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "machine/topology/routing.h"

namespace orrery::topology {
namespace {

LinkGraph read(const std::string& name, const std::string& text) {
  const std::string file = ::testing::TempDir() + "/" + name;
  EXPECT_TRUE(write_file(file, text));
  auto graph = load_topology(file, "test");
  EXPECT_TRUE(graph) << graph.error().to_string();
  return std::move(*graph);
}

std::string refused(const std::string& name, const std::string& text) {
  const std::string file = ::testing::TempDir() + "/" + name;
  EXPECT_TRUE(write_file(file, text));
  const auto graph = load_topology(file, "test");
  EXPECT_FALSE(graph);
  return graph ? std::string() : graph.error().to_string();
}

std::vector<Hop> route_between(const LinkGraph& graph, std::int32_t from, std::int32_t to) {
  Router router(graph, Routing::shortest);
  std::vector<Hop> hops;
  EXPECT_TRUE(router.route(from, to, 0, hops));
  return hops;
}

std::vector<std::string> names(const LinkGraph& graph, std::int32_t from, std::int32_t to) {
  std::vector<std::string> links;
  for (const Hop& hop : route_between(graph, from, to)) {
    links.push_back(graph.link_name(hop.link));
  }
  return links;
}

TEST(Lists, AHostIsEnteredWhereItsLinksComeFrom) {
  // A ring of single links: what leaves b goes to c, what comes to b comes from a. Hosts pass
  // nothing on: a reaches b only.
  const LinkGraph graph =
      read("ring.yaml",
           "hosts: [a, b, c]\nlinks:\n"
           "  - {from: a, to: b, bandwidth: 1 GB/s, latency: 1 us, one_way: true}\n"
           "  - {from: b, to: c, bandwidth: 1 GB/s, latency: 1 us, one_way: true}\n"
           "  - {from: c, to: a, bandwidth: 1 GB/s, latency: 1 us, one_way: true}\n");
  EXPECT_EQ(names(graph, 0, 1), std::vector<std::string>{"a->b"});
  EXPECT_EQ(names(graph, 2, 0), std::vector<std::string>{"c->a"});
  Router router(graph, Routing::shortest);
  std::vector<Hop> hops;
  EXPECT_FALSE(router.route(0, 2, 0, hops));
  const GraphFigures found = figures(graph);
  EXPECT_EQ(found.mean_distance, 1);
  EXPECT_FALSE(found.connected);
}

// 16 hosts in pods of 8, 4 to a switch of the first tier, which has 2 cables to each of its pod's 2
// switches; these have 2 to the 4 cores: 4 over-subscribed to 4 : 4, then 8 : 4.
constexpr const char* kHtsim =
    "# two pods\n"
    "Nodes 16\n"
    "Tiers 3\n"
    "Podsize 8\n"
    "Tier 0\n"
    "Downlink_speed_Gbps 100\n"
    "Radix_Up 4\n"
    "Radix_Down 4\n"
    "Downlink_Latency_ns 500\n"
    "Switch_Latency_ns 200\n"
    "Tier 1\n"
    "Downlink_speed_Gbps 200\n"
    "Radix_Up 2\n"
    "Radix_Down 4\n"
    "Bundle 2\n"
    "Downlink_Latency_ns 1000\n"
    "Tier 2\n"
    "Downlink_speed_Gbps 400\n"
    "Radix_Down 2\n"
    "Downlink_Latency_ns 3000\n";

TEST(ReadHtsim, TiersAreSwitchesAndRates) {
  const LinkGraph graph = read("htsim.topo", kHtsim);
  const GraphFigures found = figures(graph);
  EXPECT_EQ(found.hosts, 16);
  EXPECT_EQ(found.switches, 4 + 4 + 4);
  EXPECT_EQ(found.cables, 16 + 4 * 4 + 4 * 2);  // of hosts, of 4 leaves, of 4 pod switches
  EXPECT_EQ(found.diameter, 6);
  // Half of the hosts are a pod, whose 2 switches have 2 cables of 400 Gbit/s each: more than its
  // hosts' own links.
  EXPECT_EQ(found.bisection, Bandwidth(8 * 12.5e9));
  EXPECT_TRUE(found.connected);
}

TEST(ReadHtsim, AWayHasTheLatenciesOfItsTiersAndSwitches) {
  const LinkGraph graph = read("htsim.topo", kHtsim);
  // Up and down at 100, 200 and 400 Gbit/s; 0.5 + 0.2 (the leaf's delay), 1, 3, 3, 1 + 0.2, 0.5 us.
  const std::vector<Hop> far = route_between(graph, 0, 15);
  ASSERT_EQ(far.size(), 6U);
  const std::vector<double> rates{12.5e9, 25e9, 50e9, 50e9, 25e9, 12.5e9};
  const std::vector<Time> latencies{700_ns, 1_us, 3_us, 3_us, 1'200_ns, 500_ns};
  for (std::size_t h = 0; h < far.size(); ++h) {
    EXPECT_EQ(far[h].bandwidth, Bandwidth(rates[h])) << h;
    EXPECT_EQ(far[h].latency, latencies[h]) << h;
  }
  EXPECT_EQ(route_between(graph, 0, 3).size(), 2U);
  EXPECT_EQ(route_between(graph, 0, 7).size(), 4U);
}

TEST(ReadHtsim, MistakesNameLineAndField) {
  EXPECT_THAT(refused("bad.topo", "Nodes 16\nTeirs 2\nTier 0\nRadix_Up 4\nRadix_Down 4\n"),
              ::testing::AllOf(::testing::HasSubstr("bad.topo:2"), ::testing::HasSubstr("Teirs"),
                               ::testing::HasSubstr("tiers")));
}

// ns-3's point-to-point example of RDMA simulators: 4 hosts, switches 4 and 5 between.
constexpr const char* kNs3 =
    "6 2 5\n"
    "4 5\n"
    "0 4 100Gbps 0.001ms 0\n"
    "1 4 100Gbps 0.001ms 0\n"
    "2 5 100Gbps 0.001ms 0\n"
    "3 5 100Gbps 0.001ms 0\n"
    "4 5 400Gbps 0.002ms 0\n";

TEST(ReadNs3, HostsAreTheNodesThatAreNoSwitches) {
  const LinkGraph graph = read("ns3.txt", kNs3);
  EXPECT_EQ(graph.hosts, 4);
  EXPECT_EQ(graph.vertices.size(), 6U);
  EXPECT_EQ(graph.links.size(), 10U);
  const std::vector<Hop> far = route_between(graph, 0, 3);
  ASSERT_EQ(far.size(), 3U);
  EXPECT_EQ(far[1].bandwidth, Bandwidth(50e9));
  EXPECT_EQ(far[1].latency, 2_us);
  EXPECT_THAT(names(graph, 0, 3),
              ::testing::ElementsAre("host0->switch4", "switch4->switch5", "switch5->host3"));
  EXPECT_EQ(figures(graph).bisection, Bandwidth(25e9));  // two hosts' links; the trunk has more
}

TEST(ReadNs3, SimAisHeadCountsNvSwitchesToo) {
  // 4 GPUs, 2 a server with an NVSwitch each (nodes 4, 5) and one switch (6).
  const LinkGraph graph = read("simai.txt",
                               "7 2 2 1 8 H100\n"
                               "4 5 6\n"
                               "0 4 2880Gbps 0.000025ms 0\n"
                               "1 4 2880Gbps 0.000025ms 0\n"
                               "2 5 2880Gbps 0.000025ms 0\n"
                               "3 5 2880Gbps 0.000025ms 0\n"
                               "0 6 400Gbps 0.0005ms 0\n"
                               "1 6 400Gbps 0.0005ms 0\n"
                               "2 6 400Gbps 0.0005ms 0\n"
                               "3 6 400Gbps 0.0005ms 0\n");
  EXPECT_EQ(graph.hosts, 4);
  const std::vector<Hop> inside = route_between(graph, 0, 1);
  ASSERT_EQ(inside.size(), 2U);
  EXPECT_EQ(inside[0].bandwidth, Bandwidth(360e9));  // NVLink's, as near as the network
  EXPECT_EQ(inside[0].latency, 25_ns);
  const std::vector<Hop> outside = route_between(graph, 0, 2);
  ASSERT_EQ(outside.size(), 2U);
  EXPECT_EQ(outside[0].bandwidth, Bandwidth(50e9));
}

TEST(ReadNs3, MistakesNameTheLine) {
  EXPECT_THAT(refused("ns3.txt", "3 1 2\n2\n0 2 fastGbps 1us 0\n1 2 100Gbps 1us 0\n"),
              ::testing::AllOf(::testing::HasSubstr("ns3.txt:3"), ::testing::HasSubstr("fastGbps"),
                               ::testing::HasSubstr("a rate such as 100Gbps")));
}

// Two GPUs below one PCIe switch with a NIC, 4 NVLinks between them.
constexpr const char* kNccl =
    "<system version=\"1\">\n"
    " <cpu numaid=\"0\" affinity=\"ffff\" arch=\"x86_64\" vendor=\"GenuineIntel\">\n"
    "  <pci busid=\"0000:10:00.0\" class=\"0x060400\" link_speed=\"16.0 GT/s PCIe\" "
    "link_width=\"16\">\n"
    "   <pci busid=\"0000:11:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
    "link_width=\"16\">\n"
    "    <gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\">\n"
    "     <nvlink target=\"0000:12:00.0\" count=\"4\" tclass=\"0x030200\"/>\n"
    "    </gpu>\n"
    "   </pci>\n"
    "   <pci busid=\"0000:12:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
    "link_width=\"16\">\n"
    "    <gpu dev=\"1\" sm=\"80\" rank=\"1\" gdr=\"1\">\n"
    "     <nvlink target=\"0000:11:00.0\" count=\"4\" tclass=\"0x030200\"/>\n"
    "    </gpu>\n"
    "   </pci>\n"
    "   <pci busid=\"0000:13:00.0\" class=\"0x020700\" link_speed=\"16.0 GT/s PCIe\" "
    "link_width=\"16\">\n"
    "    <nic><net name=\"mlx5_0\" dev=\"0\" speed=\"200000\" port=\"1\" guid=\"0x1\" "
    "maxconn=\"262144\" gdr=\"1\"/></nic>\n"
    "   </pci>\n"
    "  </pci>\n"
    " </cpu>\n"
    "</system>\n";

TEST(ReadNccl, GpusMeetOverNvLink) {
  const LinkGraph graph = read("nccl.xml", kNccl);
  ASSERT_GE(graph.hosts, 2);
  const std::vector<Hop> peers = route_between(graph, 0, 1);
  ASSERT_EQ(peers.size(), 1U);
  EXPECT_EQ(peers[0].latency, 700_ns);
  // 4 NVLinks of 25 GB/s (sm 80); PCIe 4.0 x16: 16 GT/s * 16 * 128/130 / 8 = 31.5 GB/s.
  double together = 0;
  double pcie = 0;
  for (const GraphLink& link : graph.links) {
    if (link.source == 0) {
      (link.target == 1 ? together : pcie) += link.bandwidth.value();
    }
  }
  EXPECT_NEAR(together, 100e9, 1e6);
  EXPECT_NEAR(pcie, 31.5077e9, 1e6);
}

}  // namespace
}  // namespace orrery::topology
