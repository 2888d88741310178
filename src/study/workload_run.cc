// SPDX-License-Identifier: Apache-2.0
#include "study/workload_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "study/overflow.h"

namespace orrery::study {
namespace {

bool has_tier(const machine::Machine& machine, int tier) {
  return tier == graph::kRemoteTier ? machine.remote_memory.kind != memory::RemoteKind::none
                                    : tier < static_cast<int>(machine.device.memory.size());
}

Result<void> check_tiers(const graph::Workload& workload, const machine::Machine& machine) {
  const auto is_impossible = [&](const graph::Node& node) {
    return node.kind == graph::Node::Kind::copy && !has_tier(machine, node.tier);
  };
  for (const graph::Program& program : workload.programs) {
    for (const graph::Template& part : program.templates) {
      const auto node = std::ranges::find_if(part.nodes, is_impossible);
      if (node != part.nodes.end()) {
        return fail(fmt::format("{} is a copy to or from {}, which {} does not have", node->name,
                                node->tier == graph::kRemoteTier
                                    ? "remote memory"
                                    : fmt::format("memory tier {}", node->tier),
                                machine.name));
      }
    }
  }
  return {};
}

}  // namespace

Result<WorkloadRun> run_workload(const std::string& name, graph::Workload workload,
                                 const machine::Machine& machine,
                                 const simulate::SimulateOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  auto fitted = machine::with_devices(machine, workload.ranks);
  if (!fitted) {
    return fail(std::move(fitted.error()));
  }
  if (auto ok = check_tiers(workload, *fitted); !ok) {
    return fail(std::move(ok.error()));
  }
  auto timeline = simulate_in_range(workload, *fitted, options);
  if (!timeline) {
    return fail(std::move(timeline.error()));
  }
  WorkloadRun run;
  run.name = name;
  run.machine = std::move(*fitted);
  run.devices = workload.ranks;
  run.network = options.network;
  run.timeline = std::move(*timeline);
  run.workload = std::move(workload);
  if (options.record_spans && !run.timeline.stopped) {
    run.peaks = fullest_moments(run.workload, run.timeline);
  }
  run.algorithms = options.algorithms;
  run.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  run.passes = {{"simulate", run.wall_s}};
  return run;
}

}  // namespace orrery::study
