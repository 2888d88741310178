// SPDX-License-Identifier: Apache-2.0
#include "cli/export_chakra.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/collect.h"
#include "cli/progress.h"
#include "machine/compute/compute_model.h"
#include "machine/device_groups.h"
#include "report/json_writer.h"
#include "workload/chakra/from_workload.h"
#include "workload/chakra/statistics.h"
#include "workload/chakra/write.h"
#include "workload/parallel/lower.h"
#include "workload/parallel/step_clock.h"
#include "workload/plan/machine_check.h"

namespace orrery::cli {
namespace {

/// Returns the machine fitted to the plan's devices; every mistake of plan, model and machine.
Result<std::optional<machine::Machine>> prepare(const ChakraExport& what) {
  Error mistakes;
  std::optional<machine::Machine> machine = what.machine;
  collect(plan::check(what.plan, what.model), mistakes);
  if (machine) {
    collect(plan::check_machine(what.plan, *machine), mistakes);
  }
  if (machine && mistakes.empty()) {
    if (auto fitted = kept(machine::with_devices(*machine, what.plan.devices()), mistakes)) {
      machine = what.plan.clocks == plan::Clocks::boost ? machine::at_boost(std::move(*fitted))
                                                        : std::move(*fitted);
      parallel::set_clocks(*machine, what.model, what.plan);
    }
  }
  return or_mistakes(std::move(machine), std::move(mistakes));
}

chakra::ComputeTimes compute_times(const graph::Node& node, const compute::Device& device) {
  chakra::ComputeTimes sum;
  for (const graph::Operator& op : node.operators) {
    const compute::KernelTime time = compute::kernel_time(op, device);
    sum.alone += time.alone;
    sum.beside_collective += time.beside_collective;
    sum.beside_message += time.beside_message;
  }
  return sum;
}

std::string report(const ChakraExport& what, const chakra::TraceSet& traces) {
  const chakra::Statistics counts = statistics(traces);
  const bool groups = traces.groups.size() > 1;
  const std::string files = fmt::format("{0}.0.et to {0}.{1}.et", what.prefix, traces.ranks() - 1);
  const std::string groups_file = groups ? what.prefix + ".groups.json" : "";
  if (!what.json) {
    return fmt::format("{}\n{}{} ranks, {} groups, {}\n", files, groups ? groups_file + "\n" : "",
                       traces.ranks(), traces.groups.size() - 1, to_string(counts));
  }
  return report::json_text([&](report::JsonWriter& json) {
    json.begin_object();
    json.key("prefix").value(what.prefix);
    json.key("ranks").value(traces.ranks());
    json.key("nodes").value(counts.nodes);
    json.key("programs").value(counts.programs);
    json.key("program_nodes").value(counts.stored_nodes);
    json.key("groups").value(traces.groups.size() - 1);
    json.key("groups_file").value(groups_file);
    json.end_object();
  });
}

}  // namespace

Result<std::string> export_chakra(const ChakraExport& what) {
  const auto machine = prepare(what);
  if (!machine) {
    return fail(machine.error());
  }
  if (what.plan.devices() > what.most_files) {
    return fail(Error(
        Mistake{"--most-files",
                {},
                std::to_string(what.most_files),
                fmt::format("at least {}: one file per device of the plan", what.plan.devices())}));
  }
  // One node per kernel, as traces of frameworks have: each has its own slowdown.
  const auto workload = parallel::lower(what.model, what.plan, {.skip = {"fuse"}});
  if (!workload) {
    return fail(workload.error());
  }
  chakra::FromWorkloadOptions options;
  if (*machine) {
    options.times = [&](const graph::Node& node) {
      return compute_times(node, (*machine)->device);
    };
  }
  const auto traces = chakra::from_workload(*workload, options);
  if (!traces) {
    return fail(traces.error());
  }
  std::error_code problem;  // a folder that cannot be made is one that cannot be written to
  std::filesystem::create_directories(std::filesystem::path(what.prefix).parent_path(), problem);
  ProgressBar bar;
  const auto written =
      chakra::write_traces(*traces, {.prefix = what.prefix,
                                     .most_files = what.most_files,
                                     .progress = [&](double share) { bar.update(share); }});
  if (!written) {
    return fail(written.error());
  }
  return report(what, *traces);
}

}  // namespace orrery::cli
