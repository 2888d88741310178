// SPDX-License-Identifier: Apache-2.0
#include "calibrate/replay.h"

#include <fmt/format.h>

#include "base/file.h"
#include "cli/chakra_flags.h"
#include "cli/commands.h"
#include "cli/export_mpi.h"
#include "cli/mpi_program.h"
#include "cli/plan_flags.h"
#include "emit/program.h"
#include "machine/comments.h"
#include "machine/device_groups.h"
#include "report/replay.h"
#include "workload/chakra/trace_files.h"

namespace orrery::cli {
namespace {

constexpr const char* kReplayExamples =
    "Writes the MPI program of a step (`orrery export mpi`), compiles it, checks every element "
    "that it\n"
    "exchanges, and times steps and, in them, each product, stream and exchange. The machine\n"
    "(default: localhost) is fitted to these; the step is simulated before and after the fit.\n"
    "RUN is a plan (a file, or a name of `orrery list plans`) or the prefix of Chakra traces. "
    "Needs\n"
    "mpicxx and mpirun of OpenMPI or MPICH; products are OpenBLAS's where it is installed.\n"
    "Examples:\n"
    "  orrery replay --model gpt2 --tp 2 --global-batch 2 --sequence 256 --shrink 2 -n 2\n"
    "  orrery replay my-plan.yaml --model gpt2 -n 4 --mpi mpich --output mine.yaml\n"
    "  orrery replay traces/step -n 4 --shrink 1000 --json\n";

class Replay : public Command {
 public:
  void declare(Options& options) override {
    options.positional("RUN", run_, "a plan, or the prefix of Chakra traces");
    options.value("-n,--devices", devices_, "INT", "ranks; default: what RUN needs");
    options.value("--model", model_, "NAME|FILE", "of a plan");
    options.value("--machine", machine_, "NAME|FILE", "that is fitted; default localhost");
    options.value("--mpi", library_, "NAME",
                  "openmpi or mpich; default: the first that is installed");
    options.value("--shrink", shrink_, "INT",
                  "layers, dimensions, messages and durations that many times smaller (1)");
    options.value("--repeat", repeat_, "INT", "steps, whose median counts; default 20");
    options.value("--limit", limit_, "SECONDS", "ends a run that takes longer; default 300");
    options.value("--keep", keep_, "DIR", "keep the program and measured.csv there");
    options.output("-o,--output", output_, "FILE", "write the fitted machine");
    options.flag("--json", json_, "print one JSON object");
    chakra_.declare(options);
    plan_.declare(options, true, true);
    options.footer(kReplayExamples);
  }

  Result<std::string> run(Error mistakes) override {
    take("--shrink", shrink_, shrink_by_, mistakes);
    const std::int64_t devices = whole_number("-n", devices_, 0, 1024, mistakes);
    const std::int64_t repeat = whole_number("--repeat", repeat_, 20, 100000, mistakes);
    limit_s_ = whole_number("--limit", limit_, 300, 86400, mistakes);
    if (shrink_by_ < 1) {
      mistakes.add(wrong_value("--shrink", *shrink_, "a whole number above 0"));
      shrink_by_ = 1;  // for what else is wrong
    }
    const mpi_calls::MpiLibrary* const library = find_mpi(library_, mistakes);
    machine::Machine machine =
        load_named("--machine", machine_.value_or("localhost"), machine::load_alike, mistakes);
    auto workload = read(machine, devices, mistakes);
    if (!mistakes.empty() || library == nullptr) {
      return fail(std::move(mistakes));
    }
    report::Replay replay;
    replay.name = chakra_.given() ? chakra_.name() : run_.value_or(model_.value_or(""));
    replay.mpi = library->name;
    replay.ranks = workload->ranks;
    replay.repeat = repeat;
    MpiProgram program;
    auto measured = measure(*workload, machine, *library, program, replay);
    if (!measured) {
      return fail(std::move(measured.error()));
    }
    auto fit = calibrate::calibrate_replay(machine, emit::on_one_thread(std::move(*workload)),
                                           *measured, "orrery replay");
    if (!fit) {
      return fail(std::move(fit.error()));
    }
    keep(write(fit->machine));
    replay.fit = std::move(*fit);
    return json_ ? report::json_of(replay) : report::replay_table(replay);
  }

 private:
  /// Returns what the program executes, of a plan or of traces.
  Result<graph::Workload> read(const machine::Machine& machine, std::int64_t devices,
                               Error& mistakes) {
    if (run_ && chakra::count_trace_files(*run_).value_or(0) > 0) {
      chakra_.give(*run_);
    }
    Result<graph::Workload> workload = fail("");
    if (chakra_.given()) {
      refuse_given({{"--model", model_}}, "is for plans; traces say what is computed", mistakes);
      plan_.refuse("traces", mistakes);
      workload = chakra_.read(machine, devices);
    } else {
      chakra_.check(mistakes);
      workload = read_plan(devices, mistakes);
    }
    if (!workload) {
      mistakes.add(std::move(workload.error()));
      return workload;
    }
    return emit::executed(std::move(*workload), shrink_by_);
  }

  Result<graph::Workload> read_plan(std::int64_t devices, Error& mistakes) const {
    Error unread;
    zoo::Model model;
    if (model_) {
      model = load_named("--model", *model_, zoo::load_model, unread);
    } else {
      unread.add({"--model", {}, {}, "missing; a plan needs a model"});
    }
    machine::Machine machine = load_named("--machine", kOrderMachine, machine::load_alike, unread);
    plan::PlacedPlan placed = plan_.placed_plan(unread, run_, "RUN");
    if (!unread.empty()) {
      return fail(std::move(unread));
    }
    const plan::Plan plan = plan::complete(placed, &model, &machine, devices);
    if (devices > 0 && devices != plan.devices()) {
      mistakes.add(
          wrong_value("-n", *devices_, fmt::format("{}, which the plan needs", plan.devices())));
    }
    return step_for_program(model, plan, machine, shrink_by_);
  }

  /// Makes the program, in the order in which the machine that is fitted would run it; runs a step
  /// with every element checked, then the measured ones.
  Result<calibrate::ReplayTable> measure(const graph::Workload& workload,
                                         const machine::Machine& machine,
                                         const mpi_calls::MpiLibrary& library, MpiProgram& program,
                                         report::Replay& replay) const {
    const auto fitted = machine::with_devices(machine, workload.ranks);
    if (!fitted) {
      return fail(fitted.error());
    }
    const auto timeline = run_every_rank(workload, *fitted);
    if (!timeline) {
      return fail(timeline.error());
    }
    const auto calls = emit::program_of(workload, *timeline, 1);
    if (!calls) {
      return fail(calls.error());
    }
    replay.exchanges = emit::exchanges_of(*calls);
    const emit::Description description{.title = replay.name,
                                        .command = "orrery replay ...",
                                        .machine = machine.name,
                                        .order = emit::simulated_order(workload, *timeline, 1)};
    if (auto made = program.make(*calls, description, library, keep_.value_or("")); !made) {
      return fail(std::move(made.error()));
    }
    replay.blas = program.blas();
    const Duration limit(static_cast<double>(limit_s_));
    return program.run({"--order", "order.txt"}, limit)
        .and_then([&](const std::string&) { return program.measure(replay.repeat, limit); })
        .and_then(calibrate::read_replay);
  }

  /// Writes the machine, with the comments of the file that it was read from.
  Result<void> write(const machine::Machine& machine) const {
    if (!output_) {
      return {};
    }
    const std::string source =
        find_config("machines", machine_.value_or("localhost"))
            .and_then([](const std::string& path) { return read_file(path); })
            .value_or("");
    return write_file(*output_, machine::with_comments(machine::to_yaml(machine), source));
  }

  std::optional<std::string> run_;
  std::optional<std::string> devices_;
  std::optional<std::string> model_;
  std::optional<std::string> machine_;
  std::optional<std::string> library_;
  std::optional<std::string> shrink_;
  std::optional<std::string> repeat_;
  std::optional<std::string> limit_;
  std::optional<std::string> keep_;
  std::optional<std::string> output_;
  ChakraFlags chakra_;
  PlanFlags plan_;
  std::int64_t shrink_by_ = 1;
  std::int64_t limit_s_ = 300;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_replay() {
  return std::make_unique<Replay>();
}

}  // namespace orrery::cli
