// SPDX-License-Identifier: Apache-2.0
/// NCCL's and RCCL's topology files. GPUs are hosts in the order of their ranks (or of hosts and
/// numbers); CPUs (host bridges), PCIe switches, NVSwitches, network adapters and the network are
/// switches. Ways go as NCCL ranks them: over NVLink or xGMI, then by links between a GPU and its
/// CPU, then PCIe, then between sockets, then over the network, which alone joins hosts
/// (`host_hash`); but NVSwitches behind Arm hosts join these too (NVL72).
///
/// Bandwidths: PCIe lanes * GT/s * code / 8; NVLink by `sm`; xGMI by `gcn`, as RCCL counts it;
/// a network port its `speed` in Mbit/s. Latencies are assumed: the file has none.
///
/// Several GPUs of one PCIe device (ranks on a GPU; `mlopart`, the halves of one) share what leads
/// out of it, of which each states all: ranks its NVLinks, halves only PCIe and C2C, since each has
/// its part of the NVLinks. Left out: `<pcilink>`, links between PCIe switches.
#include <algorithm>
#include <map>

#include "base/letters.h"
#include "base/names.h"
#include "base/words.h"
#include "machine/topology/maker_fields.h"
#include "machine/topology/nccl_rates.h"
#include "machine/topology/read.h"
#include "machine/topology/xml_text.h"

namespace orrery::topology {
namespace {

constexpr Time kPcieLatency = 500_ns;      // of a hop; assumed, the file has none
constexpr Time kNvLinkLatency = 700_ns;    // assumed
constexpr Time kNvSwitchLatency = 500_ns;  // a half of the shipped machines' 1 us
constexpr Time kNetLatency = 1_us;         // assumed where the file says 0

// A route counts the worst kind first; no usual route has as many links of a kind as one step up.
constexpr std::int16_t kBridge = 4;  // NVLink between a GPU and its CPU, C2C
constexpr std::int16_t kPcie = 16;
constexpr std::int16_t kSystem = 256;
constexpr std::int16_t kNetwork = 4096;

constexpr Bandwidth kWithin{5e12};      // between ranks on one GPU: NCCL's figure
constexpr Bandwidth kHalves{2.6e12};    // between its halves: 72 % of 3.6 TB/s, NCCL's for Rubin
constexpr Bandwidth kSocket{20.8e9};    // UPI of Skylake; assumed for all but POWER9
constexpr Bandwidth kPower9Bus{32e9};   // NCCL's figure for POWER9's X bus
constexpr double kMegabits = 125e3;     // bytes per second
constexpr double kUnknownNet = 10'000;  // Mbit/s that NCCL takes for a speed of 0 or less
constexpr std::int64_t kFastest = 1'000'000'000;

constexpr std::string_view kAttributes =
    "host_hash numaid affinity arch vendor familyid modelid busid class device "
    "subsystem_vendor subsystem_device link_speed link_width dev sm rank gdr gcn mlopart target "
    "count tclass bw name latency speed port rail plane guid maxconn net gin coll keep version";
constexpr std::string_view kElements =
    "system cpu pci gpu nvlink xgmi c2c pcilink nic net gin coll";

class NcclSystem {
 public:
  NcclSystem(std::string_view text, const std::string& file) : xml_(text, file) {}

  Result<LinkGraph> read() {
    const pugi::xml_node root = xml_.document().child("system");
    if (xml_.error().empty() && !root) {
      xml_.error().add(Error("no <system> in the file"));
    }
    if (xml_.error().empty()) {
      find_hosts(root);
    }
    if (xml_.error().empty() && gpus_.empty()) {
      xml_.mistake(root, "gpu",
                   "GPUs: a file for NCCL_TOPO_FILE leaves them and their NVLinks to NCCL, which "
                   "writes all that it finds with NCCL_TOPO_DUMP_FILE=topo.xml");
    }
    if (xml_.error().empty() && leaves_links_out(root)) {
      xml_.mistake(
          gpus_.front().node, "",
          "<nvlink> of every GPU: adapters have guids that NCCL does not write, so this is "
          "a file for NCCL_TOPO_FILE, whose NVLinks NCCL finds; it writes all with "
          "NCCL_TOPO_DUMP_FILE=topo.xml");
    }
    if (xml_.error().empty()) {
      build(root);
    }
    if (!xml_.error().empty()) {
      return fail(xml_.take());
    }
    return std::move(graph_);
  }

 private:
  static constexpr int kDeepest = 32;
  struct Gpu {
    pugi::xml_node node;
    std::string bus;
    std::size_t host = 0;
    std::int64_t rank = -1;  ///< -1: the file has none
    std::int64_t dev = 0;
    std::int64_t sm = 80;
    std::int32_t bridge = -1;  ///< its CPU
    std::int32_t device = -1;  ///< the vertex that it shares with others of its PCIe device
    bool first = true;         ///< of these
    double part = 1;           ///< of the NVLinks, where they are its own
  };
  struct Host {
    std::string hash;
    std::vector<std::int32_t> bridges;
    Bandwidth between = kSocket;
    bool arm = false;
    std::int32_t nvswitch = -1;
  };

  void find_hosts(const pugi::xml_node& root) {
    check(root);
    for (const pugi::xml_node& cpu : root.children("cpu")) {
      check(cpu);
      const std::string hash = cpu.attribute("host_hash").value();
      const auto known = std::ranges::find(hosts_, hash, &Host::hash);
      const auto host = static_cast<std::size_t>(known - hosts_.begin());
      if (known == hosts_.end()) {
        hosts_.emplace_back().hash = hash;
      }
      const std::string_view arch = cpu.attribute("arch").value();
      hosts_[host].between = arch.starts_with("ppc") ? kPower9Bus : kSocket;
      hosts_[host].arm = arch == "arm64";
      find_gpus(cpu, host, 0);
    }
  }

  void find_gpus(const pugi::xml_node& node, std::size_t host, int depth) {
    for (const pugi::xml_node& child : node.children()) {
      check(child);
      if (std::string_view(child.name()) == "gpu") {
        gpus_.push_back(
            {.node = child, .bus = lower_case(node.attribute("busid").value()), .host = host});
        Gpu& gpu = gpus_.back();
        gpu.dev = child.attribute("dev") ? xml_.number(child, "dev", 0, 1'000'000) : 0;
        gpu.rank = child.attribute("rank") ? xml_.number(child, "rank", -1, 1'000'000) : -1;
        gpu.sm = child.attribute("sm") ? xml_.number(child, "sm", 10, 1000) : gpu.sm;
      }
      if (depth < kDeepest) {
        find_gpus(child, host, depth + 1);
      }
    }
  }

  void check(const pugi::xml_node& node) {
    static const std::vector<std::string> attributes = words_of<std::string>(kAttributes);
    static const std::vector<std::string> elements = words_of<std::string>(kElements);
    for (const pugi::xml_attribute& attribute : node.attributes()) {
      const std::string name = attribute.name();
      if (std::ranges::find(attributes, name) == attributes.end()) {
        xml_.mistake(node, name, "an attribute of NCCL or RCCL" + did_you_mean(name, attributes));
      }
    }
    const std::string name = node.name();
    if (!name.empty() && std::ranges::find(elements, name) == elements.end()) {
      xml_.mistake(node, "", "an element of NCCL or RCCL" + did_you_mean(name, elements));
    }
  }

  /// GPUs of a kind that is sold with NVLink have no link, in a file that NCCL has not written: its
  /// own guids are hexadecimal (aws-ofi-nccl's p5.48xl-topo.xml counts adapters from 0).
  bool leaves_links_out(const pugi::xml_node& root) const {
    const bool linked = std::ranges::any_of(gpus_, [](const Gpu& gpu) {
      const std::int64_t sm = gpu.sm;
      return gpu.node.first_child() || (sm != 70 && sm != 80 && sm != 90 && sm < 100);
    });
    return !linked && root.find_node([](const pugi::xml_node& node) {
      const std::string_view guid = node.attribute("guid").value();
      return !guid.empty() && !guid.starts_with("0x");
    });
  }

  void build(const pugi::xml_node& root) {
    const bool ranked = std::ranges::all_of(gpus_, [](const Gpu& gpu) { return gpu.rank >= 0; });
    std::ranges::stable_sort(gpus_, {}, [&](const Gpu& gpu) {
      return std::pair(ranked ? 0 : gpu.host, ranked ? gpu.rank : gpu.dev);
    });
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      const Gpu& gpu = gpus_[g];
      if (g > 0 && (ranked ? gpu.rank == gpus_[g - 1].rank
                           : gpu.host == gpus_[g - 1].host && gpu.dev == gpus_[g - 1].dev)) {
        xml_.mistake(gpu.node, ranked ? "rank" : "dev", "every GPU once");
      }
      graph_.add(VertexKind::host,
                 "gpu" + std::to_string(ranked ? gpu.rank : static_cast<std::int64_t>(g)), 0);
    }
    std::int32_t number = 0;
    for (const pugi::xml_node& cpu : root.children("cpu")) {
      const std::int32_t bridge =
          graph_.add(VertexKind::switch_, "cpu" + std::to_string(number++), 2);
      Host& host = *std::ranges::find(hosts_, cpu.attribute("host_hash").value(), &Host::hash);
      for (const std::int32_t other : host.bridges) {  // every two bridges: NCCL joins all
        join(other, bridge, host.between, kPcieLatency, kSystem);
      }
      host.bridges.push_back(bridge);
      add_children(cpu, {bridge, bridge, static_cast<std::size_t>(&host - hosts_.data())}, 0);
    }
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      add_links(g);
    }
    graph_.hosts_forward = forward_;
    // A GPU's channels take the adapters that are equally near in turn, so that all share.
    graph_.routing = network_ < 0 ? Routing::ecmp : Routing::spray;
  }

  void join(std::int32_t a, std::int32_t b, Bandwidth bandwidth, Time latency,
            std::int16_t length) {
    graph_.connect(a, b, bandwidth, latency);
    graph_.links[graph_.links.size() - 2].length = graph_.links.back().length = length;
  }

  /// Makes a link one way, or widens the one of that kind which is there: NCCL counts all
  /// NVSwitches as one, and all links to a GPU.
  void widen(std::int32_t from, std::int32_t to, const GraphLink& like) {
    const auto same = std::ranges::find_if(graph_.links, [&](const GraphLink& link) {
      return link.source == from && link.target == to && link.length == like.length;
    });
    if (same != graph_.links.end()) {
      same->bandwidth += like.bandwidth;
    } else {
      graph_.links.push_back(like);
      graph_.links.back().source = from;
      graph_.links.back().target = to;
    }
  }

  struct Place {
    std::int32_t above;   ///< vertex
    std::int32_t bridge;  ///< the CPU's
    std::size_t host;
  };

  /// Adds what stands below a bridge or switch.
  void add_children(const pugi::xml_node& node, const Place& place, int depth) {
    for (const pugi::xml_node& child : node.children()) {
      const std::string_view name = child.name();
      if (name == "pci" && depth < kDeepest) {
        add_pci(child, place, depth);
      } else if (name == "nic") {
        add_nic(child, place, pcie_of(node));
      }
    }
  }

  void add_pci(const pugi::xml_node& pci, const Place& place, int depth) {
    std::vector<std::size_t> own;
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      if (gpus_[g].node.parent() == pci) {
        gpus_[g].bridge = place.bridge;
        own.push_back(g);
      }
    }
    if (own.size() == 1) {
      join(static_cast<std::int32_t>(own[0]), place.above, pcie_of(pci), kPcieLatency, kPcie);
    } else if (!own.empty()) {
      add_shared(own, place.above, pcie_of(pci));
    } else if (pci.child("pci")) {
      const std::int32_t hub =
          graph_.add(VertexKind::switch_, "pci" + std::to_string(graph_.vertices.size()), 1);
      join(hub, place.above, pcie_of(pci), kPcieLatency, kPcie);
      add_children(pci, {hub, place.bridge, place.host}, depth + 1);
    } else {
      for (const pugi::xml_node& nic : pci.children("nic")) {
        add_nic(nic, place, pcie_of(pci));
      }
    }
  }

  /// Joins GPUs of one PCIe device to a vertex that they share.
  void add_shared(const std::vector<std::size_t>& gpus, std::int32_t above, Bandwidth pcie) {
    const std::int32_t device =
        graph_.add(VertexKind::switch_, "dev" + std::to_string(graph_.vertices.size()), 1);
    join(device, above, pcie, kPcieLatency, kPcie);
    for (const std::size_t g : gpus) {
      const bool half = !gpus_[g].node.attribute("mlopart").empty();
      gpus_[g].device = device;
      gpus_[g].first = g == gpus.front();
      gpus_[g].part = half ? 1.0 / static_cast<double>(gpus.size()) : 1;
      join(static_cast<std::int32_t>(g), device, half ? kHalves : kWithin, Time(0), 1);
    }
  }

  /// Returns the vertex of a GPU's NVLinks.
  std::int32_t end_of(std::size_t g) const {
    const Gpu& gpu = gpus_[g];
    return gpu.device >= 0 && gpu.part == 1 ? gpu.device : static_cast<std::int32_t>(g);
  }

  /// The adapter behind its PCIe link, with a link to the network for each port: devices of one
  /// `guid` and `port` share it.
  void add_nic(const pugi::xml_node& nic, const Place& place, Bandwidth pcie) {
    std::int32_t adapter = -1;
    for (const pugi::xml_node& net : nic.children("net")) {
      const auto speed = static_cast<double>(
          net.attribute("speed") ? xml_.number(net, "speed", -kFastest, kFastest) : 0);
      if (adapter < 0) {
        adapter =
            graph_.add(VertexKind::switch_, "nic" + std::to_string(graph_.vertices.size()), 1);
        join(place.above, adapter, pcie, kPcieLatency, kPcie);
      }
      if (network_ < 0) {
        network_ = graph_.add(VertexKind::switch_, "network", 3);
      }
      const std::string guid = net.attribute("guid").value();
      const std::string port = guid.empty() ? std::to_string(graph_.links.size())
                                            : std::to_string(place.host) + " " + guid + " " +
                                                  net.attribute("port").value();
      if (ports_.emplace(port, 0).second) {
        join(adapter, network_, Bandwidth((speed > 0 ? speed : kUnknownNet) * kMegabits),
             kNetLatency, kNetwork);
      }
    }
  }

  /// NVLink, xGMI and C2C of a GPU.
  void add_links(std::size_t g) {
    const Gpu& gpu = gpus_[g];
    if (gpu.bridge < 0) {
      xml_.mistake(gpu.node, "", "a <pci> around it");
      return;
    }
    for (const pugi::xml_node& link : gpu.node.children()) {
      const std::string_view kind = link.name();
      const bool shared = gpu.device >= 0 && !gpu.first;
      if ((kind == "nvlink" || kind == "xgmi") && !(shared && gpu.part == 1)) {
        const Xgmi one = kind == "xgmi" ? xgmi_of(gpu.node.attribute("gcn").value())
                                        : Xgmi{nvlink_of(gpu.sm), 1};
        const auto count = static_cast<double>(xml_.number(link, "count", 1, 256));
        add_link(g, link, {one.bandwidth * (count * gpu.part), one.reached});
      } else if (kind == "c2c" && !shared) {
        const auto all = static_cast<double>(xml_.number(link, "bw", 1, 10'000'000)) *
                         static_cast<double>(xml_.number(link, "count", 1, 256));
        join(gpu.device >= 0 ? gpu.device : static_cast<std::int32_t>(g), gpu.bridge,
             Bandwidth(all * 1e6), kNvLinkLatency, kBridge);
      }
    }
  }

  /// Adds a link to another GPU (which lists its own direction), an NVSwitch or the CPU (classes
  /// 0x068000 and 0x068001). NCCL leaves out GPUs that are not in the file, and so do links to
  /// them.
  void add_link(std::size_t g, const pugi::xml_node& link, const Xgmi& all) {
    const std::int32_t self = end_of(g);
    const std::string target = lower_case(link.attribute("target").value());
    const std::string kind = lower_case(link.attribute("tclass").value());
    const auto other = std::ranges::find_if(
        gpus_, [&](const Gpu& gpu) { return gpu.bus == target && gpu.host == gpus_[g].host; });
    if (other != gpus_.end()) {
      const std::int32_t peer = end_of(static_cast<std::size_t>(other - gpus_.begin()));
      if (peer != self) {
        widen(self, peer,
              {.bandwidth = all.bandwidth, .latency = kNvLinkLatency, .reached = all.reached});
        forward_ = true;
      }
    } else if (kind.starts_with("0x0680")) {
      const bool of_cpu = kind.starts_with("0x068001");
      const std::int32_t hub = of_cpu ? gpus_[g].bridge : nvswitch_of(hosts_[gpus_[g].host]);
      const GraphLink like{.bandwidth = all.bandwidth,
                           .latency = of_cpu ? kNvLinkLatency : kNvSwitchLatency,
                           .length = of_cpu ? kBridge : std::int16_t{1}};
      widen(self, hub, like);
      widen(hub, self, like);
    } else if (!is_gpu_class(kind)) {
      xml_.mistake(link, "tclass", "0x068000 (NVSwitch), 0x068001 (CPU), 0x03.. or 0x12.. (GPU)");
    }
  }

  std::int32_t nvswitch_of(Host& host) {
    std::int32_t& known = host.arm ? joined_nvswitch_ : host.nvswitch;
    if (known < 0) {
      known =
          graph_.add(VertexKind::switch_, "nvswitch" + std::to_string(graph_.vertices.size()), 1);
    }
    return known;
  }

  XmlText xml_;
  LinkGraph graph_;
  std::vector<Host> hosts_;
  std::vector<Gpu> gpus_;
  std::map<std::string, int> ports_;
  std::int32_t joined_nvswitch_ = -1;  ///< of Arm hosts
  std::int32_t network_ = -1;
  bool forward_ = false;  ///< GPUs pass messages on over direct links
};

}  // namespace

Result<LinkGraph> read_nccl(std::string_view text, const std::string& file) {
  return NcclSystem(text, file).read();
}

}  // namespace orrery::topology
