// SPDX-License-Identifier: Apache-2.0
#include "machine/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "base/format.h"

namespace orrery {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

std::string shown(Time time) {
  return to_string(time);
}
std::string shown(double number) {
  return fmt::format("{:g}", number);
}

void add_device(const Device& device, Fields& fields) {
  fields.emplace_back("device.units", std::to_string(device.units));
  for (const Named<DataType>& type : kNames<DataType>) {
    const FlopRate peak = device.peak[static_cast<std::size_t>(type.value)];
    if (peak > FlopRate(0)) {
      fields.emplace_back(fmt::format("device.peak.{}", type.name), to_string(peak));
    }
  }
  for (const MemoryTier& tier : device.memory) {
    const std::string path = "device.memory." + tier.name + ".";
    fields.emplace_back(path + "capacity", to_string(tier.capacity));
    fields.emplace_back(path + "bandwidth", to_string(tier.bandwidth));
    fields.emplace_back(path + "latency", to_string(tier.latency));
  }
  fields.emplace_back("device.power", to_string(device.power));
  fields.emplace_back("device.overlap_units", shown(device.overlap_units));
  fields.emplace_back("device.overlap_memory", shown(device.overlap_memory));
  KernelCoefficients::fields([&](std::string_view name, auto member, std::string_view) {
    fields.emplace_back(fmt::format("device.kernels.{}", name), shown(device.kernels.*member));
  });
}

void add_dimension(const NetworkDimension& dimension, Fields& fields) {
  const std::string path = "network." + dimension.name + ".";
  std::string size = dimension.size == 0 ? "any" : std::to_string(dimension.size);
  if (!dimension.shape.empty()) {
    size = fmt::format("{}", fmt::join(dimension.shape, " x "));
  }
  fields.emplace_back(path + "size", fmt::format("{} ({})", size, name_of(dimension.kind)));
  fields.emplace_back(path + "bandwidth", to_string(dimension.bandwidth));
  fields.emplace_back(path + "latency", to_string(dimension.latency));
  fields.emplace_back(path + "message_overhead", to_string(dimension.message_overhead));
  fields.emplace_back(path + "send_efficiency", shown(dimension.send_efficiency));
  for (const Protocol& protocol : dimension.protocols) {
    fields.emplace_back(fmt::format("{}protocols.{}", path, protocol.name),
                        fmt::format("launch {}, step {}, efficiency {:g}, local copy {:g}",
                                    to_string(protocol.launch), to_string(protocol.step_latency),
                                    protocol.efficiency, protocol.local_copy));
  }
}

}  // namespace

Fields fields_of(const Machine& machine) {
  Fields fields;
  add_device(machine.device, fields);
  for (const NetworkDimension& dimension : machine.network) {
    add_dimension(dimension, fields);
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

std::string describe(const Machine& machine) {
  std::string text =
      fmt::format("{}: {}\ndevice {}\n", machine.name, machine.description, machine.device.name);
  const Fields fields = fields_of(machine);
  std::size_t name_width = 0;
  std::size_t value_width = 0;
  for (const auto& [name, value] : fields) {
    name_width = std::max(name_width, name.size());
    value_width = std::max(value_width, value.size());
  }
  for (const auto& [name, value] : fields) {
    text += fmt::format("  {:{}}  {:{}}  {}\n", name, name_width, value, value_width,
                        origin_of(machine, name));
  }
  return text;
}

}  // namespace orrery
