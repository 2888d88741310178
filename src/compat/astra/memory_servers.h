// SPDX-License-Identifier: Apache-2.0
/// Remote memory behind FIFO servers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "compat/astra/config.h"
#include "compat/astra/wires.h"

namespace orrery::astra {

/// An access takes latency + floor(bytes / bandwidth) of its server: per NPU (no contention), per
/// node of `npus_per_node` ranks, or one pool for all. Servers serve in order of request.
class MemoryServers {
 public:
  MemoryServers(const RemoteMemory& memory, std::int64_t npus)
      : memory_(memory), free_at_(servers(memory, npus), Time(0)) {}

  bool exists() const { return memory_.kind != RemoteMemoryKind::none; }
  /// Returns whether ranks delay each other.
  bool shared() const {
    return memory_.kind == RemoteMemoryKind::per_node || memory_.kind == RemoteMemoryKind::pool;
  }
  /// Returns when an access that is asked for now is over.
  Time access(Time now, std::int64_t npu, Bytes bytes) {
    const Time taken = memory_.latency + whole_nanoseconds(bytes, memory_.bandwidth);
    if (!shared()) {
      return now + taken;
    }
    const std::int64_t server =
        memory_.kind == RemoteMemoryKind::pool ? 0 : npu / memory_.npus_per_node;
    Time& free_at = free_at_[static_cast<std::size_t>(server)];
    free_at = std::max(now, free_at) + taken;
    return free_at;
  }

 private:
  static std::size_t servers(const RemoteMemory& memory, std::int64_t npus) {
    switch (memory.kind) {
      case RemoteMemoryKind::pool:
        return 1;
      case RemoteMemoryKind::per_node:
        return static_cast<std::size_t>(npus / std::max<std::int64_t>(1, memory.npus_per_node) + 1);
      default:
        return 0;
    }
  }
  RemoteMemory memory_;
  std::vector<Time> free_at_;
};

}  // namespace orrery::astra
