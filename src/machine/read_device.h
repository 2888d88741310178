// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/config_node.h"
#include "base/reader.h"
#include "machine/machine.h"

namespace orrery::machine {

/// Reads a map of `device`; mistakes go to `machine`.
compute::Device read_device(Reader& machine, const ConfigNode& node);
/// Reads the list `parts`.
void read_parts(Reader& machine, std::vector<DeviceGroup>& parts);

}  // namespace orrery::machine
