// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/names.h"

namespace orrery {

/// How collectives and messages share the network's links (docs/models/networks.md). What runs each
/// is a row of kNetworks (simulate.cc).
enum class NetworkModel : std::uint8_t { ports, fifo, flow };
template <>
inline constexpr auto kNames<NetworkModel> = std::to_array<Named<NetworkModel>>({
    {NetworkModel::ports, "ports",
     "phases of collectives occupy ports; what several want of a port slows them all down"},
    {NetworkModel::fifo, "fifo", "every message on every link of its way, first come first served"},
    {NetworkModel::flow, "flow", "every message as a flow, links shared by max-min fairness"},
});

}  // namespace orrery
