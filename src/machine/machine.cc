// SPDX-License-Identifier: Apache-2.0
#include "machine/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/fields.h"
#include "base/file.h"
#include "base/format.h"
#include "base/lists.h"
#include "machine/device_groups.h"
#include "machine/read_bounds.h"
#include "machine/read_device.h"
#include "machine/read_fabric.h"
#include "machine/read_origins.h"
#include "machine/read_shared.h"
#include "machine/read_wires.h"

namespace orrery::machine {
namespace {

constexpr double kMostEfficiency = 1.5;  // in-switch reduction exceeds the link rate (NVLS)

topology::Protocol read_protocol(Reader& dimension, const ConfigNode& node,
                                 std::set<std::string>& names) {
  Reader read(node);
  topology::Protocol protocol;
  require_given(read, {"name", "step_latency", "efficiency"});
  read_bounded_fields(read, protocol);
  check_name(read, protocol.name, names);
  read.require(protocol.efficiency > 0 && protocol.efficiency <= kMostEfficiency, "efficiency",
               fmt::format("a number above 0 and at most {}", kMostEfficiency));
  read.require(protocol.local_copy >= 0, "local_copy", "a number not below 0");
  return dimension.absorb(read.finish(protocol));
}

std::vector<topology::Protocol> read_protocols(Reader& dimension, const std::string& field) {
  std::set<std::string> names;
  return mapped(dimension.take_items(field, false), [&](const ConfigNode* protocol) {
    return read_protocol(dimension, *protocol, names);
  });
}

/// torus and mesh have a `shape`, whose product is the size; others, and a mesh that is one line, a
/// `size`.
void read_shape(Reader& read, topology::NetworkDimension& dimension) {
  const bool shaped =
      dimension.kind == topology::DimensionKind::torus ||
      (dimension.kind == topology::DimensionKind::mesh && read.child("shape", false) != nullptr);
  dimension.shape = read.list<std::int64_t>("shape", shaped);
  dimension.granule = read.optional<std::int64_t>("granule", 0);
  read.require(
      dimension.granule == 0 || (dimension.kind == topology::DimensionKind::switched &&
                                 dimension.granule > 0 && dimension.size % dimension.granule == 0),
      "granule", "of a switch only, a number of devices that divides size");
  const bool has_size = read.child("size", !shaped) != nullptr;
  if (!shaped) {
    read.require(dimension.shape.empty(), "shape", "no shape; only torus and mesh have one");
    read.require(dimension.size >= 0 && dimension.size <= kMostDevices, "size",
                 "a number of devices, or 0 for as many as the plan needs (outermost dimension)");
    read.require(dimension.size > 0 || dimension.kind != topology::DimensionKind::fully_connected,
                 "size", "a number of devices; a fully_connected dimension cannot be open");
    return;
  }
  std::int64_t product = 1;
  bool fits = !dimension.shape.empty();
  for (const std::int64_t extent : dimension.shape) {
    fits = fits && extent >= 1 && extent <= kMostDevices / product;
    product *= fits ? extent : 1;
  }
  read.require(fits, "shape", fmt::format("extents above 0, at most {} devices", kMostDevices));
  read.require(!fits || !has_size || dimension.size == product, "size",
               fmt::format("{}, the product of shape, or nothing", product));
  read.require(dimension.nic.empty(), "nic", "nothing; a torus or mesh has a port per link");
  dimension.size = product;
}

topology::NetworkDimension read_dimension(Reader& machine, const ConfigNode& node,
                                          const std::vector<topology::NetworkDimension>& inside,
                                          std::set<std::string>& names) {
  Reader read(node);
  topology::NetworkDimension dimension;
  require_given(read, {"name", "kind", "bandwidth", "latency"});
  read_bounded_fields(read, dimension);
  check_name(read, dimension.name, names);
  read_shape(read, dimension);
  read_shared(read, inside, dimension);
  read.require(dimension.bandwidth > Bandwidth(0), "bandwidth", "a rate above 0");
  read.require(dimension.send_efficiency > 0 && dimension.send_efficiency <= 1, "send_efficiency",
               kShare);
  read.require(dimension.background_share > 0 && dimension.background_share <= 1,
               "background_share", kShare);
  for (const auto& [name, list] : topology::kProtocolLists) {
    dimension.*list = read_protocols(read, std::string(name));
  }
  read.require(dimension.in_switch.empty() || dimension.kind == topology::DimensionKind::switched,
               "in_switch", "kind switch; other dimensions have no switch that could add");
  return machine.absorb(read.finish(dimension));
}

void read_network(Reader& read, std::vector<topology::NetworkDimension>& network) {
  std::set<std::string> names;
  std::int64_t devices = 1;
  std::size_t axes = 0;
  for (const ConfigNode* node : read.take_items("network", true)) {
    read.require(network.empty() || network.back().size > 0, "network",
                 "an open dimension (size 0) as the outermost only");
    network.push_back(read_dimension(read, *node, network, names));
    const topology::NetworkDimension& dimension = network.back();
    axes += std::max<std::size_t>(1, dimension.shape.size());
    const std::int64_t size = std::clamp<std::int64_t>(dimension.size, 1, kMostDevices);
    devices = std::min(kMostDevices + 1, devices * size);
  }
  read.require(!network.empty(), "network", "at least one dimension");
  read.require(devices <= kMostDevices, "network",
               fmt::format("at most {} devices altogether", kMostDevices));
  read.require(
      axes <= topology::kMaxDimensions, "network",
      fmt::format("at most {} dimensions, extents of shapes counted", topology::kMaxDimensions));
}

void require_positive(Reader& read, const memory::RemoteMemory& memory) {
  memory::RemoteMemory::fields([&](std::string_view name, auto member, std::string_view) {
    if (!memory::has_field(memory.kind, name)) {
      return;
    }
    const auto& value = memory.*member;
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, Bandwidth>) {
      read.require(value > Bandwidth(0), name, "a rate above 0");
    } else if constexpr (std::is_same_v<Value, Bytes>) {
      read.require(value > Bytes(0), name, "a size above 0");
    } else if constexpr (std::is_same_v<Value, std::int64_t>) {
      read.require(value >= 1 && value <= kMostDevices, name,
                   fmt::format("a whole number from 1 to {}", kMostDevices));
    }
  });
}

memory::RemoteMemory read_remote_memory(Reader& machine, const ConfigNode& node) {
  Reader read(node);
  memory::RemoteMemory memory;
  read.child("kind", true);
  read_bounded_fields(read, memory);
  memory::RemoteMemory::fields([&](std::string_view name, auto, std::string_view) {
    const bool optional = name == "in_switch" || name == "chunk";
    const bool given =
        read.child(name, memory::has_field(memory.kind, name) && !optional) != nullptr;
    read.require(!given || memory::has_field(memory.kind, name), name,
                 fmt::format("nothing; a memory of kind {} has none", name_of(memory.kind)));
  });
  require_positive(read, memory);
  return machine.absorb(read.finish(memory));
}

/// Checks what memory tiers go through; a dimension that could not be read, without a name, may be
/// it.
void check_ports(Reader& read, const Machine& machine, const compute::Device& device) {
  for (std::size_t tier = 0; tier < device.memory.size(); ++tier) {
    const std::string& through = device.memory[tier].through;
    const bool found = std::ranges::any_of(machine.network, [&](const auto& dimension) {
      return dimension.name.empty() ||
             (dimension.name == through && dimension.kind == topology::DimensionKind::switched);
    });
    read.require(through.empty() || (tier > 0 && found), "device",
                 "memory tiers below the first alone go through something, a switch of the network "
                 "by its name; found '" +
                     through + "'");
  }
}

}  // namespace

Result<Machine> parse_machine(const ConfigNode& node) {
  Reader read(node);
  Machine machine;
  machine.name = read.required<std::string>("name");
  machine.description = read.optional<std::string>("description", "");
  const bool in_parts = read.child("parts", false) != nullptr;
  if (in_parts) {
    read_parts(read, machine.parts);
  }
  if (const ConfigNode* device = read.child("device", !in_parts)) {
    read.require(!in_parts, "device", "nothing beside parts, which have their own devices");
    machine.device = read_device(read, *device);
  }
  read_network(read, machine.network);
  check_ports(read, machine, machine.device);
  if (in_parts && read.ok()) {
    for (const DeviceGroup& part : machine.parts) {
      check_ports(read, machine, part.device);
    }
    machine.device = mean_device(machine.parts);
  }
  if (const ConfigNode* links = read.child("topology", false); links != nullptr && read.ok()) {
    std::int64_t devices = 1;
    for (const topology::NetworkDimension& dimension : machine.network) {
      devices *= std::max<std::int64_t>(dimension.size, 1);
    }
    machine.wires = read.absorb(read_wires(*links, devices));
  }
  if (const ConfigNode* memory = read.child("remote_memory", false)) {
    machine.remote_memory = read_remote_memory(read, *memory);
  }
  if (const ConfigNode* flit = read.child("flit", false)) {
    machine.flit = read_flit(read, *flit);
  }
  if (const ConfigNode* packet = read.child("packet", false)) {
    machine.packet = read.absorb(parse_packet(*packet));
  }
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

Machine beside_steps(Machine machine) {
  for (topology::NetworkDimension& dimension : machine.network) {
    dimension.bandwidth = dimension.bandwidth * dimension.background_share;
    dimension.node_bandwidth = dimension.node_bandwidth * dimension.background_share;
  }
  return machine;
}

}  // namespace orrery::machine
