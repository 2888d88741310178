// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/config_node.h"
#include "base/result.h"
#include "machine/topology/wires.h"

namespace orrery::machine {

/// Reads `topology: fat_tree:k=8` of a machine file, or a map {links, routing, seed}. Mistakes:
/// what is wrong with the network, fewer hosts than `devices`, a routing that does not suit it,
/// hosts that do not reach each other.
Result<topology::Wires> read_wires(const ConfigNode& node, std::int64_t devices);

/// Reads the same of wires whose other fields are known; mistakes stand at `node`.
Result<topology::Wires> with_graph(topology::Wires wires, const ConfigNode& node,
                                   std::int64_t devices);

}  // namespace orrery::machine
