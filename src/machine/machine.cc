// SPDX-License-Identifier: Apache-2.0
#include "machine/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/fields.h"
#include "base/file.h"
#include "base/format.h"
#include "base/reader.h"

namespace orrery {
namespace {

constexpr std::int64_t kMostDevices = std::int64_t{1} << 24;
constexpr double kMostEfficiency = 1.5;  // in-switch reduction exceeds the link rate (NVLS)

void require_share(Reader& read, std::string_view name, double value) {
  read.require(value > 0 && value <= 1, name, "a share above 0 and at most 1");
}

KernelCoefficients read_kernels(Reader& device) {
  KernelCoefficients kernels;
  const ConfigNode* node = device.child("kernels", false);
  if (node == nullptr) {
    return kernels;
  }
  Reader read(*node);
  read_fields(read, kernels);
  KernelCoefficients::fields([&](std::string_view name, auto member, std::string_view) {
    if constexpr (std::is_same_v<decltype(kernels.*member), double&>) {
      const bool share = name.ends_with("_share");
      read.require(
          kernels.*member >= 0 && (!share || (kernels.*member > 0 && kernels.*member <= 1)), name,
          share ? "a share above 0 and at most 1" : "a number not below 0");
    }
  });
  read.require(kernels.norm_width > 0, "norm_width", "a number above 0");
  return device.absorb(read.finish(kernels));
}

MemoryTier read_tier(Reader& device, const ConfigNode& node) {
  Reader read(node);
  MemoryTier tier{.name = read.required<std::string>("name"),
                  .capacity = read.required<Bytes>("capacity"),
                  .bandwidth = read.required<Bandwidth>("bandwidth"),
                  .latency = read.optional<Time>("latency", Time(0))};
  read.require(tier.capacity > Bytes(0) || !read.ok(), "capacity", "a size above 0");
  read.require(tier.bandwidth > Bandwidth(0) || !read.ok(), "bandwidth", "a rate above 0");
  return device.absorb(read.finish(tier));
}

Device read_device(Reader& machine, const ConfigNode& node) {
  Reader read(node);
  Device device;
  device.name = read.required<std::string>("name");
  device.units = read.required<int>("units");
  read.require(device.units > 0 || !read.ok(), "units", "a whole number above 0");
  device.power = read.optional<Power>("power", Power(0));
  device.overlap_units = read.optional("overlap_units", 0.0);
  device.overlap_memory = read.optional("overlap_memory", 0.0);
  for (const auto& [name, share] : {std::pair{"overlap_units", device.overlap_units},
                                    std::pair{"overlap_memory", device.overlap_memory}}) {
    read.require(share >= 0 && share < 1, name, "a share of at least 0 and below 1");
  }
  if (const ConfigNode* peaks = read.child("peak", true)) {
    Reader peak(*peaks);
    for (const Named<DataType>& type : kNames<DataType>) {
      FlopRate& rate = device.peak[static_cast<std::size_t>(type.value)];
      rate = peak.optional<FlopRate>(type.name, FlopRate(0));
    }
    peak.require(!peaks->fields.empty(), "bf16", "a rate for at least one data type");
    read.absorb(peak.finish(0));
  }
  for (const ConfigNode* tier : read.take_items("memory", true)) {
    device.memory.push_back(read_tier(read, *tier));
  }
  read.require(!device.memory.empty() || !read.ok(), "memory", "at least one memory tier");
  device.kernels = read_kernels(read);
  return machine.absorb(read.finish(device));
}

Protocol read_protocol(Reader& dimension, const ConfigNode& node) {
  Reader read(node);
  Protocol protocol{.name = read.required<std::string>("name"),
                    .launch = read.optional<Time>("launch", Time(0)),
                    .step_latency = read.required<Time>("step_latency"),
                    .efficiency = read.required<double>("efficiency"),
                    .local_copy = read.optional("local_copy", 0.0)};
  read.require((protocol.efficiency > 0 && protocol.efficiency <= kMostEfficiency) || !read.ok(),
               "efficiency", "a number above 0 and at most 1.5");
  read.require(protocol.local_copy >= 0, "local_copy", "a number not below 0");
  return dimension.absorb(read.finish(protocol));
}

/// torus and mesh: `shape`, whose product is the size; others: `size`.
void read_size(Reader& read, NetworkDimension& dimension) {
  const bool shaped =
      dimension.kind == DimensionKind::torus || dimension.kind == DimensionKind::mesh;
  dimension.shape = read.list<std::int64_t>("shape");
  if (!shaped || dimension.shape.empty()) {
    read.require(shaped || dimension.shape.empty(), "shape",
                 "no shape; only torus and mesh have one");
    dimension.size = read.required<std::int64_t>("size");
    read.require(dimension.size >= 0 && dimension.size <= kMostDevices, "size",
                 "a number of devices, or 0 for as many as the plan needs (outermost dimension)");
    return;
  }
  dimension.size = 1;
  for (const std::int64_t extent : dimension.shape) {
    const bool ok =
        extent >= 1 && extent <= kMostDevices && dimension.size * extent <= kMostDevices;
    read.require(ok, "shape", "extents of 1 and more");
    dimension.size *= ok ? extent : 1;
  }
  const auto size = read.maybe<std::int64_t>("size");
  read.require(!size || *size == dimension.size, "size",
               fmt::format("{}, the product of shape, or nothing", dimension.size));
}

NetworkDimension read_dimension(Reader& machine, const ConfigNode& node) {
  Reader read(node);
  NetworkDimension dimension;
  dimension.name = read.required<std::string>("name");
  dimension.kind = read.required<DimensionKind>("kind");
  read_size(read, dimension);
  dimension.bandwidth = read.required<Bandwidth>("bandwidth");
  read.require(dimension.bandwidth > Bandwidth(0) || !read.ok(), "bandwidth", "a rate above 0");
  dimension.latency = read.required<Time>("latency");
  dimension.message_overhead = read.optional<Time>("message_overhead", Time(0));
  dimension.send_efficiency = read.optional("send_efficiency", 1.0);
  require_share(read, "send_efficiency", dimension.send_efficiency);
  dimension.nic = read.optional<std::string>("nic", "");
  for (const ConfigNode* protocol : read.take_items("protocols", false)) {
    dimension.protocols.push_back(read_protocol(read, *protocol));
  }
  return machine.absorb(read.finish(dimension));
}

void check_network(Reader& read, const Machine& machine) {
  read.require(!machine.network.empty() || !read.ok(), "network", "at least one dimension");
  std::set<std::string> names;
  std::int64_t devices = 1;
  for (std::size_t d = 0; d < machine.network.size(); ++d) {
    const NetworkDimension& dimension = machine.network[d];
    read.require(names.insert(dimension.name).second, "network",
                 fmt::format("different names; '{}' occurs twice", dimension.name));
    read.require(
        dimension.size > 0 || d + 1 == machine.network.size() || !read.ok(), "network",
        fmt::format("a size above 0 for dimension '{}'; only the outermost may be open (0)",
                    dimension.name));
    devices = std::min(kMostDevices + 1, devices * std::max<std::int64_t>(1, dimension.size));
  }
  read.require(devices <= kMostDevices, "network",
               fmt::format("at most {} devices altogether", kMostDevices));
}

void read_origins(Reader& read, Machine& machine) {
  const ConfigNode* node = read.child("origins", false);
  if (node == nullptr) {
    return;
  }
  Reader origins(*node);
  for (const auto& field : node->fields) {
    machine.origins[field.name] = origins.required<std::string>(field.name);
  }
  read.absorb(origins.finish(0));
}

}  // namespace

Result<Machine> parse_machine(const ConfigNode& node) {
  Reader read(node);
  Machine machine;
  machine.name = read.required<std::string>("name");
  machine.description = read.optional<std::string>("description", "");
  if (const ConfigNode* device = read.child("device", true)) {
    machine.device = read_device(read, *device);
  }
  for (const ConfigNode* dimension : read.take_items("network", true)) {
    machine.network.push_back(read_dimension(read, *dimension));
  }
  check_network(read, machine);
  read_origins(read, machine);
  return read.finish(std::move(machine));
}

Result<Machine> load_machine(const std::string& name_or_path) {
  auto path = find_config("machines", name_or_path);
  if (!path) {
    return fail(std::move(path.error()));
  }
  auto node = load_config(*path);
  return node ? parse_machine(*node) : fail(std::move(node.error()));
}

Result<Machine> with_devices(Machine machine, std::int64_t devices) {
  if (devices < 1 || devices > kMostDevices) {
    return fail(Error(Mistake{{},
                              "devices",
                              std::to_string(devices),
                              fmt::format("a number from 1 to {}", kMostDevices)}));
  }
  std::int64_t inner = 1;
  for (std::size_t d = 0; d < machine.network.size(); ++d) {
    NetworkDimension& dimension = machine.network[d];
    const bool open = dimension.size == 0;
    const std::int64_t wanted = devices % inner == 0 ? devices / inner : 0;
    const bool last = open || (wanted > 0 && wanted <= dimension.size);
    if (last && wanted > 0) {
      const bool partial = wanted != dimension.size && !open;
      if (partial && !dimension.shape.empty()) {
        return fail(
            fmt::format("{} devices fill {} of the {} of {} '{}', whose shape cannot be cut",
                        devices, wanted, dimension.size, name_of(dimension.kind), dimension.name));
      }
      dimension.size = wanted;
      machine.network.resize(d + 1);
      return expand_shapes(std::move(machine));
    }
    if (wanted == 0 || open) {
      break;
    }
    inner *= dimension.size;
  }
  return fail(Error(Mistake{
      {},
      "devices",
      std::to_string(devices),
      fmt::format("a number of devices that fills whole inner dimensions of machine '{}' ({})",
                  machine.name, dimension_sizes(machine))}));
}

Machine expand_shapes(Machine machine) {
  std::vector<NetworkDimension> expanded;
  for (const NetworkDimension& dimension : machine.network) {
    const std::size_t extents = dimension.shape.size();
    for (std::size_t i = 0; i < extents; ++i) {
      NetworkDimension line = dimension;
      line.kind =
          dimension.kind == DimensionKind::torus ? DimensionKind::ring : DimensionKind::mesh;
      line.name = extents > 1 ? fmt::format("{}.{}", dimension.name, i) : dimension.name;
      line.size = dimension.shape[i];
      line.shape.clear();
      line.bandwidth = dimension.bandwidth / static_cast<double>(extents);
      expanded.push_back(std::move(line));
    }
    if (extents == 0) {
      expanded.push_back(dimension);
      NetworkDimension& line = expanded.back();
      line.kind = line.kind == DimensionKind::torus ? DimensionKind::ring : line.kind;
    }
  }
  machine.network = std::move(expanded);
  return machine;
}

std::string dimension_sizes(const Machine& machine) {
  std::string text;
  for (const NetworkDimension& dimension : machine.network) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", dimension.name,
                        dimension.size == 0 ? "any" : std::to_string(dimension.size));
  }
  return text;
}

}  // namespace orrery
