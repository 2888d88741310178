// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/format.h"
#include "machine/machine.h"

namespace orrery::machine {
namespace {

/// Lines "name: value" of an indented map; `first` replaces the last two spaces of the first line's
/// indent ("- " starts a list item).
template <class T>
std::string write_fields(const T& value, std::size_t indent, std::string_view first = "  ") {
  std::string text;
  T::fields([&](std::string_view name, auto member, std::string_view) {
    const std::string shown = exact_text(value.*member);
    if (shown == "\"\"" || compute::is_unknown(value.*member)) {
      return;
    }
    text +=
        fmt::format("{:{}}{}{}: {}\n", "", indent - 2, text.empty() ? first : "  ", name, shown);
  });
  return text;
}

/// "    fp8: {gemm_launch: 5 us}": the fields in which the coefficients of a format differ.
std::string write_differences(const std::string& format, const compute::KernelCoefficients& kernels,
                              const compute::KernelCoefficients& base) {
  std::vector<std::string> fields;
  compute::KernelCoefficients::fields([&](std::string_view name, auto member, std::string_view) {
    if (kernels.*member != base.*member) {
      fields.push_back(fmt::format("{}: {}", name, exact_text(kernels.*member)));
    }
  });
  return fmt::format("    {}: {{{}}}\n", format, fmt::join(fields, ", "));
}

std::string write_device(const compute::Device& device) {
  std::string text = "device:\n" + write_fields(device, 2) + "  peak:\n";
  for (const Named<graph::DataType>& type : kNames<graph::DataType>) {
    const FlopRate peak = device.peak[static_cast<std::size_t>(type.value)];
    if (peak > FlopRate(0)) {
      text += fmt::format("    {}: {}\n", type.name, exact_text(peak));
    }
  }
  if (device.power_model.known()) {
    text += "  power_model:\n" + write_fields(device.power_model, 4);
  }
  compute::model_map(device, [&](const auto& map) {
    text += fmt::format("  model: {0}\n  {0}:\n", name_of(device.model)) + write_fields(map, 4);
  });
  text += "  memory:\n";
  for (const compute::MemoryTier& tier : device.memory) {
    text += write_fields(tier, 6, "- ");
  }
  if (device.tracker) {
    text += "  tracker:\n" + write_fields(*device.tracker, 4);
  }
  text += "  kernels:\n" + write_fields(device.kernels, 4);
  for (const auto& [format, kernels] : device.format_kernels) {
    text += write_differences(format, kernels, device.kernels);
  }
  return text;
}

std::string indented(const std::string& lines, std::size_t by) {
  std::string text;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin) + 1;
    text += std::string(by, ' ') + lines.substr(begin, end - begin);
    begin = end;
  }
  return text;
}

std::string write_protocols(std::string_view name,
                            const std::vector<topology::Protocol>& protocols) {
  std::string text = protocols.empty() ? "" : fmt::format("    {}:\n", name);
  for (const topology::Protocol& protocol : protocols) {
    text += write_fields(protocol, 8, "- ");
  }
  return text;
}

std::string write_dimension(const topology::NetworkDimension& dimension) {
  std::string text = write_fields(dimension, 4, "- ");
  if (dimension.granule > 0) {
    text += fmt::format("    granule: {}\n", dimension.granule);
  }
  if (!dimension.shape.empty()) {
    text += fmt::format("    shape: [{}]\n", fmt::join(dimension.shape, ", "));
  }
  if (dimension.node_bandwidth > Bandwidth(0)) {
    text += fmt::format("    node_bandwidth: {}\n", exact_text(dimension.node_bandwidth));
  }
  text += dimension.bandwidth_by_peers.empty() ? "" : "    bandwidth_by_peers:\n";
  for (const topology::PeerShare& at : dimension.bandwidth_by_peers) {
    text += write_fields(at, 8, "- ");
  }
  for (const auto& [name, list] : topology::kProtocolLists) {
    text += write_protocols(name, dimension.*list);
  }
  return text;
}

std::string write_remote_memory(const memory::RemoteMemory& memory) {
  std::string text = "remote_memory:\n";
  memory::RemoteMemory::fields([&](std::string_view name, auto member, std::string_view) {
    if (memory::has_field(memory.kind, name)) {
      text += fmt::format("  {}: {}\n", name, exact_text(memory.*member));
    }
  });
  return text;
}

}  // namespace

std::string to_yaml(const Machine& machine) {
  std::string text = fmt::format("name: {}\ndescription: {}\n", exact_text(machine.name),
                                 exact_text(machine.description));
  text += machine.parts.empty() ? write_device(machine.device) : "parts:\n";
  for (const DeviceGroup& part : machine.parts) {
    text += fmt::format("  - name: {}\n    devices: {}\n", exact_text(part.name), part.devices);
    text += indented(write_device(part.device), 4);
  }
  text += "network:\n";
  for (const topology::NetworkDimension& dimension : machine.network) {
    text += write_dimension(dimension);
  }
  if (!machine.wires.spec.empty()) {
    text += fmt::format("topology:\n  links: {}\n  routing: {}\n  seed: {}\n",
                        exact_text(machine.wires.spec), exact_text(machine.wires.routing),
                        machine.wires.seed);
  }
  if (machine.remote_memory.exists()) {
    text += write_remote_memory(machine.remote_memory);
  }
  if (machine.flit != flit::FabricSettings()) {
    text += "flit:\n" + write_fields(machine.flit, 2);
  }
  if (machine.packet != network::PacketOptions()) {
    text += "packet:\n" + write_fields(machine.packet, 2);
  }
  if (!machine.origins.empty()) {
    text += "origins:\n";
  }
  for (const auto& [field, origin] : machine.origins) {
    text += fmt::format("  {}: {}\n", exact_text(field), exact_text(origin));
  }
  return text;
}

}  // namespace orrery::machine
