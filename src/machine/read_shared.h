// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/reader.h"
#include "machine/topology/dimension.h"

namespace orrery::machine {

/// Reads what a switch shares with the dimensions `inside` it, and its ports among their peers:
/// `through`, `node_bandwidth`, `bandwidth_by_peers`. Kind and `through` are read.
void read_shared(Reader& read, const std::vector<topology::NetworkDimension>& inside,
                 topology::NetworkDimension& dimension);

}  // namespace orrery::machine
