// SPDX-License-Identifier: Apache-2.0
#include "machine/copy_time.h"

#include <algorithm>
#include <cassert>
#include <iterator>

#include "graph/workload.h"
#include "machine/memory/pipeline.h"

namespace orrery::machine {

Time copy_time(const MemoryCopy& copy, const Machine& machine) {
  if (copy.tier != graph::kRemoteTier) {
    const auto tier = static_cast<std::size_t>(copy.tier);
    assert(tier < machine.device.memory.size() && "who runs a workload asks for the tier");
    const compute::MemoryTier& memory = machine.device.memory[tier];
    return memory::local_access(copy.bytes, memory.bandwidth, memory.latency);
  }
  const memory::RemoteMemory& memory = machine.remote_memory;
  memory::RemoteAccess access{.bytes = copy.bytes, .devices = copy.devices, .sharers = 1};
  if (!copy.sharers.empty()) {
    access.sharers = std::ssize(copy.sharers);
    access.in_node = std::count_if(copy.sharers.begin(), copy.sharers.end(),
                                   [&](std::int64_t rank) { return rank < memory.node_devices; });
  }
  return memory::access_time(memory, access);
}

}  // namespace orrery::machine
