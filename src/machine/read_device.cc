// SPDX-License-Identifier: Apache-2.0
#include "machine/read_device.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <string>
#include <utility>

#include "machine/compute/clock.h"
#include "machine/compute/decode_tiles.h"
#include "machine/compute/streamed_experts.h"
#include "machine/read_bounds.h"
#include "machine/read_model.h"

namespace orrery::machine {
namespace {

constexpr int kMostUnits = 1 << 20;  // a wafer has 850,000

/// `kernels` with what the map of `read` says.
compute::KernelCoefficients read_coefficients(Reader& read, compute::KernelCoefficients kernels) {
  read_bounded_fields(read, kernels);
  compute::KernelCoefficients::fields([&](std::string_view name, auto member, std::string_view) {
    if constexpr (std::is_same_v<decltype(kernels.*member), double&>) {
      const double value = kernels.*member;
      if (name == "last_level_speedup") {
        read.require(value >= 1, name, "a number of at least 1: caches are faster than memory");
      } else if (compute::is_optional_share(name)) {
        read.require(value >= 0 && value <= 1, name, "a share from 0, as the usual one, to 1");
      } else if (name.ends_with("_share")) {
        read.require(value > 0 && value <= 1, name, kShare);
      } else if (name.starts_with("odd_rows") || name == "uneven_rows") {
        read.require(value >= 1, name, "a number of at least 1: such rows take longer");
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
  sets.emplace_back(compute::kDecodeTiles);
  sets.insert(sets.end(), compute::kExpertSets.begin(), compute::kExpertSets.end());
  for (const std::string& format : sets) {
    if (const ConfigNode* own = read.child(format, false)) {
      Reader nested(*own);
      const compute::KernelCoefficients kernels = read_coefficients(nested, device.kernels);
      device.format_kernels[format] = read.absorb(nested.finish(kernels));
    }
  }
  read_device.absorb(read.finish(0));
}

/// Draws more at full clock the more it does, and less at rest than its cap allows.
void check_power(Reader& read, const compute::Device& device) {
  const Power cap = compute::cap_of(device);
  read.require(device.power_cap <= device.power, "power_cap", "at most the device's power");
  read.require(device.idle_power <= cap || compute::is_unknown(cap), "idle_power",
               compute::is_unknown(device.power_cap) ? "at most the device's power"
                                                     : "at most the device's power_cap");
  read.require(device.sustained_clock > 0 && device.sustained_clock <= 1, "sustained_clock",
               "a share above 0 and at most 1");
  const double target = device.power_model.regulated * cap.value();
  read.require(!device.power_model.known() || device.idle_power.value() < target, "idle_power",
               fmt::format("below {:.6g} W, at which the power cap is held: no clock is low enough",
                           target));
}

void read_power_model(Reader& read_device, compute::Device& device) {
  const ConfigNode* node = read_device.child("power_model", false);
  if (node == nullptr) {
    return;
  }
  Reader read(*node);
  compute::PowerModel& model = device.power_model;
  require_given(read, {"gemm_power"});
  read_bounded_fields(read, model);
  read.require(model.gemm_power > Power(0), "gemm_power", "a power above 0");
  read.require(model.full_clock_rate > 0 && model.full_clock_rate <= 4, "full_clock_rate",
               "a number above 0 and at most 4");
  read.require(model.table_clock > 0 && model.table_clock <= 1, "table_clock", kShare);
  read.require(model.attention_table_clock >= 0 && model.attention_table_clock <= 1,
               "attention_table_clock", "a share from 0 to 1; 0: table_clock");
  read.require(model.regulated > 0 && model.regulated <= 1, "regulated", kShare);
  read.require(model.power_exponent >= 1 && model.power_exponent <= 4, "power_exponent",
               "a number from 1 to 4");
  read_device.require(device.power > Power(0), "power", "the design power, which holds the clock");
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

void read_tracker(Reader& read_device, compute::Device& device) {
  const ConfigNode* node = read_device.child("tracker", false);
  if (node == nullptr) {
    return;
  }
  Reader read(*node);
  compute::Tracker tracker;
  read_bounded_fields(read, tracker);
  read.require(tracker.contention >= 0 && tracker.contention <= 10, "contention",
               "a factor from 0 to 10");
  read.require(tracker.rereads >= 1 && tracker.rereads <= 1e3, "rereads", "a factor of 1 or more");
  read.require(tracker.read_saving >= 1 && tracker.read_saving <= 1e3, "read_saving",
               "a factor of 1 or more");
  device.tracker = read_device.absorb(read.finish(tracker));
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

}  // namespace

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
  read_power_model(read, device);
  check_power(read, device);
  read_peak(read, device.peak);
  std::set<std::string> names;
  for (const ConfigNode* tier : read.take_items("memory", true)) {
    device.memory.push_back(read_tier(read, *tier, names));
  }
  read.require(!device.memory.empty(), "memory", "at least one memory tier");
  read_kernels(read, device);
  read_tracker(read, device);
  read_model(read, device);
  compute::set_usual_clock(device);
  return machine.absorb(read.finish(device));
}

namespace {

/// Returns a device as a map, or of a machine by its name.
compute::Device read_part_device(Reader& part, const ConfigNode& node) {
  if (node.kind == ConfigNode::Kind::map) {
    return read_device(part, node);
  }
  const std::string name = part.required<std::string>("device");
  auto machine = load_machine(name);
  if (machine && machine->parts.empty()) {
    return machine->device;
  }
  part.reject("device", machine ? "a machine without parts"
                                : "a device, or the name of a machine that has it: " +
                                      machine.error().to_string());
  return {};
}

}  // namespace

void read_parts(Reader& machine, std::vector<DeviceGroup>& parts) {
  std::set<std::string> names;
  for (const ConfigNode* node : machine.take_items("parts", true)) {
    Reader read(*node);
    DeviceGroup part;
    part.name = read.required<std::string>("name");
    check_name(read, part.name, names);
    part.devices = read.required<std::int64_t>("devices");
    read.require(part.devices >= 1 && part.devices <= kMostDevices, "devices",
                 fmt::format("a number from 1 to {}", kMostDevices));
    if (const ConfigNode* device = read.child("device", true)) {
      part.device = read_part_device(read, *device);
    }
    parts.push_back(machine.absorb(read.finish(std::move(part))));
  }
  machine.require(!parts.empty(), "parts", "at least one part");
}

}  // namespace orrery::machine
