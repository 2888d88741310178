// SPDX-License-Identifier: Apache-2.0
/// NCCL's topology files. GPUs are hosts in the order of their ranks (or numbers); CPUs (host
/// bridges), PCIe switches, the NVSwitch and network adapters with their network are switches.
///
/// Bandwidths: PCIe lanes * GT/s * 128/130 / 8; NVLink by the compute capability; a network adapter
/// its `speed` in Mbit/s. Latencies are assumed: the file has none.
#include <algorithm>
#include <cstdlib>

#include "machine/topology/maker_fields.h"
#include "machine/topology/read.h"
#include "machine/topology/xml_text.h"

namespace orrery::topology {
namespace {

constexpr Time kPcieLatency = 500_ns;    // of a hop; assumed, the file has none
constexpr Time kNvLinkLatency = 700_ns;  // assumed
constexpr Time kNetLatency = 1_us;       // assumed where the file says 0

/// Returns the bandwidth of one NVLink and direction, from a GPU's compute capability (NVIDIA's
/// data sheets: P100 20, V100 and A100 25, H100 25, B200 50 GB/s).
Bandwidth nvlink_of(std::int64_t sm) {
  return Bandwidth(sm < 70 ? 20e9 : sm < 100 ? 25e9 : 50e9);
}

class NcclSystem {
 public:
  NcclSystem(std::string_view text, const std::string& file) : xml_(text, file) {}

  Result<LinkGraph> read() {
    const pugi::xml_node root = xml_.document().child("system");
    if (xml_.error().empty() && !root) {
      xml_.error().add(Error("no <system> in the file"));
    }
    if (xml_.error().empty()) {
      find_gpus(root, 0);
      if (gpus_.empty() && xml_.error().empty()) {
        xml_.error().add({xml_.where(0), "system", {}, "without <gpu>"});
      }
    }
    if (xml_.error().empty()) {
      build(root);
    }
    if (!xml_.error().empty()) {
      return fail(std::move(xml_.error()));
    }
    return std::move(graph_);
  }

 private:
  static constexpr int kDeepest = 32;
  struct Gpu {
    pugi::xml_node node;
    std::string bus;
    std::int64_t rank = 0;
    std::int64_t sm = 0;
  };

  void find_gpus(const pugi::xml_node& node, int depth) {
    for (const pugi::xml_node& child : node.children()) {
      if (std::string_view(child.name()) == "gpu") {
        const bool has_rank = !child.attribute("rank").empty();
        gpus_.push_back({child, node.attribute("busid").value(),
                         xml_.number(child, has_rank ? "rank" : "dev", 0, 1'000'000),
                         child.attribute("sm") ? xml_.number(child, "sm", 10, 1000) : 80});
      } else if (depth < kDeepest) {
        find_gpus(child, depth + 1);
      }
    }
  }

  void build(const pugi::xml_node& root) {
    std::ranges::stable_sort(gpus_, {}, &Gpu::rank);
    for (const Gpu& gpu : gpus_) {
      graph_.add(VertexKind::host, "gpu" + std::to_string(gpu.rank), 0);
    }
    for (std::size_t g = 1; g < gpus_.size(); ++g) {
      if (gpus_[g].rank == gpus_[g - 1].rank) {
        xml_.mistake(gpus_[g].node, "dev", "every GPU once");
      }
    }
    std::vector<std::int32_t> bridges;
    for (const pugi::xml_node& cpu : root.children("cpu")) {
      bridges.push_back(graph_.add(VertexKind::switch_, "cpu" + std::to_string(bridges.size()), 2));
      add_children(cpu, bridges.back(), 0);
    }
    for (std::size_t b = 0; b < bridges.size(); ++b) {  // every two bridges: NCCL joins all
      for (std::size_t other = b + 1; other < bridges.size(); ++other) {
        graph_.connect(bridges[b], bridges[other], kSocket, kPcieLatency);
      }
    }
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      add_nvlinks(g);
    }
    graph_.hosts_forward = nvswitch_ < 0;
    graph_.routing = Routing::ecmp;
  }

  /// Below a bridge or switch.
  void add_children(const pugi::xml_node& node, std::int32_t above, int depth) {
    for (const pugi::xml_node& child : node.children()) {
      const std::string_view name = child.name();
      if (name == "pci" && depth < kDeepest) {
        add_pci(child, above, depth);
      } else if (name == "nic") {
        for (const pugi::xml_node& net : child.children("net")) {
          add_net(net, above, pcie_of(node));
        }
      }
    }
  }

  void add_pci(const pugi::xml_node& pci, std::int32_t above, int depth) {
    const auto gpu =
        std::ranges::find_if(gpus_, [&](const Gpu& known) { return known.node.parent() == pci; });
    if (gpu != gpus_.end()) {
      graph_.connect(static_cast<std::int32_t>(gpu - gpus_.begin()), above, pcie_of(pci),
                     kPcieLatency);
      return;
    }
    const bool is_switch = pci.child("pci");
    if (!is_switch) {
      for (const pugi::xml_node& nic : pci.children("nic")) {
        for (const pugi::xml_node& net : nic.children("net")) {
          add_net(net, above, pcie_of(pci));
        }
      }
      return;
    }
    const std::int32_t hub =
        graph_.add(VertexKind::switch_, "pci" + std::to_string(graph_.vertices.size()), 1);
    graph_.connect(hub, above, pcie_of(pci), kPcieLatency);
    add_children(pci, hub, depth + 1);
  }

  /// A lane of a GT/s rate carries 128/130 of its bits; without a speed 16 lanes of 16 GT/s.
  static Bandwidth pcie_of(const pugi::xml_node& pci) {
    const double rate = std::strtod(pci.attribute("link_speed").value(), nullptr);
    const double lanes = std::strtod(pci.attribute("link_width").value(), nullptr);
    const double product = rate > 0 && lanes > 0 && rate < 1e4 && lanes <= 64 ? rate * lanes : 256;
    return Bandwidth(product * 1e9 / 8 * (128.0 / 130));
  }

  /// The adapter, behind its PCIe link, and the network that all of them reach.
  void add_net(const pugi::xml_node& net, std::int32_t above, Bandwidth pcie) {
    const auto megabits = xml_.number(net, "speed", 1, 100'000'000);
    const auto number = std::to_string(graph_.vertices.size());
    const std::int32_t nic = graph_.add(VertexKind::switch_, "nic" + number, 1);
    graph_.connect(above, nic, pcie, kPcieLatency);
    if (network_ < 0) {
      network_ = graph_.add(VertexKind::switch_, "network", 3);
    }
    graph_.connect(nic, network_, Bandwidth(static_cast<double>(megabits) * 125e3), kNetLatency);
  }

  void add_nvlinks(std::size_t g) {
    const auto self = static_cast<std::int32_t>(g);
    for (const pugi::xml_node& link : gpus_[g].node.children("nvlink")) {
      const auto count = static_cast<double>(xml_.number(link, "count", 1, 256));
      const Bandwidth all(nvlink_of(gpus_[g].sm).value() * count);
      const std::string target = link.attribute("target").value();
      const auto other =
          std::ranges::find_if(gpus_, [&](const Gpu& gpu) { return gpu.bus == target; });
      const std::string_view kind = link.attribute("tclass").value();
      if (other != gpus_.end()) {  // the other GPU lists it too: one direction each
        graph_.links.push_back(
            {self, static_cast<std::int32_t>(other - gpus_.begin()), all, kNvLinkLatency});
      } else if (kind.starts_with("0x0680")) {
        if (nvswitch_ < 0) {
          nvswitch_ = graph_.add(VertexKind::switch_, "nvswitch", 1);
        }
        graph_.connect(self, nvswitch_, all, kNvLinkLatency);
      } else {
        xml_.mistake(link, "target", "the busid of a GPU, or tclass 0x068000 of an NVSwitch");
      }
    }
  }

  static constexpr Bandwidth kSocket{
      20.8e9};  // UPI of Skylake, NCCL's SKL_QPI_BW 10 and more; assumed
  XmlText xml_;
  LinkGraph graph_;
  std::vector<Gpu> gpus_;
  std::int32_t nvswitch_ = -1;
  std::int32_t network_ = -1;
};

}  // namespace

Result<LinkGraph> read_nccl(std::string_view text, const std::string& file) {
  return NcclSystem(text, file).read();
}

}  // namespace orrery::topology
