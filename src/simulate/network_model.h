// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/names.h"

namespace orrery::simulate {

/// How collectives and messages share the network's links (docs/models/network.md). What runs each
/// is a row of kNetworks (simulate.cc).
enum class NetworkModel : std::uint8_t { ports, fifo, flow, flit, packet };
constexpr auto named_values(NetworkModel) {
  return std::to_array<Named<NetworkModel>>({
      {NetworkModel::ports, "ports",
       "a phase of a collective occupies its links at once, for its closed form; who shares a link "
       "gets less of all of its own. Ranks alike are simulated once"},
      {NetworkModel::fifo, "fifo",
       "every message of every collective holds every link of its way, first come first served; "
       "one "
       "waits only for what it needs"},
      {NetworkModel::flow, "flow",
       "every message of every collective is a flow; links are shared by max-min fairness, and "
       "what "
       "a flow cannot use is given to others"},
      {NetworkModel::flit, "flit",
       "every message of every collective is packets of flits through virtual-channel routers with "
       "finite buffers, cycle by cycle; in closed form while messages do not meet"},
      {NetworkModel::packet, "packet",
       "every message of every collective is packets in queues of the links that they pass, as "
       "store-and-forward switches and a protocol of senders and receivers have it (`packet` of "
       "the machine file)"},
  });
}

}  // namespace orrery::simulate
