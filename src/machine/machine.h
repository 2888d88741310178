// SPDX-License-Identifier: Apache-2.0
/// The assembled machine and its YAML (configs/machines/).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"
#include "machine/compute/device.h"
#include "machine/topology/dimension.h"

namespace orrery {

struct Machine {
  std::string name;
  std::string description;
  Device device;
  std::vector<NetworkDimension> network;       ///< innermost first
  std::map<std::string, std::string> origins;  ///< dotted field, or a prefix of it -> origin
};

/// Reads a machine file; every mistake at once.
Result<Machine> parse_machine(const ConfigNode& node);
/// A shipped name ("dgx-a100-80g") or a path.
Result<Machine> load_machine(const std::string& name_or_path);

/// The machine with exactly `devices` devices: whole inner dimensions, and as much of the next one
/// as is needed (4 GPUs are half of an 8-GPU node; 64 are 8 nodes); unused outer dimensions go.
/// Dimensions with a shape are expanded (expand_shapes). Mistakes: more devices than there are, a
/// number that does not fill whole inner dimensions, part of a shape.
Result<Machine> with_devices(Machine machine, std::int64_t devices);

/// A torus of shape a x b becomes rings of a and b devices, a mesh becomes lines, each with an
/// equal part of the device's bandwidth.
Machine expand_shapes(Machine machine);

/// "nvlink 8, infiniband any".
std::string dimension_sizes(const Machine& machine);

}  // namespace orrery
