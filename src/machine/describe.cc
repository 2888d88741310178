// SPDX-License-Identifier: Apache-2.0
#include "machine/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "base/format.h"
#include "base/lists.h"

namespace orrery::machine {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

template <class T>
std::string shown(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(name_of(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return fmt::format("{:.6g}", value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else {
    return to_string(value);
  }
}

/// Every field of a struct but its name, which is part of `path`, empty texts and what is not
/// known.
template <class T>
void add(const T& value, const std::string& path, Fields& fields) {
  T::fields([&](std::string_view name, auto member, std::string_view) {
    std::string text = shown(value.*member);
    if (name != "name" && !text.empty() && !compute::is_unknown(value.*member)) {
      fields.emplace_back(fmt::format("{}.{}", path, name), std::move(text));
    }
  });
}

void add_device(const compute::Device& device, const std::string& path, Fields& fields) {
  add(device, path, fields);
  for (const Named<graph::DataType>& type : kNames<graph::DataType>) {
    const FlopRate peak = device.peak[static_cast<std::size_t>(type.value)];
    if (peak > FlopRate(0)) {
      fields.emplace_back(fmt::format("{}.peak.{}", path, type.name), to_string(peak));
    }
  }
  if (device.power_model.known()) {
    add(device.power_model, path + ".power_model", fields);
  }
  compute::model_map(device, [&](const auto& map) {
    add(map, fmt::format("{}.{}", path, name_of(device.model)), fields);
  });
  for (const compute::MemoryTier& tier : device.memory) {
    add(tier, fmt::format("{}.memory.{}", path, tier.name), fields);
  }
  if (device.tracker) {
    add(*device.tracker, path + ".tracker", fields);
  }
  add(device.kernels, path + ".kernels", fields);
  for (const auto& [format, kernels] : device.format_kernels) {
    const std::string of_format = fmt::format("{}.kernels.{}", path, format);
    compute::KernelCoefficients::fields([&](std::string_view name, auto member, std::string_view) {
      if (kernels.*member != device.kernels.*member) {
        fields.emplace_back(fmt::format("{}.{}", of_format, name), shown(kernels.*member));
      }
    });
  }
}

void add_dimension(const topology::NetworkDimension& dimension, Fields& fields) {
  const std::string path = "network." + dimension.name;
  add(dimension, path, fields);
  if (dimension.background_share == 1) {
    std::erase_if(fields,
                  [&](const auto& field) { return field.first == path + ".background_share"; });
  }
  if (dimension.size == 0) {
    std::find_if(fields.begin(), fields.end(), [&](const auto& field) {
      return field.first == path + ".size";
    })->second = "any";
  }
  if (dimension.granule > 0) {
    fields.emplace_back(path + ".granule", std::to_string(dimension.granule));
  }
  if (!dimension.shape.empty()) {
    fields.emplace_back(path + ".shape", joined(dimension.shape, " x "));
  }
  if (dimension.node_bandwidth > Bandwidth(0)) {
    fields.emplace_back(path + ".node_bandwidth", to_string(dimension.node_bandwidth));
  }
  for (const topology::PeerShare& at : dimension.bandwidth_by_peers) {
    fields.emplace_back(fmt::format("{}.bandwidth_by_peers.{}", path, at.peers), shown(at.share));
  }
  for (const auto& [name, list] : topology::kProtocolLists) {
    for (const topology::Protocol& protocol : dimension.*list) {
      add(protocol, fmt::format("{}.{}.{}", path, name, protocol.name), fields);
    }
  }
}

void add_remote_memory(const memory::RemoteMemory& memory, Fields& fields) {
  memory::RemoteMemory::fields([&](std::string_view name, auto member, std::string_view) {
    if (memory::has_field(memory.kind, name)) {
      fields.emplace_back(fmt::format("remote_memory.{}", name), shown(memory.*member));
    }
  });
}

}  // namespace

Fields fields_of(const Machine& machine) {
  Fields fields;
  if (machine.parts.empty()) {
    add_device(machine.device, "device", fields);
  }
  for (const DeviceGroup& part : machine.parts) {
    const std::string path = "parts." + part.name;
    fields.emplace_back(path + ".devices", std::to_string(part.devices));
    add_device(part.device, path + ".device", fields);
  }
  for (const topology::NetworkDimension& dimension : machine.network) {
    add_dimension(dimension, fields);
  }
  if (machine.remote_memory.exists()) {
    add_remote_memory(machine.remote_memory, fields);
  }
  if (machine.flit != flit::FabricSettings()) {
    flit::FabricSettings::fields([&](std::string_view name, auto member, std::string_view) {
      fields.emplace_back(fmt::format("flit.{}", name), shown(machine.flit.*member));
    });
  }
  if (machine.packet != network::PacketOptions()) {
    network::PacketOptions::fields([&](std::string_view name, auto member, std::string_view) {
      fields.emplace_back(fmt::format("packet.{}", name), shown(machine.packet.*member));
    });
  }
  return fields;
}

std::string origin_of(const Machine& machine, const std::string& field) {
  std::string prefix = field;
  for (;;) {
    if (const auto origin = machine.origins.find(prefix); origin != machine.origins.end()) {
      return origin->second;
    }
    const auto dot = prefix.rfind('.');
    if (dot == std::string::npos) {
      return "";
    }
    prefix.resize(dot);
  }
}

std::string origin_word(const Machine& machine, const std::string& field) {
  const std::string origin = origin_of(machine, field);
  return origin.empty() ? "not stated" : origin.substr(0, origin.find_first_of(":; "));
}

std::string describe(const Machine& machine) {
  std::string text =
      fmt::format("{}: {}\ndevice {}\n\n", machine.name, machine.description, machine.device.name);
  const Fields fields = fields_of(machine);
  std::size_t name_width = 0;
  for (const auto& [name, value] : fields) {
    name_width = std::max(name_width, name.size());
  }
  std::vector<std::string> origins;
  for (const auto& [name, value] : fields) {
    const std::string origin = origin_of(machine, name);
    std::size_t note = 0;
    if (!origin.empty()) {
      const auto known = std::find(origins.begin(), origins.end(), origin);
      note = static_cast<std::size_t>(known - origins.begin()) + 1;
      if (known == origins.end()) {
        origins.push_back(origin);
      }
    }
    text += note == 0 ? fmt::format("  {:{}}  {}\n", name, name_width, value)
                      : fmt::format("  {:{}}  {:<14}  [{}]\n", name, name_width, value, note);
  }
  text += origins.empty() ? "" : "\nOrigins\n";
  for (std::size_t i = 0; i < origins.size(); ++i) {
    text += fmt::format("  {:>4} {}\n", fmt::format("[{}]", i + 1), origins[i]);
  }
  return text;
}

}  // namespace orrery::machine
