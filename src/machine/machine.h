// SPDX-License-Identifier: Apache-2.0
/// The assembled machine and its YAML (configs/machines/).
#pragma once

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
  std::map<std::string, std::string> origins;  ///< dotted field (or a prefix of it) -> origin
};

/// Reads a machine file; every mistake at once.
Result<Machine> parse_machine(const ConfigNode& node);
/// A shipped name ("dgx-a100-80g") or a path.
Result<Machine> load_machine(const std::string& name_or_path);
/// The machine file's own YAML again, with origins; parse_machine reads it back equal.
std::string to_yaml(const Machine& machine);
/// Fits the outermost dimension to `devices` (its size 0 means open). Mistakes: more devices than
/// the machine has, or a number that does not fill whole inner dimensions... one partly filled
/// innermost dimension is allowed (4 GPUs of an 8-GPU node).
Result<Machine> with_devices(Machine machine, std::int64_t devices);

}  // namespace orrery
