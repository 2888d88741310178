// SPDX-License-Identifier: Apache-2.0
#include "machine/copy_time.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <vector>

#include "machine/memory/pipeline.h"

namespace orrery::machine {

Time copy_time(const graph::Workload& workload, Bytes bytes, int tier, graph::GroupIndex sharers,
               const Machine& machine) {
  if (tier != graph::kRemoteTier) {
    const auto index = static_cast<std::size_t>(tier);
    assert(index < machine.device.memory.size() && "who runs a workload asks for the tier");
    const compute::MemoryTier& memory = machine.device.memory[index];
    return memory::local_access(bytes, memory.bandwidth, memory.latency);
  }
  const memory::RemoteMemory& remote = machine.remote_memory;
  memory::RemoteAccess access{.bytes = bytes, .devices = workload.ranks, .sharers = 1};
  if (!sharers.none()) {
    const std::vector<std::int64_t> ranks = workload.group(sharers).members.group(0);
    access.sharers = std::ssize(ranks);
    access.in_node = std::count_if(ranks.begin(), ranks.end(),
                                   [&](std::int64_t rank) { return rank < remote.node_devices; });
  }
  return memory::access_time(remote, access);
}

Time copy_latency(int tier, const Machine& machine) {
  return tier == graph::kRemoteTier ? machine.remote_memory.latency
                                    : machine.device.memory[static_cast<std::size_t>(tier)].latency;
}

std::optional<CopyPort> copy_port(int tier, const Machine& machine) {
  const auto index = static_cast<std::size_t>(tier);
  if (tier == graph::kRemoteTier || index >= machine.device.memory.size()) {
    return std::nullopt;
  }
  const compute::MemoryTier& memory = machine.device.memory[index];
  for (std::size_t d = 0; d < machine.network.size() && !memory.through.empty(); ++d) {
    if (machine.network[d].name == memory.through) {
      return CopyPort{static_cast<int>(d),
                      std::min(1.0, memory.bandwidth / machine.network[d].bandwidth)};
    }
  }
  return std::nullopt;
}

}  // namespace orrery::machine
