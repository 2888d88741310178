// SPDX-License-Identifier: Apache-2.0
#include "machine/device_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/format.h"
#include "base/lists.h"
#include "base/split.h"
#include "machine/compute/clock.h"

namespace orrery::machine {
namespace {

std::vector<std::string> split_names(const std::string& names) {
  std::vector<std::string> result;
  for (const std::string_view part : split_at(names, ',')) {
    std::string name(part);
    name.erase(0, name.find_first_not_of(' '));
    name.erase(name.find_last_not_of(' ') + 1);
    result.push_back(std::move(name));
  }
  return result;
}

/// Weighed by devices; exactly the value where all have the same.
double number_of(double value) {
  return value;
}
double number_of(auto value) {
  return value.value();
}

template <class T>
T mean_of(const std::vector<DeviceGroup>& parts, const auto& value) {
  const T first = value(parts.front().device);
  const bool same = std::ranges::all_of(
      parts, [&](const DeviceGroup& part) { return value(part.device) == first; });
  if (same) {
    return first;
  }
  double sum = 0;
  double devices = 0;
  for (const DeviceGroup& part : parts) {
    const double one = number_of(value(part.device));
    if (one <= 0) {
      return T(0);
    }
    sum += one * static_cast<double>(part.devices);
    devices += static_cast<double>(part.devices);
  }
  return T(sum / devices);
}

void weaken(compute::Device& all, const compute::Device& one) {
  all.memory.resize(std::min(all.memory.size(), one.memory.size()));
  for (std::size_t i = 0; i < all.memory.size(); ++i) {
    compute::MemoryTier& tier = all.memory[i];
    tier.capacity = std::min(tier.capacity, one.memory[i].capacity);
    tier.bandwidth = std::min(tier.bandwidth, one.memory[i].bandwidth);
    tier.latency = std::max(tier.latency, one.memory[i].latency);
  }
  all.framework_memory = std::min(all.framework_memory, one.framework_memory);
  all.communicator_memory = std::min(all.communicator_memory, one.communicator_memory);
  all.microscaling = all.microscaling && one.microscaling;
}

}  // namespace

std::size_t device_group_of(const Machine& machine, std::int64_t rank) {
  std::size_t part = 0;
  for (; part + 1 < machine.parts.size() && rank >= machine.parts[part].devices; ++part) {
    rank -= machine.parts[part].devices;
  }
  return part;
}

std::size_t device_group_count(const Machine& machine) {
  return std::max<std::size_t>(machine.parts.size(), 1);
}

Machine of_device_group(const Machine& machine, std::size_t part) {
  Machine alike = machine;
  if (!machine.parts.empty()) {
    alike.device = machine.parts[part].device;
    alike.parts.clear();
  }
  return alike;
}

std::vector<Machine> by_device_group(const Machine& machine) {
  std::vector<Machine> machines;
  for (std::size_t part = 0; part < device_group_count(machine); ++part) {
    machines.push_back(of_device_group(machine, part));
  }
  return machines;
}

Bandwidth fastest_tier(const Machine& machine, std::size_t tier) {
  Bandwidth most = machine.device.memory[tier].bandwidth;
  for (const DeviceGroup& part : machine.parts) {
    most = std::max(most, part.device.memory[tier].bandwidth);
  }
  return most;
}

compute::Device mean_device(const std::vector<DeviceGroup>& parts) {
  assert(!parts.empty() && "a machine with parts");
  compute::Device device = parts.front().device;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    weaken(device, parts[i].device);
    device.name += " + " + parts[i].device.name;
  }
  for (std::size_t type = 0; type < device.peak.size(); ++type) {
    device.peak[type] =
        mean_of<FlopRate>(parts, [&](const compute::Device& one) { return one.peak[type]; });
  }
  device.clock = mean_of<double>(parts, [](const compute::Device& one) { return one.clock; });
  device.attention_clock =
      mean_of<double>(parts, [](const compute::Device& one) { return one.attention_clock; });
  device.power = mean_of<Power>(parts, [](const compute::Device& one) { return one.power; });
  device.idle_power =
      mean_of<Power>(parts, [](const compute::Device& one) { return one.idle_power; });
  device.price_per_hour =
      mean_of<Money>(parts, [](const compute::Device& one) { return one.price_per_hour; });
  return device;
}

Result<Machine> arranged(Machine machine, const std::string& names) {
  if (names.empty()) {
    return machine;
  }
  const auto mistake = [&](std::string expected) {
    return fail(Error(Mistake{{}, "parts", names, std::move(expected)}));
  };
  if (machine.parts.empty()) {
    return mistake(fmt::format("nothing: all devices of {} are alike", machine.name));
  }
  std::vector<DeviceGroup> chosen;
  for (const std::string& name : split_names(names)) {
    const auto named = [&](const DeviceGroup& part) { return part.name == name; };
    const auto found = std::ranges::find_if(machine.parts, named);
    if (found == machine.parts.end() || std::ranges::any_of(chosen, named)) {
      return mistake(fmt::format("names of parts of {}, each once: {}", machine.name,
                                 device_group_names(machine)));
    }
    chosen.push_back(*found);
  }
  machine.parts = std::move(chosen);
  machine.device = mean_device(machine.parts);
  return machine;
}

std::string device_group_names(const Machine& machine) {
  return joined(machine.parts, ",", &DeviceGroup::name);
}

Machine at_boost(Machine machine) {
  change_devices(machine, [](compute::Device& device) { device = compute::at_boost(device); });
  return machine;
}

Result<Machine> with_power_cap(Machine machine, Power cap) {
  Error mistakes;
  bool inferred = false;
  change_devices(machine, [&](compute::Device& device) {
    const Power idle = device.idle_power;
    std::string expected;
    if (compute::is_unknown(device.power)) {
      expected = fmt::format("no cap: {} states no power", device.name);
    } else if (cap > device.power) {
      expected = fmt::format("at most the {} of {}", to_string(device.power), device.name);
    } else if (device.power_model.regulated * cap.value() <= idle.value()) {
      expected =
          fmt::format("above the {} that {} draws when it is idle", to_string(idle), device.name);
    }
    if (!expected.empty()) {
      mistakes.add({{}, "power_cap", to_string(cap), std::move(expected)});
      return;
    }
    if (!device.power_model.known()) {
      inferred = true;
      device.power_model = compute::inferred_power_model(device);
      device.sustained_clock = 1;
    }
    device.power_cap = cap;
    compute::set_usual_clock(device);
  });
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  if (inferred) {
    machine.origins["device.power_model"] = "inferred: an H200's by design power";
  }
  return machine;
}

Result<void> check_alike(const Machine& machine, std::string_view who) {
  if (machine.parts.empty()) {
    return {};
  }
  return fail(Error(
      Mistake{{},
              "parts",
              device_group_names(machine),
              fmt::format("a machine of one sort of devices: {} does not know several", who)}));
}

Result<Machine> load_alike(const std::string& name_or_path) {
  auto machine = load_machine(name_or_path);
  if (machine) {
    if (auto alike = check_alike(*machine, "this command"); !alike) {
      return fail(std::move(alike.error()));
    }
  }
  return machine;
}

}  // namespace orrery::machine
