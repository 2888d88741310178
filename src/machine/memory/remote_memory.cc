// SPDX-License-Identifier: Apache-2.0
#include "machine/memory/remote_memory.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace orrery::memory {
namespace {

constexpr std::array<std::string_view, 6> kOfHierarchy{
    "groups", "switches", "switch_bandwidth", "fabric_bandwidth", "in_switch", "chunk"};

/// Devices that one server of the kind serves.
std::int64_t devices_per_server(const RemoteMemory& memory, std::int64_t devices) {
  switch (memory.kind) {
    case RemoteKind::per_node:
      return std::min(memory.node_devices, devices);
    case RemoteKind::pool:
      return devices;
    default:
      return 1;
  }
}

}  // namespace

bool has_field(RemoteKind kind, std::string_view field) {
  if (field == "kind") {
    return true;
  }
  if (field == "node_devices") {
    return kind == RemoteKind::per_node || kind == RemoteKind::hierarchical;
  }
  if (std::find(kOfHierarchy.begin(), kOfHierarchy.end(), field) != kOfHierarchy.end()) {
    return kind == RemoteKind::hierarchical;
  }
  return kind != RemoteKind::none;
}

std::vector<TransferStage> stages_of(const RemoteMemory& memory, const RemoteAccess& access) {
  assert(memory.exists() && "a machine without remote memory has no access to it");
  assert(access.devices >= access.sharers && access.sharers >= access.in_node);
  assert((access.sharers == 1 || memory.in_switch) && "only switches that can, multiply and add");
  if (memory.kind != RemoteKind::hierarchical) {
    const std::int64_t served = devices_per_server(memory, access.devices);
    return {{"memory", access.bytes * served, memory.bandwidth}};
  }
  const std::int64_t in_node = std::min(memory.node_devices, access.devices);
  return {
      {"group", access.bytes * access.devices / (access.sharers * memory.groups), memory.bandwidth},
      {"uplink", access.bytes * in_node / access.in_node,
       memory.switch_bandwidth * static_cast<double>(memory.switches)},
      {"fabric", access.bytes, memory.fabric_bandwidth}};
}

Time access_time(const RemoteMemory& memory, const RemoteAccess& access) {
  if (access.bytes == Bytes(0)) {
    return Time(0);
  }
  const std::vector<TransferStage> stages = stages_of(memory, access);
  const Bytes chunks = access.bytes / std::max<std::int64_t>(1, memory.chunk.value());
  return memory.latency + pipelined_time(stages, std::max<std::int64_t>(1, chunks.value()));
}

Bytes capacity_per_device(const RemoteMemory& memory, std::int64_t devices) {
  if (memory.kind == RemoteKind::hierarchical) {
    return Bytes((memory.capacity * memory.groups).value() / devices);
  }
  return Bytes(memory.capacity.value() / devices_per_server(memory, devices));
}

}  // namespace orrery::memory
