// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/lists.h"
#include "base/names.h"
#include "base/reader.h"
#include "cli/chakra_flags.h"
#include "cli/commands.h"
#include "cli/fault_flags.h"
#include "cli/html_flag.h"
#include "cli/jobs_flag.h"
#include "cli/loop_flags.h"
#include "cli/plan_flags.h"
#include "cli/progress.h"
#include "cli/step_flags.h"
#include "cli/strategy_flags.h"
#include "cli/tokens_flag.h"
#include "cli/trace_flag.h"
#include "collective/layout/fuse_workload.h"
#include "machine/device_groups.h"
#include "report/goodput.h"
#include "report/report.h"
#include "study/run.h"
#include "web/extra.h"
#include "workload/parallel/lower.h"

namespace orrery::cli {
namespace {

constexpr const char* kSimulateExamples =
    "Examples:\n"
    "  orrery simulate --model gpt3-175b --machine dgx-a100-80g --devices 1024 \\\n"
    "                  --plan gpt3-175b-1024\n"
    "  orrery simulate --model gpt3-175b --machine dgx-a100-80g --plan gpt3-175b-1024 \\\n"
    "                  --recompute selective --sequence-parallel --json\n"
    "  orrery simulate --model ./config.json --machine ./cluster.yaml --tp 8 --dp 4 \\\n"
    "                  --global-batch 64 --zero 1 --trace step.json\n"
    "  orrery simulate --model gpt2 --machine dgx-a100-80g --tp 4 --global-batch 8 --network fifo\n"
    "  orrery simulate --model gpt2 --machine dgx-a100-80g --tp 4 --global-batch 8 --network flow "
    "\\\n"
    "                  --faults faults.yaml --telemetry-out telemetry.jsonl\n"
    "  orrery simulate --chakra traces/step --groups traces/step.groups.json --machine dgx-h100\n"
    "  orrery simulate --strategy strategy.json --graph Rmoe --machine dgx-a100-80g --devices 8\n"
    "  orrery simulate --model llama-3-8b --strategy strategy.json --machine dgx-h100 --dp 16 \\\n"
    "                  --global-batch 32 --sequence 4096\n"
    "  orrery simulate --jobs jobs.yaml --machine dgx-h100 --devices 64 --network flow\n"
    "  orrery simulate --model gpt2 --machine dgx-a100-80g --tp 4 --global-batch 8 --html "
    "step.html\n"
    "A trace opens in https://ui.perfetto.dev, a page in any browser.\n";

class Simulate : public Command {
 public:
  void declare(Options& options) override {
    step_.declare(options);
    step_.declare_topology(options);
    chakra_.declare(options);
    strategy_.declare(options);
    loop_.declare(options);
    faults_.declare(options);
    jobs_.declare(options);
    options.values("--skip", skip_, "PASS", "leave out a lowering pass (`orrery list passes`)");
    options.flag("--fuse", run_.fuse,
                 "sums that leave a stage become slices on the way (`orrery fuse`)");
    options.value("--steps", steps_, "INT",
                  "simulate so many training steps, one after the other; default: 1");
    options.value("--warm", warm_, "INT",
                  "the first so many of --steps are the warm-up, which no mean counts; default: 0");
    options.value("--price-per-hour", price_, "MONEY",
                  "of one device, instead of the machine's: 2.5 or '2.5 USD'");
    tokens_.declare(
        options,
        "also the whole run on so many: 15T, 300B or 1.5e12 (`orrery run-plan` knows of "
        "failures)");
    options.flag("--json", json_, "print one JSON object");
    options.flag("--csv", csv_, "print a header line and a line of values");
    html_.declare(options);
    trace_.declare(options);
    options.flag("--memory", memory_,
                 "with --chakra: also print the most bytes that the tensors of a rank take");
    options.flag("--verbose", verbose_, "also print the time of every pass");
    plan_.declare(options, true, true);
    options.footer(kSimulateExamples);
  }

  Result<std::string> run(Error mistakes) override {
    loop_.read(run_, mistakes);
    run_.faults = faults_.read(mistakes);
    run_.record_messages = faults_.records();
    read_steps(mistakes);
    if (json_ && csv_) {
      mistakes.add({"--csv", {}, {}, "contradicts --json; choose one"});
    }
    trace_.check(mistakes);
    chakra_.check(mistakes);
    strategy_.check(mistakes);
    if (memory_ && !chakra_.given()) {
      mistakes.add({"--memory", {}, {}, "goes with --chakra; a plan's is printed anyway"});
    }
    if (jobs_.given()) {
      return run_jobs(std::move(mistakes));
    }
    return strategy_.given() ? run_strategy(std::move(mistakes))
           : chakra_.given() ? run_traces(std::move(mistakes))
                             : run_plan(std::move(mistakes));
  }

 private:
  Result<std::string> run_plan(Error mistakes) {
    PlannedStep step = read_planned_step(step_, plan_, mistakes);
    set_price(step.machine, mistakes);
    check_skips(mistakes);
    if (tokens_.given() && csv_) {
      mistakes.add({"--tokens", {}, {}, "contradicts --csv, whose columns are those of a step"});
    }
    const double tokens = tokens_.read(mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const Result<study::Run> run = simulate(step);
    if (!run) {
      return fail(step.plan.placed(run.error()));
    }
    std::optional<study::RunPlan> whole;
    if (tokens_.given()) {
      auto planned = study::plan_run(*run, tokens, {}, 1, 1);
      if (!planned) {
        return fail(TokensFlag::placed(planned.error()));
      }
      whole = std::move(*planned);
    }
    if (csv_) {
      return write(*run, [&] { return report::csv_report(*run); });
    }
    return write(*run, [&] {
      return json_ ? report::json_of(*run, whole)
                   : report::table_report(*run, {.verbose = verbose_}) +
                         (whole ? "\n" + report::run_plan_table(*run, *whole, {}, 1) : "");
    });
  }

  Result<std::string> run_traces(Error mistakes) {
    const StepInput step = step_.read_machine("--chakra", mistakes);
    plan_.refuse("--chakra", mistakes);
    check_no_plan("--chakra", mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const bool over_time = memory_ || records_spans();  // tensors are large, and so are spans
    auto workload = chakra_.read(step.machine, step.devices, over_time);
    if (!workload) {
      return fail(std::move(workload.error()));
    }
    std::string fusions;
    if (run_.fuse) {
      const auto fitted = machine::with_devices(step.machine, workload->ranks);
      if (!fitted) {
        return fail(fitted.error());
      }
      layout::Fused fused = layout::fuse_communication(std::move(*workload), &*fitted);
      *workload = std::move(fused.workload);
      fusions = places_of(fused.fusions);
    }
    return run_workload(chakra_.name(), std::move(*workload), step.machine, over_time, fusions);
  }

  /// A program of `orrery spmd` of a graph that is no model's.
  Result<std::string> run_strategy(Error mistakes) {
    const std::optional<std::string> file = plan_.take("strategy");
    if (!file) {
      mistakes.add({"--strategy", {}, {}, "missing; --graph wants a file of `orrery spmd --save`"});
    }
    refuse_given({{"--chakra", chakra_.given()}, {"--fuse", run_.fuse}}, "contradicts --graph",
                 mistakes);
    const StepInput step = step_.read_machine("--graph", mistakes);
    plan_.refuse("--graph", mistakes);
    check_no_plan("--graph", mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    auto workload = strategy_.read(*file, step.machine, step.devices);
    return workload ? run_workload(*file, std::move(*workload), step.machine, records_spans(), "")
                    : fail(std::move(workload.error()));
  }

  /// `remarks` end the table.
  Result<std::string> run_workload(const std::string& name, graph::Workload workload,
                                   const machine::Machine& machine, bool record_spans,
                                   const std::string& remarks) {
    ProgressBar progress;
    simulate::SimulateOptions how;
    how.fold = run_.fold;
    how.shortcuts = run_.shortcuts;
    how.record_spans = record_spans;
    how.network = run_.network;
    how.record_messages = run_.record_messages;
    how.faults = run_.faults;
    how.progress = [&](double share, std::uint64_t events) { progress.update(share, events); };
    const auto run = study::run_workload(name, std::move(workload), machine, how);
    if (!run) {
      return fail(run.error());
    }
    return write(*run, [&] {
      return json_ ? report::json_of(*run)
                   : report::table_report(*run, {.verbose = verbose_}) + remarks;
    });
  }

  /// Returns what --fuse made of a trace's sums, equal places together.
  static std::string places_of(const std::vector<layout::Fusion>& fusions) {
    std::map<std::string, int> lines;
    for (const layout::Fusion& one : fusions) {
      const std::string outcome = one.reason.empty() ? "fused" : "not, " + one.reason;
      ++lines[fmt::format("{}, {} ranks: {} -> {} a rank: {}", one.role, one.ranks,
                          to_string(one.before), to_string(one.after), outcome)];
    }
    std::string text = "\nSums that leave in messages (--fuse)\n";
    for (const auto& [line, count] : lines) {
      text += fmt::format("  {} x {}\n", count, line);
    }
    return lines.empty() ? "\nNo message carries a sum (--fuse)\n" : text;
  }

  Result<std::string> run_jobs(Error mistakes) {
    refuse_given({{"--chakra", chakra_.given()},
                  {"--graph", strategy_.given()},
                  {"--trace", trace_.given()},
                  {"--telemetry-out", faults_.records()},
                  {"--html", html_.given()},
                  {"--fuse", run_.fuse}},
                 "contradicts --jobs", mistakes);
    plan_.refuse("--jobs", mistakes);
    check_no_plan("--jobs", mistakes);
    const StepInput step = step_.read_machine("--jobs", mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    simulate::SimulateOptions how;
    how.fold = run_.fold;
    how.shortcuts = run_.shortcuts;
    how.network = run_.network;
    how.faults = run_.faults;
    return jobs_.run(step, std::move(how), json_);
  }

  void read_steps(Error& mistakes) {
    constexpr std::int64_t kMostSteps = 1'000'000;
    run_.steps = whole_number("--steps", steps_, 1, kMostSteps, mistakes);
    if (warm_ && *warm_ != "0") {
      run_.warm_steps = whole_number("--warm", warm_, 0, kMostSteps, mistakes);
      if (run_.warm_steps >= run_.steps) {
        mistakes.add(wrong_value("--warm", *warm_,
                                 fmt::format("less than --steps, which is {}", run_.steps)));
      }
    }
  }

  bool records_spans() const { return trace_.given() || faults_.records() || html_.given(); }

  /// Refuses flags that only a plan has.
  void check_no_plan(const char* instead, Error& mistakes) const {
    refuse_given({{"--allow-oom", run_.allow_oom},
                  {"--skip", !skip_.empty()},
                  {"--steps", steps_},
                  {"--warm", warm_},
                  {"--price-per-hour", price_},
                  {"--tokens", tokens_.text()},
                  {"--csv", csv_}},
                 std::string("contradicts ") + instead + ", which has no plan", mistakes);
  }

  void set_price(machine::Machine& machine, Error& mistakes) const {
    if (!price_) {
      return;
    }
    const auto price = parse_value<Money>(*price_);
    if (price && *price >= Money(0)) {
      machine::change_devices(machine,
                              [&](compute::Device& device) { device.price_per_hour = *price; });
    } else {
      mistakes.add(wrong_value("--price-per-hour", *price_, price ? "0 or more" : price.error()));
    }
  }

  void check_skips(Error& mistakes) const {
    std::vector<std::string> names = mapped(parallel::lowering_passes(), &parallel::PassName::name);
    for (const std::string& pass : skip_) {
      if (std::find(names.begin(), names.end(), pass) == names.end()) {
        mistakes.add(
            {"--skip", {}, pass, "a name of `orrery list passes`" + did_you_mean(pass, names)});
      }
    }
  }

  Result<study::Run> simulate(const PlannedStep& step) {
    ProgressBar progress;
    run_.record_spans = records_spans();
    run_.verify_passes = verbose_;
    run_.advise = true;
    run_.skip.insert(skip_.begin(), skip_.end());
    run_.progress = [&](double share, std::uint64_t events) { progress.update(share, events); };
    return study::run_step(step.model, step.machine, step.plan.plan, step.devices, run_);
  }

  /// Writes the side outputs, then makes the text; what cannot be written does not cost the text.
  template <class Run, class Report>
  Result<std::string> write(const Run& run, Report report) const {
    if (auto ended = faults_.conclude(run, run_.faults); !ended) {
      return fail(std::move(ended.error()));
    }
    keep(trace_.write(run));
    return html_.beside(
        report(), [&] { return report::json_of(run); }, [&] { return web::run_extra(run); });
  }

  StepFlags step_;
  ChakraFlags chakra_;
  StrategyFlags strategy_;
  TraceFlag trace_;
  HtmlFlag html_{"simulate"};
  std::optional<std::string> price_;
  TokensFlag tokens_;
  std::optional<std::string> steps_;
  std::optional<std::string> warm_;
  std::vector<std::string> skip_;
  PlanFlags plan_;
  LoopFlags loop_;
  FaultFlags faults_;
  JobsFlag jobs_;
  study::RunOptions run_;
  bool json_ = false;
  bool csv_ = false;
  bool verbose_ = false;
  bool memory_ = false;
};

}  // namespace

std::unique_ptr<Command> make_simulate() {
  return std::make_unique<Simulate>();
}

}  // namespace orrery::cli
