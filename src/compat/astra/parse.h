// SPDX-License-Identifier: Apache-2.0
/// ASTRA-sim's files -> config.h. Every mistake at once, with file and line; unknown keys are
/// mistakes, keys that ASTRA-sim documents but never reads are warnings.
#pragma once

#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"
#include "compat/astra/config.h"
#include "compat/astra/quirks.h"

namespace orrery::astra {

/// `warnings`: one sentence each, with file and line.
Result<System> parse_system(const ConfigNode& node, std::vector<std::string>& warnings);
/// Lists of equal length, innermost dimension first: topology, npus_count, bandwidth (GB/s, see
/// Quirk::gib_bandwidth), latency (ns).
Result<std::vector<Dimension>> parse_network(const ConfigNode& node, const Quirks& quirks);
Result<RemoteMemory> parse_memory(const ConfigNode& node);

}  // namespace orrery::astra
