// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace orrery::astra {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

topology::DimensionKind kind_of(Building building) {
  switch (building) {
    case Building::ring:
      return topology::DimensionKind::ring;
    case Building::fully_connected:
      return topology::DimensionKind::fully_connected;
    case Building::switched:
      return topology::DimensionKind::switched;
  }
  return topology::DimensionKind::ring;
}

/// Links of a device, in one direction, over which its bandwidth spreads.
std::int64_t links_of(const Dimension& dimension) {
  switch (dimension.building) {
    case Building::ring:
      return dimension.size > 2 ? 2 : 1;
    case Building::fully_connected:
      return dimension.size - 1;
    case Building::switched:
      return 1;
  }
  return 1;
}

/// Returns a device of nothing but the roofline: full rates, no launches.
compute::Device device_of(const System& system) {
  compute::Device device;
  device.name = "NPU";
  device.peak[static_cast<std::size_t>(graph::DataType::bf16)] =
      system.roofline ? system.peak.value_or(FlopRate(kInfinite)) : FlopRate(kInfinite);
  compute::MemoryTier memory;
  memory.name = "local";
  memory.bandwidth = system.roofline ? system.local_memory_bandwidth.value_or(Bandwidth(kInfinite))
                                     : Bandwidth(kInfinite);
  device.memory.push_back(std::move(memory));
  device.kernels.gemm_peak_share = 1;
  device.kernels.gemm_memory_share = 1;
  device.kernels.gemm_launch = Time(0);
  return device;
}

memory::RemoteMemory remote_of(const RemoteMemory& memory) {
  memory::RemoteMemory remote;
  switch (memory.kind) {
    case RemoteMemoryKind::none:
      return remote;
    case RemoteMemoryKind::per_npu:
      remote.kind = memory::RemoteKind::per_device;
      break;
    case RemoteMemoryKind::per_node:
      remote.kind = memory::RemoteKind::per_node;
      break;
    case RemoteMemoryKind::pool:
      remote.kind = memory::RemoteKind::pool;
      break;
  }
  remote.bandwidth = memory.bandwidth;
  remote.latency = memory.latency;
  remote.node_devices = memory.npus_per_node;
  return remote;
}

/// Returns the algorithm that one list asks for.
collective::CollectiveAlgorithm asked_by(const std::vector<Implementation>& list,
                                         const RunInput& input) {
  const bool several = input.network.size() > 1;
  const Algorithm first = list.empty() ? Algorithm::ring : list.front().algorithm;
  if (first == Algorithm::one_ring) {
    return collective::CollectiveAlgorithm::ring;
  }
  if (first == Algorithm::one_direct || first == Algorithm::one_halving_doubling) {
    const bool direct = first == Algorithm::one_direct;
    return several  ? collective::CollectiveAlgorithm::automatic
           : direct ? collective::CollectiveAlgorithm::direct
                    : collective::CollectiveAlgorithm::halving_doubling;
  }
  if (several && input.system.inter_dimension == InterDimension::themis) {
    return collective::CollectiveAlgorithm::themis;
  }
  const bool equal = std::all_of(list.begin(), list.end(), [&](const Implementation& each) {
    return each.algorithm == first;
  });
  if (equal && first == Algorithm::direct) {
    return collective::CollectiveAlgorithm::direct;
  }
  if (equal && first == Algorithm::halving_doubling) {
    return collective::CollectiveAlgorithm::halving_doubling;
  }
  if (several) {
    return collective::CollectiveAlgorithm::hierarchical;
  }
  return first == Algorithm::ring ? collective::CollectiveAlgorithm::ring
                                  : collective::CollectiveAlgorithm::double_binary_tree;
}

bool accesses_memory(const chakra::TraceSet& traces) {
  const auto accesses = [](const chakra::Node& node) {
    using chakra::NodeType;
    return !node.on_cpu && (node.type == NodeType::mem_load || node.type == NodeType::mem_store);
  };
  return std::any_of(traces.programs.begin(), traces.programs.end(),
                     [&](const chakra::Program& program) {
                       return std::any_of(program.nodes.begin(), program.nodes.end(), accesses);
                     });
}

std::set<Operation> operations_in(const chakra::TraceSet& traces) {
  std::set<Operation> operations;
  for (const chakra::Program& program : traces.programs) {
    for (const chakra::Node& node : program.nodes) {
      const auto operation = operation_of(node.collective);
      if (node.type == chakra::NodeType::comm_coll && operation) {
        operations.insert(*operation);
      }
    }
  }
  return operations;
}

}  // namespace

std::vector<topology::NetworkDimension> network_of(const std::vector<Dimension>& network,
                                                   Time overhead) {
  std::vector<topology::NetworkDimension> dimensions;
  for (const Dimension& from : network) {
    topology::NetworkDimension to;
    to.name = fmt::format("dimension {}", dimensions.size());
    to.kind = kind_of(from.building);
    to.size = from.size;
    to.bandwidth = from.bandwidth * static_cast<double>(links_of(from));
    to.latency = from.latency * (from.building == Building::switched ? 2 : 1);
    to.message_overhead = overhead;
    dimensions.push_back(std::move(to));
  }
  return dimensions;
}

Result<void> check_portable(const System& system) {
  constexpr const char* kNoCustoms =
      "none, as only ASTRA-sim's engine runs custom collectives (without --native)";
  Error mistakes;
  for (const auto& operation : kNames<Operation>) {
    if (const auto& custom = system.custom[static_cast<std::size_t>(operation.value)]) {
      mistakes.add(
          {{}, fmt::format("{}-implementation-custom", operation.name), *custom, kNoCustoms});
    }
  }
  if (system.custom_by_node) {
    mistakes.add({{}, "per-node-custom-implementation", *system.custom_by_node, kNoCustoms});
  }
  if (system.replay_only) {
    mistakes.add({{}, "replay-only", "1", "0, as --native simulates communication"});
  }
  return mistakes.empty() ? Result<void>() : fail(std::move(mistakes));
}

Result<machine::Machine> machine_of(const RunInput& input, double injection_scale) {
  Error mistakes;
  if (input.system.bus && input.system.bus->shared) {
    mistakes.add({{}, "model-shared-bus", "1", "0, as machines of --native have no such bus"});
  }
  if (input.memory.kind == RemoteMemoryKind::none && accesses_memory(input.traces)) {
    mistakes.add({{},
                  std::string(kMemoryType),
                  std::string(name_of(input.memory.kind)),
                  "a remote memory, as the traces load from it or store to it"});
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  machine::Machine machine;
  machine.name = "ASTRA-sim's network file";
  machine.device = device_of(input.system);
  const double delay = static_cast<double>(input.system.endpoint_delay.value()) * injection_scale;
  machine.network = network_of(input.network, Time(static_cast<std::int64_t>(delay)));
  machine.remote_memory = remote_of(input.memory);
  return machine;
}

collective::CollectiveAlgorithm algorithm_of(const RunInput& input) {
  std::set<collective::CollectiveAlgorithm> asked;
  for (const Operation operation : operations_in(input.traces)) {
    asked.insert(asked_by(input.system.implementation[static_cast<std::size_t>(operation)], input));
  }
  if (asked.size() == 1) {
    return *asked.begin();
  }
  return asked.empty() || input.network.size() == 1 ? collective::CollectiveAlgorithm::automatic
                                                    : collective::CollectiveAlgorithm::hierarchical;
}

}  // namespace orrery::astra
