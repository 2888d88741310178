// SPDX-License-Identifier: Apache-2.0
/// NCCL's, RCCL's and SimAI's topology files: routes and rates as their programs choose them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "machine/topology/link_map.h"
#include "machine/topology/read.h"
#include "machine/topology/routing.h"

namespace orrery::topology {
namespace {

Result<LinkGraph> input(const std::string& name) {
  return load_topology(ORRERY_SOURCE_DIR "/tests/machine/topology/inputs/" + name, "test");
}

/// "gpu0->nvswitch6 nvswitch6->gpu1", by the routing that the file suits.
std::string route(const LinkGraph& graph, std::int32_t from, std::int32_t to) {
  Router router(graph, Routing::automatic);
  std::vector<Hop> hops;
  EXPECT_TRUE(router.route(from, to, 0, hops));
  std::string names;
  for (const Hop& hop : hops) {
    names += (names.empty() ? "" : " ") + graph.link_name(hop.link);
  }
  return names;
}

/// GB/s of the slowest part of the route, as a message alone has it.
double rate(const LinkGraph& graph, std::int32_t from, std::int32_t to) {
  Router router(graph, Routing::automatic);
  std::vector<Hop> hops;
  EXPECT_TRUE(router.route(from, to, 0, hops));
  double least = 1e30;
  for (const Hop& hop : hops) {
    least = std::min(least, hop.bandwidth.value());
  }
  return least / 1e9;
}

/// A file of GPUs at 0000:01:00.0, 0000:02:00.0 ..., each directly below the CPU and with its own
/// attributes and links.
std::string gpus_on_cpu(const std::string& cpu, const std::vector<std::string>& gpus) {
  std::string text = "<system version=\"1\"><cpu numaid=\"0\" " + cpu + ">";
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    text += "<pci busid=\"0000:0" + std::to_string(g + 1) +
            ":00.0\" class=\"0x030200\" link_speed=\"8 GT/s\" link_width=\"16\"><gpu dev=\"" +
            std::to_string(g) + "\" " + gpus[g] + "</gpu></pci>";
  }
  return text + "</cpu></system>";
}

LinkGraph of(const std::string& text) {
  auto graph = read_topology(text, "test.xml");
  EXPECT_TRUE(graph) << graph.error().to_string();
  return std::move(*graph);
}

TEST(ReadNccl, NvSwitchGoesBeforeAPcieSwitchOfAsManyHops) {
  const auto graph = input("nccl_nvswitch_and_pcie.xml");
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_THAT(route(*graph, 0, 1), ::testing::MatchesRegex("gpu0->nvswitch.* nvswitch.*->gpu1"));
  EXPECT_EQ(rate(*graph, 0, 1), 300);  // 12 NVLinks of 25 GB/s
  EXPECT_EQ(rate(*graph, 0, 7), 300);
}

TEST(ReadNccl, DirectLinksLeadToWhomTheyName) {
  const auto graph = input("nccl_nvlink_pairs.xml");
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_EQ(route(*graph, 0, 1), "gpu0->gpu1");
  EXPECT_EQ(rate(*graph, 0, 1), 300);
  EXPECT_EQ(route(*graph, 1, 2), "gpu1->cpu0 cpu0->gpu2");
  EXPECT_NEAR(rate(*graph, 1, 2), 31.5077, 1e-3);  // 16 lanes * 16 GT/s * 128/130 / 8
  // A link to oneself is none.
  const LinkGraph self =
      of(gpus_on_cpu("arch=\"x86_64\"",
                     {"sm=\"80\"><nvlink target=\"0000:01:00.0\" count=\"4\" tclass=\"0x030200\"/>",
                      "sm=\"80\">"}));
  EXPECT_EQ(self.links.size(), 4U);  // two cables of PCIe
  EXPECT_FALSE(self.hosts_forward);
}

TEST(ReadNccl, XgmiIsADirectLinkAtRcclsRate) {
  const auto graph = input("nccl_xgmi2.xml");
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_EQ(route(*graph, 0, 1), "gpu0->gpu1");
  const auto of_gcn = [](const std::string& gcn) {
    const std::string link = "gcn=\"" + gcn + "\"><xgmi count=\"2\" tclass=\"0x120000\" target=\"";
    const LinkGraph two =
        of(gpus_on_cpu("arch=\"x86_64\"", {link + "0000:02:00.0\"/>", link + "0000:01:00.0\"/>"}));
    return rate(two, 0, 1);
  };
  EXPECT_EQ(rate(*graph, 0, 1), 48);
  EXPECT_EQ(of_gcn("gfx942"), 2 * 48);
  EXPECT_EQ(of_gcn("gfx950"), 2 * 48);  // of 76.8 on the wire
  EXPECT_EQ(of_gcn("gfx90a"), 2 * 36);
  EXPECT_EQ(of_gcn("910"), 2 * 36);  // as RCCL wrote gfx90a before it wrote names
  EXPECT_EQ(of_gcn("gfx908"), 2 * 24);
}

TEST(ReadNccl, RcclsRateIsWhatAMachinesEfficiencyReaches) {
  // 48 GB/s is 0.75 of the wire's 64: a machine whose messages reach 0.6 of the wire has 38.4.
  const auto graph = input("nccl_xgmi2.xml");
  ASSERT_TRUE(graph) << graph.error().to_string();
  NetworkDimension xgmi;
  xgmi.size = 2;
  xgmi.bandwidth = Bandwidth(64e9);
  xgmi.send_efficiency = 0.6;
  LinkMap map({xgmi});
  Wires wires;
  wires.graph = std::make_shared<const LinkGraph>(*graph);
  map.lay(wires);
  std::vector<Hop> hops;
  map.route(0, 1, hops);
  EXPECT_NEAR(hops.front().bandwidth.value(), 38.4e9, 1e3);
}

TEST(ReadNccl, NvLinkRatesFollowTheComputeCapability) {
  const auto of_sm = [](const std::string& sm) {
    const std::string link = "sm=\"" + sm + "\"><nvlink count=\"4\" tclass=\"0x030200\" target=\"";
    return rate(
        of(gpus_on_cpu("arch=\"x86_64\"", {link + "0000:02:00.0\"/>", link + "0000:01:00.0\"/>"})),
        0, 1);
  };
  EXPECT_EQ(of_sm("60"), 80);
  EXPECT_EQ(of_sm("70"), 100);
  EXPECT_EQ(of_sm("86"), 56.25);  // an A40's bridge: 112.5 GB/s in both directions
  EXPECT_EQ(of_sm("90"), 100);
  EXPECT_EQ(of_sm("100"), 200);
}

TEST(ReadNccl, OnlyTheNetworkJoinsHosts) {
  const auto graph = input("nccl_two_hosts.xml");
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_THAT(route(*graph, 0, 1), ::testing::HasSubstr("->network network->"));
  EXPECT_EQ(rate(*graph, 0, 1), 12.5);
  // The GPUs of the other host may stand at the same bus numbers: an NVLink leads to its own.
  const std::string pair =
      "sm=\"90\"><nvlink count=\"18\" tclass=\"0x030200\" target=\"0000:02:00.0\"/>";
  std::string first = gpus_on_cpu("host_hash=\"0x1\" arch=\"x86_64\"", {pair, "sm=\"90\">"});
  std::string second = gpus_on_cpu("host_hash=\"0x2\" arch=\"x86_64\"", {pair, "sm=\"90\">"});
  first.erase(first.find("</system>"));
  second.erase(0, second.find("<cpu"));
  const LinkGraph hosts = of(first + second);
  ASSERT_EQ(hosts.hosts, 4);
  EXPECT_EQ(route(hosts, 0, 1), "gpu0->gpu1");
  EXPECT_EQ(route(hosts, 2, 3), "gpu2->gpu3");
}

TEST(ReadNccl, NvSwitchesJoinArmHostsOnly) {
  const auto rack = [](const std::string& arch) {
    const std::string gpu =
        "sm=\"100\"><nvlink count=\"18\" tclass=\"0x068000\" target=\"fffffff:ffff:ff\"/>";
    std::string first = gpus_on_cpu("host_hash=\"0x1\" arch=\"" + arch + "\"", {gpu});
    std::string second = gpus_on_cpu("host_hash=\"0x2\" arch=\"" + arch + "\"", {gpu});
    first.erase(first.find("</system>"));
    second.erase(0, second.find("<cpu"));
    return of(first + second);
  };
  const LinkGraph grace = rack("arm64");
  EXPECT_EQ(rate(grace, 0, 1), 900);  // 18 links of 50 GB/s
  EXPECT_FALSE(all_reachable(rack("x86_64"), Routing::automatic));
}

TEST(ReadNccl, LinksToSeveralNvSwitchesAreOne) {
  // As dumps of an A100 have them: two links to each of six NVSwitches, together 12 of 25 GB/s.
  std::string gpu = "sm=\"80\">";
  for (const char* bus : {"c4", "c5", "c6", "c7", "c8", "c9"}) {
    gpu +=
        "<nvlink target=\"0000:" + std::string(bus) + ":00.0\" count=\"2\" tclass=\"0x068000\"/>";
  }
  const LinkGraph graph = of(gpus_on_cpu("arch=\"x86_64\"", {gpu, gpu}));
  EXPECT_EQ(rate(graph, 0, 1), 300);
  EXPECT_EQ(graph.links.size(), 8U);  // of PCIe and of NVLink, there and back
}

TEST(ReadNccl, PowersBridgeIsTheCpu) {
  // GPUs of a socket meet directly, over 3 links of 25 GB/s. Those of two sockets meet over the
  // NVLinks to their CPUs and the bus between, NCCL's 32 GB/s, not over two lanes of PCIe.
  const auto graph = input("nccl_power9.xml");
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_EQ(route(*graph, 0, 1), "gpu0->gpu1");
  EXPECT_EQ(rate(*graph, 0, 1), 75);
  EXPECT_EQ(route(*graph, 0, 2), "gpu0->cpu0 cpu0->cpu1 cpu1->gpu2");
  EXPECT_EQ(rate(*graph, 0, 2), 32);
}

TEST(ReadNccl, ChipToChipLinksGoBeforePcie) {
  const std::string gpu = "sm=\"100\"><c2c bw=\"44712\" count=\"10\"/>";
  const LinkGraph grace = of(gpus_on_cpu("arch=\"arm64\"", {gpu, gpu}));
  EXPECT_NEAR(rate(grace, 0, 1), 447.12, 1e-9);
}

TEST(ReadNccl, DevicesOfAPortShareIt) {
  const auto file = [](const std::string& second) {
    return of(
        "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\">"
        "<pci busid=\"0000:01:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
        "link_width=\"16\"><gpu dev=\"0\" sm=\"80\"/></pci>"
        "<pci busid=\"0000:61:00.0\" class=\"0x020700\" link_speed=\"16.0 GT/s PCIe\" "
        "link_width=\"16\"><nic><net name=\"a\" dev=\"0\" speed=\"100000\" port=\"1\" "
        "guid=\"0x1\"/><net name=\"b\" dev=\"1\" speed=\"100000\" " +
        second + "/></nic></pci></cpu></system>");
  };
  const auto to_network = [](const LinkGraph& graph) {
    return std::ranges::count_if(graph.links, [&](const GraphLink& link) {
      return graph.vertices[static_cast<std::size_t>(link.target)].name == "network";
    });
  };
  const auto adapters = [](const LinkGraph& graph) {
    return std::ranges::count_if(graph.vertices,
                                 [](const Vertex& v) { return v.name.starts_with("nic"); });
  };
  const LinkGraph one = file("port=\"1\" guid=\"0x1\"");
  EXPECT_EQ(to_network(one), 1);
  EXPECT_EQ(adapters(one), 1);
  EXPECT_EQ(to_network(file("port=\"2\" guid=\"0x1\"")), 2);
}

TEST(ReadNccl, AdaptersThatAreEquallyNearShareAGpusMessages) {
  // Two GPUs and two adapters of 100 Gbit/s below each host's switch: NCCL gives the channels of a
  // GPU both in turn, together 25 GB/s; the switch's links have 31.5.
  const auto host = [](int h) {
    const std::string n = std::to_string(h);
    std::string text = "<cpu host_hash=\"0x" + n + "\" numaid=\"0\"><pci busid=\"0000:0" + n +
                       ":00.0\" class=\"0x060400\" link_speed=\"16 GT/s\" link_width=\"16\">";
    for (int i = 0; i < 2; ++i) {
      const std::string id = n + std::to_string(i);
      text += "<pci busid=\"0000:" + id +
              ":00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\"><gpu dev=\"" +
              std::to_string(i) + "\" sm=\"80\"/></pci><pci busid=\"0000:" + id +
              ":01.0\" class=\"0x020700\" link_speed=\"16 GT/s\" link_width=\"16\"><nic><net "
              "name=\"mlx5_" +
              id + "\" speed=\"100000\" port=\"1\" guid=\"0x" + id + "\"/></nic></pci>";
    }
    return text + "</pci></cpu>";
  };
  const LinkGraph graph = of("<system version=\"1\">" + host(1) + host(2) + "</system>");
  EXPECT_EQ(graph.routing, Routing::spray);
  EXPECT_NEAR(rate(graph, 0, 2), 25, 1e-6);
  EXPECT_NEAR(rate(graph, 0, 1), 16 * 16 / 8.0 * 128 / 130, 1e-6);  // below the switch: PCIe
}

TEST(ReadNccl, AnySpeedOfANetworkIsRead) {
  const auto graph = input("nccl_speed_200000000.xml");  // 200,000,000 Mbit/s, as RCCL writes it
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_EQ(graph->links.back().bandwidth, Bandwidth(200e6 * 125e3));
  const LinkGraph unknown =
      of("<system><cpu numaid=\"0\"><pci busid=\"a\"><gpu dev=\"0\"/></pci><pci busid=\"b\"><nic>"
         "<net name=\"n\" dev=\"0\" speed=\"-1\"/></nic></pci></cpu></system>");
  EXPECT_EQ(unknown.links.back().bandwidth, Bandwidth(1.25e9));  // NCCL takes 10 Gbit/s
}

TEST(ReadNccl, PcieOfEveryGeneration) {
  const auto lanes16 = [](const std::string& speed) {
    return of("<system><cpu numaid=\"0\"><pci busid=\"a\" link_speed=\"" + speed +
              "\" link_width=\"16\"><gpu dev=\"0\"/></pci></cpu></system>")
               .links.front()
               .bandwidth.value() /
           1e9;
  };
  EXPECT_NEAR(lanes16("2.5 GT/s PCIe"), 4, 1e-9);  // 16 * 2.5 / 8 * 8/10
  EXPECT_NEAR(lanes16("5.0 GT/s PCIe"), 8, 1e-9);
  EXPECT_NEAR(lanes16("8 GT/s"), 16 * 128.0 / 130, 1e-9);
  EXPECT_NEAR(lanes16("32.0 GT/s PCIe"), 64 * 128.0 / 130, 1e-9);
  EXPECT_NEAR(lanes16("Unknown"), 16 * 128.0 / 130, 1e-9);  // NCCL's third generation
}

TEST(ReadNccl, AFileWithoutGpusSaysHowToDump) {
  const auto hint = read_topology(
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"ffff:ff:01.0\" class=\"0x060400\">"
      "<pci busid=\"0001:00:00.0\" class=\"0x030200\"/></pci></cpu></system>",
      "ndv4-topo.xml");
  ASSERT_FALSE(hint);
  EXPECT_THAT(hint.error().to_string(),
              ::testing::AllOf(::testing::HasSubstr("ndv4-topo.xml:1"),
                               ::testing::HasSubstr("NCCL_TOPO_DUMP_FILE")));
}

/// The file is as aws-ofi-nccl's p5.48xl-topo.xml: H100s without links, adapters counted from 0.
/// With guids as NCCL writes them it is a machine without NVLink.
TEST(ReadNccl, AFileThatLeavesNvLinksToNcclSaysHowToDump) {
  const auto file = [](const std::string& sm, const std::string& guid) {
    const std::string gpu = "sm=\"" + sm + "\">";
    std::string text = gpus_on_cpu("", {gpu, gpu});
    text.insert(text.find("</cpu>"),
                "<pci busid=\"0000:50:00.0\" class=\"0x020000\"><nic><net name=\"rdmap79s0\" "
                "dev=\"0\" speed=\"100000\" port=\"1\" guid=\"" +
                    guid + "\" net=\"1\" gin=\"1\"/></nic></pci>");
    return read_topology(text, "p5.xml");
  };
  const auto hint = file("90", "0");
  ASSERT_FALSE(hint);
  EXPECT_THAT(hint.error().to_string(), ::testing::HasSubstr("NCCL_TOPO_DUMP_FILE"));
  EXPECT_TRUE(file("90", "0x0"));
  EXPECT_TRUE(file("86", "0"));  // A10G has no NVLink
}

TEST(ReadNccl, AttributesAndElementsThatNcclHasNotAreMistakes) {
  const auto typo = read_topology(
      "<system><cpu numaid=\"0\">\n<pci busid=\"a\" link_sped=\"16 GT/s\" colour=\"red\"><gpu "
      "dev=\"0\">\n<nvlnk target=\"b\"/></gpu></pci></cpu></system>",
      "topo.xml");
  ASSERT_FALSE(typo);
  EXPECT_THAT(typo.error().to_string(),
              ::testing::AllOf(::testing::HasSubstr("topo.xml:2: pci.link_sped"),
                               ::testing::HasSubstr("did you mean 'link_speed'?"),
                               ::testing::HasSubstr("pci.colour"),
                               ::testing::HasSubstr("topo.xml:3: nvlnk: an element of NCCL"),
                               ::testing::HasSubstr("did you mean 'nvlink'?")));
}

TEST(ReadNccl, AFloodOfMistakesIsCounted) {
  std::string text = "<system>";
  for (int i = 0; i < 33; ++i) {
    text += "<cpu numaid=\"0\" x=\"1\"/>";
  }
  EXPECT_THAT(read_topology(text + "</system>", "topo.xml").error().to_string(),
              ::testing::HasSubstr("topo.xml: and 13 more"));
}

/// Two GPUs of 36 NVLinks (50 GB/s each) and 7 C2C links of 56.376 GB/s, each with two ranks.
LinkGraph two_ranks_a_gpu(const std::string& half0, const std::string& half1) {
  std::string text = "<system version=\"1\"><cpu host_hash=\"0x1\" numaid=\"0\" arch=\"arm64\">";
  for (int i = 0; i < 2; ++i) {
    text += "<pci busid=\"000" + std::to_string(i) +
            ":81:00.0\" class=\"0x030200\" link_speed=\"64.0 GT/s PCIe\" link_width=\"2\">";
    for (int k = 0; k < 2; ++k) {
      text += "<gpu dev=\"" + std::to_string(i) + "\" sm=\"107\" " + (k == 0 ? half0 : half1) +
              " rank=\"" + std::to_string(2 * i + k) +
              "\" gdr=\"1\"><nvlink target=\"fffffff:ff:ff.0\" count=\"36\" tclass=\"0x068000\"/>"
              "<c2c bw=\"56376\" count=\"7\"/></gpu>";
    }
    text += "</pci>";
  }
  return of(text + "</cpu></system>");
}

double into_nvswitches(const LinkGraph& graph) {
  double sum = 0;
  for (std::size_t l = 0; l < graph.links.size(); ++l) {
    sum += graph.link_name(l).find("->nvs") < 9 ? graph.links[l].bandwidth.value() / 1e9 : 0;
  }
  return sum;
}

TEST(ReadNccl, RanksOfOneGpuShareItsLinks) {
  const LinkGraph graph = two_ranks_a_gpu("", "");
  EXPECT_NEAR(rate(graph, 0, 2), 1800, 1e-6);  // alone all 36 links
  EXPECT_NEAR(rate(graph, 0, 1), 5000, 1e-6);  // on one GPU
  EXPECT_NEAR(into_nvswitches(graph), 3600, 1e-6);
}

TEST(ReadNccl, HalvesOfAGpuHaveHalfOfItsNvLinks) {
  const LinkGraph graph = two_ranks_a_gpu("mlopart=\"0\"", "mlopart=\"1\"");
  EXPECT_NEAR(rate(graph, 0, 2), 900, 1e-6);
  EXPECT_NEAR(into_nvswitches(graph), 3600, 1e-6);
}

TEST(ReadNs3, TheNvSwitchGoesBeforeTheNetwork) {
  const auto graph = input("simai_nvswitch_and_tor.txt");
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_EQ(route(*graph, 0, 1), "host0->switch8 switch8->host1");
  EXPECT_EQ(rate(*graph, 0, 1), 300);
}

TEST(ReadNs3, MessagesSpreadOverPlanes) {
  // Planes of 125, 100, 100 and 125 GB/s carry parts as their rates: together 450 GB/s, as one of
  // 3600 Gbit/s does.
  const auto four = input("simai_4_nvswitches.txt");
  ASSERT_TRUE(four) << four.error().to_string();
  EXPECT_EQ(four->routing, Routing::spray);
  EXPECT_NEAR(rate(*four, 0, 1), 450, 1e-4);
  const auto one = input("simai_1_nvswitch.txt");
  ASSERT_TRUE(one) << one.error().to_string();
  EXPECT_EQ(rate(*one, 0, 1), 450);
}

TEST(Lists, AWayOfLessThanHalfTheWidthIsNone) {
  // Two switches join a and b: at 100 and at 10 GB/s; at 100 and 60 both are taken.
  const auto lists = [](const std::string& slow) {
    return of(
        "hosts: [a, b]\nswitches: [s, t]\nlinks:\n"
        "  - {from: a, to: t, bandwidth: " +
        slow +
        "}\n"
        "  - {from: b, to: t, bandwidth: " +
        slow +
        "}\n"
        "  - {from: a, to: s, bandwidth: 100 GB/s}\n"
        "  - {from: b, to: s, bandwidth: 100 GB/s}\n");
  };
  EXPECT_EQ(rate(lists("10 GB/s"), 0, 1), 100);
  EXPECT_EQ(route(lists("10 GB/s"), 0, 1), "a->s s->b");
  EXPECT_NEAR(rate(lists("60 GB/s"), 0, 1), 160, 1e-4);
}

}  // namespace
}  // namespace orrery::topology
