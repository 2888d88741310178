// SPDX-License-Identifier: Apache-2.0
#include "cli/export_mpi.h"

#include <fmt/format.h>

#include <algorithm>

#include "emit/program.h"
#include "emit/write.h"
#include "machine/device_groups.h"
#include "report/json_writer.h"
#include "simulate/simulate.h"
#include "workload/parallel/lower.h"
#include "workload/parallel/step_clock.h"
#include "workload/plan/machine_check.h"

namespace orrery::cli {
namespace {

/// Ranks beyond which the tables, and the unfolded run, would take gigabytes.
constexpr std::int64_t kMostProgramRanks = 1024;

/// As many layers as every chunk of every stage gets alike, at least one.
zoo::Model fewer_layers(zoo::Model model, const plan::Plan& plan, std::int64_t shrink) {
  const std::int64_t parts = plan.pp * plan.chunks;
  if (shrink > 1 && model.layers > parts) {
    model.layers = std::max(model.layers / shrink / parts, std::int64_t{1}) * parts;
  }
  return model;
}

struct Simulated {
  graph::Workload workload;
  simulate::Timeline timeline;
};

Result<Simulated> simulated(const MpiExport& what, const zoo::Model& model) {
  Error mistakes;
  if (auto ok = plan::check(what.plan, model); !ok) {
    mistakes.add(std::move(ok.error()));
  }
  if (auto ok = plan::check_machine(what.plan, what.machine); !ok) {
    mistakes.add(std::move(ok.error()));
  }
  if (what.plan.devices() > kMostProgramRanks) {
    mistakes.add({"--plan",
                  {},
                  fmt::format("{} devices", what.plan.devices()),
                  fmt::format("at most {} ranks of a program", kMostProgramRanks)});
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  auto machine = machine::with_devices(what.machine, what.plan.devices());
  if (!machine) {
    return fail(machine.error());
  }
  parallel::set_clocks(*machine, model, what.plan);
  auto workload = parallel::lower(model, what.plan, {.machine = &*machine});
  if (!workload) {
    return fail(workload.error());
  }
  auto timeline = simulate::simulate(*workload, *machine,
                                     {.fold = false, .record_spans = true, .shortcuts = false});
  if (!timeline) {
    return fail(timeline.error());
  }
  return Simulated{std::move(*workload), std::move(*timeline)};
}

std::int64_t calls_of(const emit::Program& program) {
  std::int64_t calls = 0;
  for (const std::size_t list : program.list_of) {
    calls += std::ranges::count_if(program.lists[list], [](const emit::Call& call) {
      return call.kind != emit::Call::Kind::compute;
    });
  }
  return calls;
}

std::string report(const MpiExport& what, const emit::Program& program,
                   const std::vector<emit::File>& files, std::int64_t layers) {
  if (!what.json) {
    return fmt::format(
        "{}: {} ranks, {} layers, {} calls of MPI, {} different lists, in the order of {}\n"
        "cmake -S {} -B {}/build && cmake --build {}/build && ctest --test-dir {}/build\n",
        what.folder, program.ranks, layers, calls_of(program), program.lists.size(),
        what.machine.name, what.folder, what.folder, what.folder, what.folder);
  }
  return report::json_text([&](report::JsonWriter& json) {
    json.begin_object();
    json.key("folder").value(what.folder);
    json.key("machine").value(what.machine.name);
    json.key("ranks").value(program.ranks);
    json.key("layers").value(layers);
    json.key("calls").value(calls_of(program));
    json.key("lists").value(program.lists.size());
    json.key("files").begin_array();
    for (const emit::File& file : files) {
      json.value(file.name);
    }
    json.end_array().end_object();
  });
}

}  // namespace

Result<std::string> export_mpi(const MpiExport& what) {
  const zoo::Model model = fewer_layers(what.model, what.plan, what.shrink);
  const auto step = simulated(what, model);
  if (!step) {
    return fail(step.error());
  }
  const auto program = emit::program_of(step->workload, step->timeline, what.shrink);
  if (!program) {
    return fail(program.error());
  }
  const auto files = emit::files_of(
      *program,
      {.title = fmt::format("{} on {} ranks: tp {}, pp {}, dp {}{}", model.name, program->ranks,
                            what.plan.tp, what.plan.pp, what.plan.dp,
                            what.shrink > 1 ? fmt::format(", shrunk by {}", what.shrink) : ""),
       .command = what.command,
       .machine = what.machine.name,
       .order = emit::simulated_order(step->workload, step->timeline, what.shrink)});
  if (auto ok = emit::write_files(files, what.folder); !ok) {
    return fail(ok.error());
  }
  return report(what, *program, files, model.layers);
}

}  // namespace orrery::cli
