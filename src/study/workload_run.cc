// SPDX-License-Identifier: Apache-2.0
#include "study/workload_run.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace orrery {
namespace {

bool has_tier(const Machine& machine, int tier) {
  return tier == kRemoteTier ? machine.remote_memory.kind != RemoteKind::none
                             : tier < static_cast<int>(machine.device.memory.size());
}

Result<void> check_tiers(const Workload& workload, const Machine& machine) {
  for (const Program& program : workload.programs) {
    for (const Template& part : program.templates) {
      for (const Node& node : part.nodes) {
        if (node.kind == Node::Kind::copy && !has_tier(machine, node.tier)) {
          return fail(fmt::format(
              "{} is a copy to or from {}, which {} does not have", node.name,
              node.tier == kRemoteTier ? "remote memory" : fmt::format("memory tier {}", node.tier),
              machine.name));
        }
      }
    }
  }
  return {};
}

}  // namespace

Result<WorkloadRun> run_workload(const std::string& name, Workload workload, const Machine& machine,
                                 const SimulateOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  auto fitted = with_devices(machine, workload.ranks);
  if (!fitted) {
    return fail(std::move(fitted.error()));
  }
  if (auto ok = check_tiers(workload, *fitted); !ok) {
    return fail(std::move(ok.error()));
  }
  auto timeline = simulate(workload, *fitted, options);
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
  if (options.record_spans) {
    run.peaks = fullest_moments(run.workload, run.timeline);
  }
  run.algorithms = options.algorithms;
  run.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  run.passes = {{"simulate", run.wall_s}};
  return run;
}

}  // namespace orrery
