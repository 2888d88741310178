// SPDX-License-Identifier: Apache-2.0
#include "study/resource.h"

#include "machine/device_groups.h"

namespace orrery::study {
namespace {

void quicken(std::vector<topology::Protocol>& protocols, double factor) {
  for (topology::Protocol& protocol : protocols) {
    protocol.launch = protocol.launch / factor;
    protocol.step_latency = protocol.step_latency / factor;
    protocol.at_least = protocol.at_least / factor;
  }
}

void quicken(topology::NetworkDimension& dimension, double factor) {
  dimension.latency = dimension.latency / factor;
  dimension.message_overhead = dimension.message_overhead / factor;
  for (const auto& [name, list] : topology::kProtocolLists) {
    quicken(dimension.*list, factor);
  }
}

void quicken(compute::KernelCoefficients& kernels, double factor) {
  kernels.gemm_launch = kernels.gemm_launch / factor;
  kernels.gemm_split_latency = kernels.gemm_split_latency / factor;
  kernels.stream_launch = kernels.stream_launch / factor;
}

}  // namespace

std::vector<Resource> resources_of(const machine::Machine& machine, const plan::Plan& plan) {
  std::vector<Resource> resources{{ResourceKind::compute, 0, "compute peak"}};
  for (std::size_t i = 0; i < machine.device.memory.size(); ++i) {
    resources.push_back({ResourceKind::memory, i, machine.device.memory[i].name + " bandwidth"});
  }
  for (std::size_t i = 0; i < kRemoteLinks.size(); ++i) {
    if (memory::has_field(machine.remote_memory.kind, kRemoteLinks[i].field)) {
      resources.push_back({ResourceKind::remote, i, std::string(kRemoteLinks[i].name)});
    }
  }
  for (std::size_t i = 0; i < machine.network.size(); ++i) {
    const topology::NetworkDimension& dimension = machine.network[i];
    if (dimension.size > 1) {
      resources.push_back({ResourceKind::bandwidth, i, dimension.name + " bandwidth"});
      resources.push_back({ResourceKind::latency, i, dimension.name + " latency"});
    }
  }
  resources.push_back({ResourceKind::launch, 0, "kernel launch"});
  if (plan.host_dispatch > Time(0)) {
    resources.push_back({ResourceKind::host, 0, "host dispatch"});
  }
  return resources;
}

void scale(const Resource& resource, double factor, machine::Machine& machine, plan::Plan& plan) {
  switch (resource.kind) {
    case ResourceKind::compute:
      machine::change_devices(machine, [&](compute::Device& device) {
        for (FlopRate& peak : device.peak) {
          peak = peak * factor;
        }
      });
      return;
    case ResourceKind::memory:
      machine::change_devices(machine, [&](compute::Device& device) {
        Bandwidth& bandwidth = device.memory[resource.index].bandwidth;
        bandwidth = bandwidth * factor;
      });
      return;
    case ResourceKind::remote: {
      Bandwidth& bandwidth = machine.remote_memory.*kRemoteLinks[resource.index].bandwidth;
      bandwidth = bandwidth * factor;
      return;
    }
    case ResourceKind::bandwidth: {
      Bandwidth& bandwidth = machine.network[resource.index].bandwidth;
      bandwidth = bandwidth * factor;
      return;
    }
    case ResourceKind::latency:
      return quicken(machine.network[resource.index], factor);
    case ResourceKind::launch:
      return machine::change_devices(
          machine, [&](compute::Device& device) { quicken(device.kernels, factor); });
    case ResourceKind::host:
      plan.host_dispatch = plan.host_dispatch / factor;
      return;
  }
}

}  // namespace orrery::study
