// SPDX-License-Identifier: Apache-2.0
/// The time of the messages of a phase on the links of a machine, by execute.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "collective/phase_messages.h"
#include "execute.h"

namespace orrery::testing {

/// Devices from one coordinate of a dimension to the next.
inline std::int64_t stride_of(int dimension, const machine::Machine& machine) {
  std::int64_t stride = 1;
  for (int d = 0; d < dimension; ++d) {
    stride *= machine.network[static_cast<std::size_t>(d)].size;
  }
  return stride;
}

/// The members of a phase in the group of `first`, innermost dimension first.
inline std::vector<std::int64_t> members_from(std::int64_t first,
                                              const collective::CollectivePhase& phase,
                                              const machine::Machine& machine) {
  std::vector<std::int64_t> devices{first};
  for (const collective::PortUse& port : phase.ports) {
    const std::int64_t unit = port.extent.stride * stride_of(port.extent.dimension, machine);
    const std::vector<std::int64_t> inner = std::move(devices);
    devices = {};
    for (std::int64_t i = 0; i < port.extent.count; ++i) {
      for (const std::int64_t device : inner) {
        devices.push_back(device + i * unit);
      }
    }
  }
  return devices;
}

/// The members of every group of a phase, in the order of its schedule.
using DeviceGroups = std::vector<std::vector<std::int64_t>>;
inline DeviceGroups groups_of(const collective::CollectivePhase& phase,
                              const machine::Machine& machine) {
  DeviceGroups groups;
  const std::int64_t devices = stride_of(static_cast<int>(machine.network.size()), machine);
  for (std::int64_t device = 0; device < devices; ++device) {
    const bool first =
        std::all_of(phase.ports.begin(), phase.ports.end(), [&](const collective::PortUse& port) {
          const auto size = machine.network[static_cast<std::size_t>(port.extent.dimension)].size;
          const std::int64_t place = device / stride_of(port.extent.dimension, machine) % size;
          return place / port.extent.stride % port.extent.count == 0;
        });
    if (first) {
      groups.push_back(members_from(device, phase, machine));
    }
  }
  return groups;
}

struct MessageCuts {
  int chunks = collective::kMessageChunks;  ///< of the buffer, where an algorithm is pipelined
  int slices = 1;                           ///< of every message (together)
};

/// Returns the time until the last of these groups, all beginning at once, has done the phase.
inline Time message_time(const collective::CollectivePhase& phase, const DeviceGroups& groups,
                         const machine::Machine& machine, const MessageCuts& cuts = {}) {
  const collective::PhaseRoutes routes(phase, machine);
  std::map<std::pair<std::int64_t, std::int64_t>, MessageRoute> known;
  const auto route = [&](std::int64_t from, std::int64_t to) -> const MessageRoute& {
    const auto [found, fresh] = known.try_emplace({from, to});
    if (fresh) {
      routes.append(from, to, found->second.hops);
    }
    return found->second;
  };
  const collective::MessageSchedule schedule =
      together(collective::schedule_of(phase, machine, cuts.chunks), groups, cuts.slices);
  const Wires wires{.links = topology::LinkMap(machine.network).links(), .route = route};
  return collective::setup_of(phase, machine) + execute(schedule, phase.size, wires).end;
}

}  // namespace orrery::testing
