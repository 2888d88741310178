// SPDX-License-Identifier: Apache-2.0
#include "machine/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/fields.h"
#include "base/file.h"
#include "base/format.h"
#include "machine/read_model.h"
#include "machine/read_origins.h"
#include "machine/read_shared.h"
#include "machine/read_wires.h"

namespace orrery::machine {
namespace {

constexpr int kMostUnits = 1 << 20;      // a wafer has 850,000
constexpr double kMostEfficiency = 1.5;  // in-switch reduction exceeds the link rate (NVLS)
constexpr const char* kShare = "a share above 0 and at most 1";

/// Beyond these a value is a slip of the unit; below, products of two stay finite.
template <class T>
std::optional<T> largest() {
  if constexpr (std::is_same_v<T, double>) {
    return 1e9;
  } else if constexpr (std::is_same_v<T, Time>) {
    return 1000_s;
  } else if constexpr (std::is_same_v<T, Bytes>) {
    return Bytes(std::int64_t{1} << 60);
  } else if constexpr (std::is_same_v<T, Bandwidth>) {
    return Bandwidth(1e18);
  } else if constexpr (std::is_same_v<T, FlopRate>) {
    return FlopRate(1e24);
  } else if constexpr (std::is_same_v<T, Power>) {
    return Power(1e9);
  } else if constexpr (std::is_same_v<T, EnergyPerByte>) {
    return EnergyPerByte(1);
  } else if constexpr (std::is_same_v<T, Energy>) {
    return Energy(1);
  } else if constexpr (std::is_same_v<T, Money>) {
    return Money(1e6);
  }
  return std::nullopt;
}

template <class T>
void require_bounded(Reader& read, std::string_view name, const T& value) {
  if constexpr (requires { exact_text(value); }) {
    if (const std::optional<T> most = largest<T>()) {
      read.require(value <= *most, name, "at most " + exact_text(*most));
    }
  }
}

/// read_fields() with upper bounds.
template <class T>
void read_bounded_fields(Reader& read, T& value) {
  read_fields(read, value);
  T::fields([&](std::string_view name, auto member, std::string_view) {
    require_bounded(read, name, value.*member);
  });
}

/// Every field of `names` must be given.
void require_given(Reader& read, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    read.child(name, true);
  }
}

/// Names are parts of dotted fields.
void check_name(Reader& read, const std::string& name, std::set<std::string>& others) {
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
  read.require(plain, "name", "a name of letters, digits, '_' and '-'");
  read.require(others.insert(name).second, "name", "a name that no other entry of the list has");
}

/// `kernels` with what the map of `read` says.
compute::KernelCoefficients read_coefficients(Reader& read, compute::KernelCoefficients kernels) {
  read_bounded_fields(read, kernels);
  compute::KernelCoefficients::fields([&](std::string_view name, auto member, std::string_view) {
    if constexpr (std::is_same_v<decltype(kernels.*member), double&>) {
      const double value = kernels.*member;
      if (name == "last_level_share") {
        read.require(value >= 1, name, "a share of at least 1: caches are faster than memory");
      } else if (name.ends_with("_share")) {
        read.require(value > 0 && value <= 1, name, kShare);
      } else {
        read.require(value >= 0, name, "a number not below 0");
      }
    }
  });
  read.require(kernels.norm_width > 0, "norm_width", "a number above 0");
  return kernels;
}

void read_kernels(Reader& read_device, compute::Device& device) {
  const ConfigNode* node = read_device.child("kernels", false);
  if (node == nullptr) {
    return;
  }
  Reader read(*node);
  device.kernels = read_coefficients(read, device.kernels);
  std::vector<std::string> sets = names_of<graph::DataType>();
  sets.insert(sets.end(), compute::kOtherKernelSets.begin(), compute::kOtherKernelSets.end());
  for (const std::string& format : sets) {
    if (const ConfigNode* own = read.child(format, false)) {
      Reader nested(*own);
      const compute::KernelCoefficients kernels = read_coefficients(nested, device.kernels);
      device.format_kernels[format] = read.absorb(nested.finish(kernels));
    }
  }
  read_device.absorb(read.finish(0));
}

void read_peak(Reader& device, std::array<FlopRate, graph::kDataTypeCount>& rates) {
  const ConfigNode* node = device.child("peak", true);
  if (node == nullptr) {
    return;
  }
  Reader read(*node);
  for (const Named<graph::DataType>& type : kNames<graph::DataType>) {
    if (const auto rate = read.maybe<FlopRate>(type.name)) {
      read.require(*rate > FlopRate(0), type.name, "a rate above 0, or no entry");
      require_bounded(read, type.name, *rate);
      rates[static_cast<std::size_t>(type.value)] = *rate;
    }
  }
  device.require(node->kind != ConfigNode::Kind::map || !node->fields.empty(), "peak",
                 "a rate for at least one of " + all_names<graph::DataType>());
  device.absorb(read.finish(0));
}

compute::MemoryTier read_tier(Reader& device, const ConfigNode& node,
                              std::set<std::string>& names) {
  Reader read(node);
  compute::MemoryTier tier;
  require_given(read, {"name", "capacity", "bandwidth"});
  read_bounded_fields(read, tier);
  check_name(read, tier.name, names);
  read.require(tier.capacity > Bytes(0), "capacity", "a size above 0");
  read.require(tier.bandwidth > Bandwidth(0), "bandwidth", "a rate above 0");
  return device.absorb(read.finish(tier));
}

compute::Device read_device(Reader& machine, const ConfigNode& node) {
  Reader read(node);
  compute::Device device;
  require_given(read, {"name", "units"});
  read_bounded_fields(read, device);
  read.require(device.units > 0 && device.units <= kMostUnits, "units",
               fmt::format("a whole number from 1 to {}", kMostUnits));
  for (const auto& [name, share] : {std::pair{"overlap_units", device.overlap_units},
                                    std::pair{"overlap_memory", device.overlap_memory},
                                    std::pair{"overlap_send_units", device.overlap_send_units}}) {
    read.require(share >= 0 && share < 1, name, "a share of at least 0 and below 1");
  }
  read.require(device.sustained_clock > 0 && device.sustained_clock <= 1, "sustained_clock",
               "a share above 0 and at most 1");
  read.require(device.idle_power <= device.power || compute::is_unknown(device.power), "idle_power",
               "at most the device's power");
  read_peak(read, device.peak);
  std::set<std::string> names;
  for (const ConfigNode* tier : read.take_items("memory", true)) {
    device.memory.push_back(read_tier(read, *tier, names));
  }
  read.require(!device.memory.empty(), "memory", "at least one memory tier");
  read_kernels(read, device);
  read_model(read, device);
  return machine.absorb(read.finish(device));
}

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
  std::vector<topology::Protocol> protocols;
  for (const ConfigNode* protocol : dimension.take_items(field, false)) {
    protocols.push_back(read_protocol(dimension, *protocol, names));
  }
  return protocols;
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

flit::FabricSettings read_flit(Reader& machine, const ConfigNode& node) {
  Reader read(node);
  flit::FabricSettings settings;
  read_fields(read, settings);
  read.require(settings.flit > Bytes(0) && settings.flit <= 1_MiB, "flit", "1 B to 1 MiB");
  read.require(settings.packet > Bytes(0) && settings.packet <= 1_MiB, "packet", "1 B to 1 MiB");
  read.require(settings.cycle >= Time(0) && settings.cycle <= 1_ms, "cycle", "0 ps to 1 ms");
  read.require(settings.vcs >= 1 && settings.vcs <= flit::kMostVcs, "vcs",
               fmt::format("1 to {}", flit::kMostVcs));
  read.require(settings.buffer >= 0 && settings.buffer <= flit::kMostBuffer, "buffer",
               fmt::format("0 to {} flits", flit::kMostBuffer));
  for (const char* name : {"routing_delay", "credit_delay"}) {
    const int delay =
        name == std::string_view("routing_delay") ? settings.routing_delay : settings.credit_delay;
    read.require(delay >= 0 && delay <= flit::kMostDelay, name,
                 fmt::format("0 to {} cycles", flit::kMostDelay));
  }
  return machine.absorb(read.finish(settings));
}

/// What memory tiers go through; a dimension that could not be read, without a name, may be it.
void check_ports(Reader& read, const Machine& machine) {
  for (std::size_t tier = 0; tier < machine.device.memory.size(); ++tier) {
    const std::string& through = machine.device.memory[tier].through;
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
  if (const ConfigNode* device = read.child("device", true)) {
    machine.device = read_device(read, *device);
  }
  read_network(read, machine.network);
  check_ports(read, machine);
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

}  // namespace orrery::machine
