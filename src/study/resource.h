// SPDX-License-Identifier: Apache-2.0
/// A Resource is what a machine could have more of.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "machine/machine.h"
#include "workload/plan/plan.h"

namespace orrery::study {

enum class ResourceKind : std::uint8_t {
  compute,
  memory,
  remote,
  bandwidth,
  latency,
  launch,
  host
};
constexpr auto named_values(ResourceKind) {
  return std::to_array<Named<ResourceKind>>({
      {ResourceKind::compute, "compute peak", "FLOP rates of all data types"},
      {ResourceKind::memory, "memory bandwidth", "of one memory tier"},
      {ResourceKind::remote, "remote memory bandwidth", "of one kind of its links"},
      {ResourceKind::bandwidth, "network bandwidth", "of one dimension"},
      {ResourceKind::latency, "network latency", "of one dimension: hops, messages, protocols"},
      {ResourceKind::launch, "kernel launch", "start and drain of kernels"},
      {ResourceKind::host, "host dispatch", "host time to issue a kernel"},
  });
}

/// Returns whether more of it is less time (latency, launch, host dispatch) or a higher rate.
constexpr bool is_time(ResourceKind kind) {
  return kind == ResourceKind::latency || kind == ResourceKind::launch ||
         kind == ResourceKind::host;
}

struct Resource {
  ResourceKind kind = ResourceKind::compute;
  std::size_t index = 0;  ///< of the memory tier, kRemoteLinks or network dimension
  std::string name;       ///< "hbm bandwidth", "infiniband latency"

  friend bool operator==(const Resource&, const Resource&) = default;
};

/// The bandwidths of a remote memory, and what they are called.
struct RemoteLink {
  Bandwidth memory::RemoteMemory::*bandwidth;
  std::string_view field;
  std::string_view name;
};
inline constexpr std::array kRemoteLinks{
    RemoteLink{&memory::RemoteMemory::bandwidth, "bandwidth", "remote memory bandwidth"},
    RemoteLink{&memory::RemoteMemory::switch_bandwidth, "switch_bandwidth",
               "pool uplink bandwidth"},
    RemoteLink{&memory::RemoteMemory::fabric_bandwidth, "fabric_bandwidth",
               "pool fabric bandwidth"},
};

/// Returns the resources of the machine and plan: compute, every memory tier, the links of a remote
/// memory, every network dimension of more than one device, kernel launch, host dispatch unless it
/// is 0.
std::vector<Resource> resources_of(const machine::Machine& machine, const plan::Plan& plan);

/// Makes the resource `factor` times as good: rates times `factor`, times divided by it.
void scale(const Resource& resource, double factor, machine::Machine& machine, plan::Plan& plan);

}  // namespace orrery::study
