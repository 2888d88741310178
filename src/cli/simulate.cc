// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/names.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/plan_flags.h"
#include "cli/progress.h"
#include "report/report.h"
#include "report/trace.h"
#include "study/run.h"
#include "workload/parallel/lower.h"

namespace orrery {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  orrery simulate --model gpt3-175b --machine dgx-a100-80g --devices 1024 \\\n"
    "                  --plan gpt3-175b-1024\n"
    "  orrery simulate --model gpt3-175b --machine dgx-a100-80g --plan gpt3-175b-1024 \\\n"
    "                  --recompute selective --sequence-parallel --json\n"
    "  orrery simulate --model ./config.json --machine ./cluster.yaml --tp 8 --dp 4 \\\n"
    "                  --global-batch 64 --zero 1 --trace step.json\n"
    "A trace opens in https://ui.perfetto.dev.\n";

class Simulate : public Command {
 public:
  void declare(Options& options) override {
    options.value("--model", model_, "NAME|FILE",
                  "a name of `orrery list models`, or a Hugging Face config.json");
    options.value("--machine", machine_, "NAME|FILE",
                  "a name of `orrery list machines`, or a file");
    options.value("--devices", devices_, "INT", "accelerators; default: what the plan needs");
    options.flag("--allow-oom", run_.allow_oom, "simulate although a stage does not fit in memory");
    options.flag("--no-fold", no_fold_, "simulate every rank, also those that mirror another");
    options.values("--skip", skip_, "PASS", "leave out a lowering pass (`orrery list passes`)");
    options.flag("--json", json_, "print one JSON object");
    options.flag("--csv", csv_, "print a header line and a line of values");
    options.value("--trace", trace_, "FILE", "also write the step as a Chrome/Perfetto trace");
    options.flag("--verbose", verbose_, "also print the time of every pass");
    plan_.declare(options, true);
    options.footer(kExamples);
  }

  Result<std::string> run(Error mistakes) override {
    const Model model = required("--model", model_, load_model, mistakes);
    const Machine machine = required("--machine", machine_, load_machine, mistakes);
    const Plan plan = plan_.plan(mistakes);
    const std::int64_t devices = parse_devices(mistakes);
    check_skips(mistakes);
    if (json_ && csv_) {
      mistakes.add({"--csv", {}, {}, "contradicts --json; choose one"});
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const Result<Run> run = simulate(model, machine, plan, devices);
    if (!run) {
      return fail(run.error());
    }
    return write(*run);
  }

 private:
  /// Loads a description whose name must be given.
  template <class T>
  static T required(const char* flag, const std::optional<std::string>& name,
                    Result<T> (*load)(const std::string& name_or_path), Error& mistakes) {
    if (!name) {
      mistakes.add({flag, {}, {}, "missing; expected a name or a file"});
      return T{};
    }
    return load_named(flag, *name, load, mistakes);
  }

  std::int64_t parse_devices(Error& mistakes) const {
    if (!devices_) {
      return 0;
    }
    const auto number = parse_value<std::int64_t>(*devices_);
    if (number && *number > 0) {
      return *number;
    }
    mistakes.add(wrong_value("--devices", *devices_, number ? "at least 1" : number.error()));
    return 0;
  }

  void check_skips(Error& mistakes) const {
    std::vector<std::string> names;
    for (const PassName& pass : lowering_passes()) {
      names.push_back(pass.name);
    }
    for (const std::string& pass : skip_) {
      if (std::find(names.begin(), names.end(), pass) == names.end()) {
        mistakes.add(
            {"--skip", {}, pass, "a name of `orrery list passes`" + did_you_mean(pass, names)});
      }
    }
  }

  Result<Run> simulate(const Model& model, const Machine& machine, const Plan& plan,
                       std::int64_t devices) {
    ProgressBar progress;
    run_.fold = !no_fold_;
    run_.record_spans = trace_.has_value();
    run_.verify_passes = verbose_;
    run_.skip.insert(skip_.begin(), skip_.end());
    run_.progress = [&](double share) { progress.update(share); };
    return run_step(model, machine, plan, devices, run_);
  }

  /// The trace first: when it cannot be written, nothing must be on standard output.
  Result<std::string> write(const Run& run) const {
    if (trace_) {
      if (auto written = write_trace_file(run, *trace_); !written) {
        return fail(std::move(written.error()));
      }
    }
    if (json_) {
      return json_report(run);
    }
    return csv_ ? csv_report(run) : table_report(run, {.verbose = verbose_});
  }

  std::optional<std::string> model_;
  std::optional<std::string> machine_;
  std::optional<std::string> devices_;
  std::optional<std::string> trace_;
  std::vector<std::string> skip_;
  PlanFlags plan_;
  RunOptions run_;
  bool no_fold_ = false;
  bool json_ = false;
  bool csv_ = false;
  bool verbose_ = false;
};

}  // namespace

std::unique_ptr<Command> make_simulate() {
  return std::make_unique<Simulate>();
}

}  // namespace orrery
