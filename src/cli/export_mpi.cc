// SPDX-License-Identifier: Apache-2.0
#include "cli/export_mpi.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/collect.h"
#include "emit/program.h"
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

/// Returns the model with fewer layers: as many as every chunk of every stage gets alike, at least
/// one.
zoo::Model fewer_layers(zoo::Model model, const plan::Plan& plan, std::int64_t shrink) {
  const std::int64_t parts = plan.pp * plan.chunks;
  if (shrink > 1 && model.layers > parts) {
    model.layers = std::max(model.layers / shrink / parts, std::int64_t{1}) * parts;
  }
  return model;
}

std::string report(const MpiExport& what, const emit::Program& program,
                   const std::vector<emit::File>& files, std::int64_t layers) {
  if (!what.json) {
    return fmt::format(
        "{}: {} ranks, {} layers, {} calls of MPI, {} different lists, in the order of {}\n"
        "cmake -S {} -B {}/build && cmake --build {}/build && ctest --test-dir {}/build\n",
        what.folder, program.ranks, layers, emit::exchanges_of(program), program.lists.size(),
        what.machine.name, what.folder, what.folder, what.folder, what.folder);
  }
  return report::json_text([&](report::JsonWriter& json) {
    json.begin_object();
    json.key("folder").value(what.folder);
    json.key("machine").value(what.machine.name);
    json.key("ranks").value(program.ranks);
    json.key("layers").value(layers);
    json.key("calls").value(emit::exchanges_of(program));
    json.key("lists").value(program.lists.size());
    json.key("files").values(files, [&](const emit::File& file) { return file.name; }).end_object();
  });
}

}  // namespace

Result<graph::Workload> step_for_program(zoo::Model& model, const plan::Plan& plan,
                                         machine::Machine& machine, std::int64_t shrink) {
  Error mistakes;
  model = fewer_layers(std::move(model), plan, shrink);
  collect(plan::check(plan, model), mistakes);
  collect(plan::check_machine(plan, machine), mistakes);
  if (plan.devices() > kMostProgramRanks) {
    mistakes.add({"--plan",
                  {},
                  fmt::format("{} devices", plan.devices()),
                  fmt::format("at most {} ranks of a program", kMostProgramRanks)});
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  auto fitted = machine::with_devices(machine, plan.devices());
  if (!fitted) {
    return fail(fitted.error());
  }
  machine = std::move(*fitted);
  parallel::set_clocks(machine, model, plan);
  return parallel::lower(model, plan, {.machine = &machine});
}

Result<simulate::Timeline> run_every_rank(const graph::Workload& workload,
                                          const machine::Machine& machine) {
  return simulate::simulate(workload, machine,
                            {.fold = false, .record_spans = true, .shortcuts = false});
}

Result<PlannedProgram> planned_program(const MpiExport& what) {
  zoo::Model model = what.model;
  machine::Machine machine = what.machine;
  const auto step = step_for_program(model, what.plan, machine, what.shrink);
  if (!step) {
    return fail(step.error());
  }
  const auto timeline = run_every_rank(*step, machine);
  if (!timeline) {
    return fail(timeline.error());
  }
  auto program = emit::program_of(*step, *timeline, what.shrink);
  if (!program) {
    return fail(program.error());
  }
  const std::string title =
      fmt::format("{} on {} ranks: tp {}, pp {}, dp {}{}", model.name, program->ranks, what.plan.tp,
                  what.plan.pp, what.plan.dp,
                  what.shrink > 1 ? fmt::format(", shrunk by {}", what.shrink) : "");
  return PlannedProgram{
      .program = std::move(*program),
      .description = {.title = title,
                      .command = what.command,
                      .machine = what.machine.name,
                      .order = emit::simulated_order(*step, *timeline, what.shrink)},
      .layers = model.layers};
}

Result<std::string> export_mpi(const MpiExport& what) {
  const auto made = planned_program(what);
  if (!made) {
    return fail(made.error());
  }
  const auto files = emit::files_of(made->program, made->description);
  if (auto ok = emit::write_files(files, what.folder); !ok) {
    return fail(ok.error());
  }
  return report(what, made->program, files, made->layers);
}

}  // namespace orrery::cli
