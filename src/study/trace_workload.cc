// SPDX-License-Identifier: Apache-2.0
#include "study/trace_workload.h"

#include <array>
#include <optional>
#include <utility>

#include "workload/chakra/to_workload.h"
#include "workload/chakra/trace_files.h"
#include "workload/parallel/lower.h"

namespace orrery::study {
namespace {

/// Returns the type of the operations, which traces do not say.
graph::DataType type_on(const compute::Device& device) {
  constexpr std::array kWanted{graph::DataType::bf16, graph::DataType::fp16, graph::DataType::tf32,
                               graph::DataType::fp32};
  for (const graph::DataType type : kWanted) {
    if (device.peak[static_cast<std::size_t>(type)] > FlopRate(0)) {
      return type;
    }
  }
  return graph::DataType::bf16;
}

std::optional<int> tier_on(const machine::Machine& machine) {
  if (machine.device.memory.size() > 1) {
    return 1;
  }
  return machine.remote_memory.kind != memory::RemoteKind::none ? std::optional(graph::kRemoteTier)
                                                                : std::nullopt;
}

}  // namespace

Result<graph::Workload> workload_of(const chakra::TraceSet& traces, const machine::Machine& machine,
                                    bool durations, chakra::TensorsOfRank tensors) {
  chakra::ToWorkloadOptions options;
  for (const topology::NetworkDimension& dimension : machine.network) {
    options.dimensions.push_back(dimension.size);
  }
  options.memory_tier = tier_on(machine);
  options.durations = durations;
  options.type = type_on(machine.device);
  options.tensors = std::move(tensors);
  auto workload = chakra::to_workload(traces, options);
  if (!workload) {
    return workload;
  }
  return parallel::transform(std::move(*workload), {.machine = &machine});
}

Result<chakra::TensorsOfRank> tensors_of(const std::string& prefix) {
  auto files = chakra::find_trace_files(prefix);
  if (!files) {
    return fail(std::move(files.error()));
  }
  if (files->json()) {
    return [](std::int64_t) -> Result<chakra::TensorUses> { return chakra::TensorUses(); };
  }
  return [files = std::move(*files)](std::int64_t rank) {
    return chakra::load_tensors(files.of(rank));
  };
}

}  // namespace orrery::study
