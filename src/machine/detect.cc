// SPDX-License-Identifier: Apache-2.0
#include "machine/detect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/format.h"
#include "base/letters.h"
#include "machine/device_groups.h"
#include "machine/node_tools.h"
#include "machine/slice.h"

namespace orrery::machine {
namespace {

/// Names of drivers and the shipped machine whose nodes have that device. A name that is longer
/// than a row's matches it ("NVIDIA GH200 480GB"); the longest row counts.
struct KnownDevice {
  std::string_view driver;
  std::string_view machine;
};
constexpr auto kKnownDevices = std::to_array<KnownDevice>({
    {"NVIDIA H100 80GB HBM3", "dgx-h100"},
    {"NVIDIA H100 NVL", "h100-nvl"},
    {"NVIDIA H100 PCIe", "h100-pcie"},
    {"NVIDIA H200", "dgx-h200"},
    {"NVIDIA H20", "h20"},
    {"NVIDIA H800", "dgx-h800"},
    {"NVIDIA GH200", "gh200"},
    {"NVIDIA B200", "dgx-b200"},
    {"NVIDIA B300", "dgx-b300"},
    {"NVIDIA GB200", "gb200-nvl72"},
    {"NVIDIA GB300", "gb300-nvl72"},
    {"NVIDIA A100-SXM4-80GB", "dgx-a100-80g"},
    {"NVIDIA A100-SXM4-40GB", "dgx-a100-40g"},
    {"NVIDIA A100 80GB PCIe", "a100-pcie-80g"},
    {"NVIDIA A100-PCIE-40GB", "a100-pcie-40g"},
    {"Tesla V100-SXM2", "dgx-1-v100"},
    {"Tesla V100-SXM3", "dgx-2-v100"},
    {"NVIDIA L40S", "l40s"},
    {"NVIDIA L40", "l40"},
    {"NVIDIA L4", "l4"},
    {"NVIDIA A10", "a10"},
    {"NVIDIA A10G", "a10g"},
    {"NVIDIA RTX A6000", "a6000"},
    {"NVIDIA GeForce RTX 3090", "rtx-3090"},
    {"NVIDIA GeForce RTX 4090", "rtx-4090"},
    {"NVIDIA GeForce RTX 5090", "rtx-5090"},
    {"NVIDIA RTX PRO 6000", "rtx-pro-6000"},
    {"Tesla T4", "t4"},
    {"AMD Instinct MI300X", "mi300x"},
    {"AMD Instinct MI325X", "mi325x"},
    {"AMD Instinct MI350X", "mi350x"},
    {"AMD Instinct MI355X", "mi355x"},
    {"AMD Instinct MI250X", "frontier"},
});

/// Returns "" for a name that no row has. A row ends where the name or a word of it ends.
std::string known_machine(const std::string& driver) {
  std::string machine;
  std::size_t longest = 0;
  for (const KnownDevice& row : kKnownDevices) {
    const std::size_t length = row.driver.size();
    const bool whole =
        driver.starts_with(row.driver) &&
        (driver.size() == length || std::isalnum(static_cast<unsigned char>(driver[length])) == 0);
    if (whole && length > longest) {
      longest = length;
      machine = row.machine;
    }
  }
  return machine;
}

/// GB/s of payload of a link whose signal has `rate`.
double payload(double rate) {
  constexpr double kNear = 1e-3;
  struct Coding {
    double of_64_in_66;
    double of_16_in_17;
  };
  const Coding coded{rate * 64 / 66, rate * 16 / 17};
  const auto is_round = [](double value) {
    return std::abs(value / 25 - std::round(value / 25)) < kNear && value > 1;
  };
  return is_round(coded.of_64_in_66)   ? std::round(coded.of_64_in_66)
         : is_round(coded.of_16_in_17) ? std::round(coded.of_16_in_17)
                                       : rate;
}

constexpr std::int64_t kPair = 2;  // of a bridge, of which a host has several

class Detection {
 public:
  explicit Detection(const ToolOutputs& outputs) : outputs_(outputs) {}

  Result<Detected> run(const std::optional<std::string>& like) {
    const std::vector<NodeDevice> devices = read_devices();
    if (!mistakes_.empty()) {
      return fail(std::move(mistakes_));
    }
    const NodeDevice& device = devices.front();
    result_.like = like ? *like : known_machine(device.name);
    result_.devices = std::ssize(devices);
    if (result_.like.empty()) {
      return fail(Error(Mistake{
          {},
          "device",
          device.name,
          "the driver's name of a device of a shipped machine; --like NAME says whose kernels and "
          "links stand for it (`orrery list machines`)"}));
    }
    auto base = load_machine(result_.like);
    if (!base) {
      return fail(std::move(base.error()));
    }
    if (auto alike = check_alike(*base, "detect"); !alike) {
      return fail(std::move(alike.error()));
    }
    result_.machine = std::move(*base);
    name_it(device);
    use_device(device);
    use_node();
    use_links();
    use_ports();
    use_slurm(device);
    if (!mistakes_.empty()) {
      return fail(std::move(mistakes_));
    }
    result_.kept.push_back("rates of kernels, host memory, latencies and protocols are those of " +
                           result_.like + "; `orrery calibrate` replaces them by measurements");
    return std::move(result_);
  }

 private:
  const std::string* output(const std::string& file) const {
    const auto found = outputs_.find(file);
    return found == outputs_.end() || found->second.empty() ? nullptr : &found->second;
  }

  template <class T>
  T collected(Result<T> read) {
    if (read) {
      return std::move(*read);
    }
    mistakes_.add(std::move(read.error()));
    return T{};
  }

  std::vector<NodeDevice> read_devices() {
    std::vector<NodeDevice> devices;
    if (const std::string* text = output("nvidia-smi.csv")) {
      devices = collected(read_nvidia_smi(*text, "nvidia-smi.csv"));
      tool_ = "nvidia-smi";
    }
    if (const std::string* text = output("rocm-smi.json"); text != nullptr && devices.empty()) {
      devices = collected(read_rocm_smi(*text, "rocm-smi.json"));
      tool_ = "rocm-smi";
    }
    if (devices.empty() && mistakes_.empty()) {
      mistakes_.add({"detect", {}, {}, "neither nvidia-smi nor rocm-smi names an accelerator"});
    }
    for (const NodeDevice& device : devices) {
      if (device.name != devices.front().name) {
        mistakes_.add({"detect", "device", device.name,
                       "all devices of a node alike, as the first, " + devices.front().name});
        break;
      }
    }
    return devices;
  }

  void name_it(const NodeDevice& device) {
    result_.machine.name = result_.like.substr(result_.like.rfind('/') + 1) + "-detected";
    result_.machine.description =
        fmt::format("nodes of {} x {}, as their tools say; the rest as {}", result_.devices,
                    device.name, result_.like);
    result_.found.push_back(fmt::format("{}: {} x {} a node", tool_, result_.devices, device.name));
  }

  void set_origin(const std::string& field, const std::string& how) {
    result_.machine.origins[field] = "measured: " + how;
    result_.found.push_back(how);
  }

  void use_device(const NodeDevice& device) {
    compute::MemoryTier& memory = result_.machine.device.memory.front();
    memory.capacity = device.memory;
    set_origin("device.memory." + memory.name + ".capacity",
               fmt::format("{}: {} of memory", tool_, to_string(device.memory)));
    if (!device.power || *device.power >= result_.machine.device.power) {
      return;
    }
    auto capped = with_power_cap(result_.machine, *device.power);
    const std::string limit =
        fmt::format("{}: power limit of {}, below {}", tool_, to_string(*device.power),
                    to_string(result_.machine.device.power));
    if (capped) {
      result_.machine = std::move(*capped);
      set_origin("device.power_cap", limit);
    } else {
      result_.kept.push_back(limit + ": not held, " + capped.error().to_string());
    }
  }

  /// The dimensions inside a node, where one alone is.
  void use_node() {
    std::vector<topology::NetworkDimension>& network = result_.machine.network;
    if (network.empty() || network.front().size == result_.devices) {
      return;
    }
    topology::NetworkDimension& inner = network.front();
    const bool one_inside =
        network.size() == 1 || (network.size() == 2 && network.back().size == 0);
    const bool resizes = one_inside && inner.shape.empty() && inner.granule == 0 &&
                         (result_.devices <= inner.size ||
                          (inner.kind == topology::DimensionKind::switched && inner.size > kPair));
    if (!resizes) {
      result_.kept.push_back(fmt::format("nodes as {} has them ({}), not of {} devices",
                                         result_.like, dimension_sizes(result_.machine),
                                         result_.devices));
      return;
    }
    if (result_.devices <= inner.size) {
      cut(inner, result_.devices);
    } else {
      inner.size = result_.devices;
    }
    set_origin("network." + inner.name + ".size",
               fmt::format("{}: {} devices a node", tool_, result_.devices));
  }

  void use_links() {
    const std::string* text = output("nvlink.txt");
    const std::vector<NodeLinks> devices =
        text == nullptr ? std::vector<NodeLinks>() : read_nvlink(*text);
    const auto least = std::ranges::min_element(devices, {}, &NodeLinks::up);
    if (least == devices.end() || least->up == 0 || result_.machine.network.empty() ||
        result_.machine.network.front().name.find("nvlink") == std::string::npos) {
      return;
    }
    topology::NetworkDimension& inner = result_.machine.network.front();
    const double rate = payload(least->rate);
    const Bandwidth bandwidth(static_cast<double>(least->up) * rate * 1e9);
    if (least->up < least->all) {
      result_.found.push_back(fmt::format("nvidia-smi nvlink: of {} links {} are up on a device",
                                          least->all, least->up));
    }
    if (std::abs(bandwidth / inner.bandwidth - 1) < 0.01) {
      result_.found.push_back(fmt::format("nvidia-smi nvlink: {} links of {} GB/s each way, as {}",
                                          least->up, rate, result_.like));
      return;
    }
    inner.bandwidth = bandwidth;
    set_origin("network." + inner.name + ".bandwidth",
               fmt::format("nvidia-smi nvlink: {} links of {} GB/s each way", least->up, rate));
  }

  void use_ports() {
    const std::string* text = output("ibstat.txt");
    if (text == nullptr) {
      result_.kept.push_back("the network between nodes is " + result_.like +
                             "'s: ibstat says nothing");
      return;
    }
    std::vector<NodePort> ports = collected(read_ibstat(*text, "ibstat.txt"));
    const std::string* matrix = output("topo.txt");
    const std::set<std::string> near =
        matrix == nullptr ? std::set<std::string>() : read_near_adapters(*matrix);
    const std::size_t all = ports.size();
    std::erase_if(
        ports, [&](const NodePort& port) { return !near.empty() && !near.contains(port.adapter); });
    double fastest = 0;
    for (const NodePort& port : ports) {
      fastest = std::max(fastest, port.rate);
    }
    std::erase_if(ports, [&](const NodePort& port) { return port.rate < fastest; });
    if (ports.empty() || result_.machine.network.size() < 2) {
      result_.kept.push_back("the network between nodes is " + result_.like +
                             "'s: no port of ibstat is active beside a device");
      return;
    }
    topology::NetworkDimension& outer = result_.machine.network.back();
    const auto count = static_cast<double>(ports.size());
    outer.bandwidth = Bandwidth(count * fastest * 1e9 / 8 / static_cast<double>(result_.devices));
    set_origin("network." + outer.name + ".bandwidth",
               fmt::format("ibstat: {} of {} active ports serve {} devices, {} Gbit/s each ({})",
                           ports.size(), all, result_.devices, fastest, ports.front().layer));
  }

  void use_slurm(const NodeDevice& device) {
    const std::string* text = output("slurm.txt");
    const std::vector<SlurmNode> nodes =
        text == nullptr ? std::vector<SlurmNode>() : read_slurm(*text);
    const std::string name = lower_case(device.name);
    std::int64_t alike = 0;
    for (const SlurmNode& node : nodes) {
      const bool same =
          node.devices == result_.devices &&
          (node.type.empty() || name.find(lower_case(node.type)) != std::string::npos);
      alike += same ? 1 : 0;
      result_.nodes += same && node.usable ? 1 : 0;
    }
    if (result_.nodes == 0 || result_.machine.network.size() < 2) {
      return;
    }
    topology::NetworkDimension& outer = result_.machine.network.back();
    const std::string how = fmt::format("Slurm: {} of {} nodes with {} such devices are in service",
                                        result_.nodes, alike, result_.devices);
    if (!outer.shape.empty() || result_.nodes == 1) {
      result_.found.push_back(how);
      return;
    }
    outer.size = result_.nodes;
    set_origin("network." + outer.name + ".size", how);
  }

  const ToolOutputs& outputs_;
  std::string tool_;
  Error mistakes_;
  Detected result_;
};

}  // namespace

Result<Detected> detect(const ToolOutputs& outputs, const std::optional<std::string>& like) {
  return Detection(outputs).run(like);
}

}  // namespace orrery::machine
