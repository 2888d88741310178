// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/lists.h"
#include "machine/device_groups.h"
#include "machine/machine.h"
#include "machine/slice.h"

namespace orrery::machine {
namespace {

Error cannot_have(std::int64_t devices, std::string expected) {
  return Error(Mistake{{}, "devices", std::to_string(devices), std::move(expected)});
}

/// Devices that a job of `devices`, more than the dimension has, takes from each instance of it.
std::int64_t usable_part(const topology::NetworkDimension& dimension, std::int64_t devices) {
  if (dimension.granule > 0) {
    for (std::int64_t part = dimension.size; part > 0; part -= dimension.granule) {
      if (devices % part == 0) {
        return part;
      }
    }
  }
  return dimension.size;
}

}  // namespace

void cut(topology::NetworkDimension& dimension, std::int64_t count) {
  const std::int64_t size = dimension.size;
  dimension.size = count;
  if (count == size || count == 1 || size == 0) {
    return;
  }
  if (dimension.kind == topology::DimensionKind::fully_connected) {
    // A device keeps the links to count-1 of its size-1 neighbours.
    dimension.bandwidth =
        dimension.bandwidth * (static_cast<double>(count - 1) / static_cast<double>(size - 1));
  }
  if (dimension.kind == topology::DimensionKind::ring && size > 2) {
    // The closing link is gone. A line of two has one of the two links.
    dimension.kind = topology::DimensionKind::mesh;
  }
  if (dimension.kind == topology::DimensionKind::mesh && count == 2 && size > 2) {
    dimension.bandwidth = dimension.bandwidth * 0.5;
  }
}

namespace {

/// The first so many devices of the device groups.
Result<void> cut_parts(Machine& machine, std::int64_t devices) {
  if (machine.parts.empty()) {
    return {};
  }
  std::int64_t left = devices;
  for (DeviceGroup& part : machine.parts) {
    part.devices = std::min(part.devices, left);
    left -= part.devices;
  }
  if (left > 0) {
    return fail(cannot_have(devices, fmt::format("at most the {} devices of {}'s parts",
                                                 devices - left, machine.name)));
  }
  std::erase_if(machine.parts, [](const DeviceGroup& part) { return part.devices == 0; });
  machine.device = mean_device(machine.parts);
  const bool alike = std::ranges::all_of(machine.parts, [&](const DeviceGroup& part) {
    return part.device == machine.parts.front().device;
  });
  if (alike) {
    machine.device = machine.parts.front().device;
    machine.parts.clear();
  }
  return {};
}

/// Origins of `network.ici` for `network.ici.0` and so on.
void copy_origins(const std::string& from, const std::string& to,
                  std::map<std::string, std::string>& origins) {
  std::map<std::string, std::string> copies;
  for (const auto& [field, origin] : origins) {
    if (field == from || field.starts_with(from + ".")) {
      copies.emplace(to + field.substr(from.size()), origin);
    }
  }
  origins.merge(copies);
}

void drop_origins(const std::string& of, std::map<std::string, std::string>& origins) {
  std::erase_if(origins, [&](const auto& entry) {
    return entry.first == of || entry.first.starts_with(of + ".");
  });
}

/// Closes the ports of tiers that went through a dimension which is not there any more.
void close_ports(Machine& machine, compute::Device& device) {
  for (compute::MemoryTier& tier : device.memory) {
    const bool there = std::any_of(
        machine.network.begin(), machine.network.end(),
        [&](const topology::NetworkDimension& kept) { return kept.name == tier.through; });
    if (!tier.through.empty() && !there) {
      tier.through.clear();
      drop_origins("device.memory." + tier.name + ".through", machine.origins);
    }
  }
}

/// Returns the mistake of devices that do not fill whole blocks of `block`, with the nearest
/// numbers that do.
Error no_whole_number(const Machine& machine, std::int64_t devices, std::int64_t block) {
  Bytes most(1);  // saturates
  for (const topology::NetworkDimension& dimension : machine.network) {
    most = dimension.size == 0 ? Bytes(kMostDevices) : most * dimension.size;
  }
  const std::int64_t below = devices / block * block;
  const std::string above =
      below + block <= most.value() ? fmt::format(" and {}", below + block) : "";
  return cannot_have(devices,
                     fmt::format("at most {} or a multiple of that, as {} is made ({}); nearest: "
                                 "{}{}",
                                 block, machine.name, dimension_sizes(machine), below, above));
}

}  // namespace

Machine expand_shapes(Machine machine) {
  std::vector<topology::NetworkDimension> expanded;
  for (const topology::NetworkDimension& dimension : machine.network) {
    if (dimension.shape.empty()) {
      expanded.push_back(dimension);
      continue;
    }
    const auto axes = std::count_if(dimension.shape.begin(), dimension.shape.end(),
                                    [](std::int64_t extent) { return extent > 1; });
    for (std::size_t i = 0; i < dimension.shape.size(); ++i) {
      topology::NetworkDimension line = dimension;
      line.kind = dimension.kind == topology::DimensionKind::torus ? topology::DimensionKind::ring
                                                                   : topology::DimensionKind::mesh;
      line.name = fmt::format("{}_{}", dimension.name, i);
      line.size = dimension.shape[i];
      line.shape.clear();
      line.bandwidth = dimension.bandwidth / static_cast<double>(std::max<std::ptrdiff_t>(1, axes));
      copy_origins("network." + dimension.name, "network." + line.name, machine.origins);
      drop_origins("network." + line.name + ".shape", machine.origins);
      expanded.push_back(std::move(line));
    }
    drop_origins("network." + dimension.name, machine.origins);
  }
  machine.network = std::move(expanded);
  return machine;
}

Result<Machine> with_devices(Machine machine, std::int64_t devices) {
  if (devices < 1 || devices > kMostDevices) {
    return fail(cannot_have(devices, fmt::format("a number from 1 to {}", kMostDevices)));
  }
  if (machine.wires.graph && devices > machine.wires.graph->hosts) {
    return fail(cannot_have(devices, fmt::format("at most the {} hosts of {}",
                                                 machine.wires.graph->hosts, machine.wires.spec)));
  }
  if (auto cut = cut_parts(machine, devices); !cut) {
    return fail(std::move(cut.error()));
  }
  if (const std::vector<std::int64_t> slice = usual_slice(machine, devices); !slice.empty()) {
    machine = cut_to_slice(std::move(machine), slice);
  }
  machine = expand_shapes(std::move(machine));
  std::int64_t rest = devices;  // in units of whole dimensions inside
  std::int64_t inside = 1;
  std::size_t used = 0;
  for (topology::NetworkDimension& dimension : machine.network) {
    const bool open = dimension.size == 0;
    if (!open && rest > dimension.size) {
      dimension.size = usable_part(dimension, rest);
    }
    if (!open && rest > dimension.size && rest % dimension.size != 0) {
      return fail(no_whole_number(machine, devices, inside * dimension.size));
    }
    const std::int64_t count = open ? rest : std::min(rest, dimension.size);
    inside *= count;
    rest /= count;
    cut(dimension, count);
    dimension.granule = 0;  // what is left is used whole
    drop_origins("network." + dimension.name + ".granule", machine.origins);
    ++used;
    if (rest == 1) {
      break;
    }
  }
  if (rest > 1) {
    return fail(cannot_have(devices, fmt::format("at most the {} devices of {} ({})", inside,
                                                 machine.name, dimension_sizes(machine))));
  }
  for (std::size_t d = used; d < machine.network.size(); ++d) {
    drop_origins("network." + machine.network[d].name, machine.origins);
  }
  machine.network.resize(used);
  close_ports(machine, machine.device);
  for (DeviceGroup& part : machine.parts) {
    close_ports(machine, part.device);
  }
  return machine;
}

std::string dimension_sizes(const Machine& machine) {
  return joined(machine.network, ", ", [&](const topology::NetworkDimension& dimension) {
    return fmt::format("{} {}", dimension.name,
                       dimension.size == 0 ? "any" : std::to_string(dimension.size));
  });
}

}  // namespace orrery::machine
