// SPDX-License-Identifier: Apache-2.0
/// Clusters of several sorts of devices: `Machine::parts`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "machine/machine.h"

namespace orrery::machine {

/// Returns the number of the device group that `rank` lies in; 0 of a machine without device
/// groups. Requires a rank that the parts have.
std::size_t device_group_of(const Machine& machine, std::int64_t rank);
/// Returns the number of device groups, at least 1.
std::size_t device_group_count(const Machine& machine);
/// Returns the machine with devices of that group everywhere, and no parts.
Machine of_device_group(const Machine& machine, std::size_t part);
/// Returns of_device_group() of every device group; of a machine without device groups itself
/// alone.
std::vector<Machine> by_device_group(const Machine& machine);

/// Returns the bandwidth of a memory tier that all device groups have, the most of any.
Bandwidth fastest_tier(const Machine& machine, std::size_t tier);

/// Returns the device that stands for the devices of all device groups where one figure is asked
/// for: `Machine::device`.
///
///   peaks, power, price      mean over the devices; none where a part states none
///   memory tiers             those that all have; the least capacity and bandwidth, most latency
///   framework, communicator  the least
///   kernels and the rest     of the first part
///
/// Requires parts.
compute::Device mean_device(const std::vector<DeviceGroup>& parts);

/// Returns the machine with these of its device groups (comma-separated), ranks filling them in
/// this order; "": as it is. Mistakes (field "parts"): names of no part or twice, a machine without
/// device groups.
Result<Machine> arranged(Machine machine, const std::string& names);
/// Returns "h100,a100": the names of all device groups.
std::string device_group_names(const Machine& machine);

/// Calls change(device) for the machine's device or those of its device groups.
template <class Change>
void change_devices(Machine& machine, const Change& change) {
  if (machine.parts.empty()) {
    change(machine.device);
    return;
  }
  for (DeviceGroup& part : machine.parts) {
    change(part.device);
  }
  machine.device = mean_device(machine.parts);
}

/// Returns the machine with every device as fast as at first (compute/rates.h).
Machine at_boost(Machine machine);

/// Returns the machine with every device under a power cap, at the clocks of the usual mix of
/// kernels. Mistakes (field "power_cap"): a device that states no design power, a cap above it or
/// at or below what the device draws when it is idle. A device without a power model has the
/// inferred one then (compute/clock.h), and its origin says so.
Result<Machine> with_power_cap(Machine machine, Power cap);

/// Checks that every device is the same, for `who`, which knows one sort only. Mistakes: a machine
/// with device groups.
Result<void> check_alike(const Machine& machine, std::string_view who);

/// Returns load_machine() for who knows one sort of devices only. Mistakes: a machine with device
/// groups.
Result<Machine> load_alike(const std::string& name_or_path);

}  // namespace orrery::machine
