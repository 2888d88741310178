// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "base/file.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/html_flag.h"
#include "cli/interrupt.h"
#include "cli/plan_choices.h"
#include "cli/plan_division.h"
#include "cli/plan_examples.h"
#include "cli/plan_flags.h"
#include "cli/plan_layers.h"
#include "cli/plan_limits.h"
#include "cli/plan_published.h"
#include "cli/plan_vary.h"
#include "cli/progress.h"
#include "cli/step_flags.h"
#include "cli/tokens_flag.h"
#include "planner/advice/launchable.h"
#include "planner/advice/memory_frontier.h"
#include "planner/advice/probe.h"
#include "planner/advice/ties.h"
#include "planner/full/search.h"
#include "planner/full/summary.h"
#include "report/plan_search.h"
#include "web/extra.h"
#include "workload/interop/capabilities.h"
#include "workload/plan/recompute.h"

namespace orrery::cli {
namespace {

class PlanCommand : public Command {
 public:
  void declare(Options& options) override {
    step_.declare(options);
    limits_.declare(options);
    options.values("--only", only_, "FIELD=VALUE,...",
                   "values to try of a field; may be repeated; 'stage_layers=5,3;4,4' has two");
    options.values("--fix", fix_, "FIELD=VALUE", "a field's value, as the flags below");
    options.value("--reserve", reserve_, "BYTES",
                  "of a device's memory to leave free; default 2 GiB");
    options.value("--max-memory", most_memory_, "BYTES", "of a device to use at the most");
    options.value("--objective", objective_, "{time,tokens_per_joule,cost,headroom}",
                  "what the best plan has least of: time, energy or money per token, or memory of "
                  "those within 5 % of the fastest; default time");
    options.value("--power-budget", power_budget_, "POWER",
                  "what all devices may draw together: each is held to its share");
    published_.declare(options);
    options.value("--layer-costs", layer_costs_, "FILE",
                  "what each layer takes under each strategy: the fastest within --max-memory");
    options.output("--save", save_, "FILE", "write the best plan");
    options.output("--export", export_, "FILE|DIR",
                   "write the best plan as --framework starts it: launch.sh, nemo.yaml, job.toml "
                   "or ds_config.json");
    options.flag("--explain", explain_,
                 "also time against memory, and what every other choice would cost");
    options.output(
        "--plot", plot_, "FILE.svg",
        "with --explain step time over memory, with --vary tokens/s over what is varied");
    options.flag("--regret", regret_,
                 "also how much worse than the best each plan is where a rate is 20 % off");
    options.flag("--minmax-regret", minmax_regret_,
                 "choose the plan whose worst regret is least, instead of the fastest");
    options.flag("--elastic", elastic_, "also the best plan with a node less");
    tokens_.declare(options, "also days, money and energy of training on so many: 15T, 300B");
    also_.declare(options);
    vary_.declare(options);
    html_.declare(options);
    options.flag("--json", json_, "print one JSON object");
    plan_.declare(options, true, false);
    options.footer(kPlanExamples);
  }

  bool ends_early() const override { return true; }
  Result<std::string> run(Error mistakes) override {
    full::Options options = limits_.read(mistakes);
    published_.check(mistakes);
    if (published_.given()) {
      return published(options, std::move(mistakes));
    }
    if (layer_costs_) {
      plan_.refuse("--layer-costs", mistakes);
      if (has_task() || limits_.given()) {
        mistakes.add({"--layer-costs", {}, {}, "goes with --max-memory and --json alone"});
      }
      return plan_layers(*layer_costs_, most_memory_, json_, std::move(mistakes));
    }
    full::Task task = read_task(mistakes);
    options.reserve = read_reserve(reserve_, most_memory_, task.machine, mistakes);
    options.objective = objective(task.machine, mistakes);
    check_combinations(task, options, mistakes);
    const double tokens = tokens_.read(mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    tell_long_sequence(task.model, task.fixed.plan);
    if (most_memory_ && !task.machine.parts.empty()) {
      const auto most = parse_value<Bytes>(*most_memory_);  // which each of them may have less of
      options.reserve = Bytes(0);
      advice::use_memory(task, options, *most);
    }
    if (also_.given()) {
      return also_.run(step_.names().model, task, tokens, options, json_);
    }
    if (vary_.given()) {
      return vary_.run(step_.names(), task, options, plot_, json_);
    }
    return search(task, options);
  }

  int status() const override { return status_; }

 private:
  /// Plans within so much of the fastest are as fast: identical settings differ by more.
  static constexpr double kSimpleWithin = 0.005;

  /// Reads what is asked for.
  full::Task read_task(Error& mistakes) const {
    const StepInput step = step_.read(mistakes);
    full::Task task{.model = step.model,
                    .machine = step.machine,
                    .devices = step.devices,
                    .fixed = plan_.placed_plan(mistakes)};
    read_choices(fix_, only_, task, mistakes);
    const bool varies_parts = vary_.varies("machine.parts.");
    if (varies_parts && mistakes.empty() && step_.given() && step.machine.parts.empty()) {
      mistakes.add(
          {"--vary", {}, "parts", "a field of " + step.machine.name + ": it has no parts"});
    }
    if (step.devices == 0 && step_.given() && !vary_.varies("devices") && !varies_parts &&
        std::ranges::find(mistakes.mistakes, "--devices", &Mistake::where) ==
            mistakes.mistakes.end()) {
      mistakes.add({"--devices", {}, {}, "missing; expected how many accelerators to plan for"});
    }
    if (!task.fixed.places.contains("global_batch")) {
      if (vary_.varies("devices") || varies_parts) {
        mistakes.add({"--batch", {}, {}, "missing; --vary devices wants sequences per step"});
      } else if (also_.given()) {
        mistakes.add({"--batch", {}, {}, "missing; --also wants sequences per step"});
      }
      use_default_batch(task, mistakes);
    }
    if (task.fixed.places.contains("recompute_modules") && mistakes.empty()) {
      // What no model has every plan would be refused for, after a whole search.
      if (auto known = plan::check_recompute(task.fixed.plan, task.model); !known) {
        mistakes.add(task.fixed.placed(std::move(known.error())));
      }
    }
    if (interop::launcher_named(task.fixed.plan.framework) != nullptr) {
      task.launcher = task.fixed.plan.framework;
    } else if (export_) {
      mistakes.add({"--export", {}, {}, "goes with --framework " + interop::launcher_names()});
    }
    hold_power(power_budget_, task, mistakes);
    return task;
  }

  /// Flags that contradict each other.
  void check_combinations(const full::Task& task, const full::Options& options,
                          Error& mistakes) const {
    if (plot_ && !explain_ && !vary_.given()) {
      mistakes.add({"--plot", {}, {}, "goes with --explain or --vary"});
    }
    const bool vary = vary_.given();
    const std::string of_one = listed_flags({{explain_, "--explain"},
                                             {regret_, "--regret"},
                                             {minmax_regret_, "--minmax-regret"},
                                             {elastic_, "--elastic"},
                                             {html_.given(), "--html"},
                                             {save_.has_value(), "--save"},
                                             {export_.has_value(), "--export"},
                                             {vary && power_budget_, "--power-budget"},
                                             {vary && tokens_.given(), "--tokens"},
                                             {vary && also_.given(), "--also"}});
    if (vary && !of_one.empty()) {
      mistakes.add({"--vary", {}, {}, "is of many machines; one machine has " + of_one});
    } else if (also_.given() && !of_one.empty()) {
      mistakes.add({"--also", {}, {}, "is of several models; one model has " + of_one});
    }
    also_.check(task, options, tokens_.given(), mistakes);
    const std::string limits = listed_flags({{limits_.has_top(), "--top"},
                                             {limits_.has_simulations(), "--simulations"},
                                             {limits_.has_bounds(), "--bounds"},
                                             {limits_.is_exhaustive(), "--exhaustive"}});
    if ((vary || also_.given()) && !limits.empty()) {
      mistakes.add({vary ? "--vary" : "--also", {}, {}, "goes without " + limits});
    }
    const bool one_memory = task.machine.parts.empty() && !vary_.varies("machine") &&
                            !vary_.varies("machine.device.memory.");
    if (most_memory_ && vary && !one_memory) {
      mistakes.add(
          {"--max-memory", {}, {}, "is of one device; give --reserve where memories differ"});
    }
    if ((regret_ || minmax_regret_) && options.objective != full::Objective::time) {
      mistakes.add({"--objective", {}, {}, "regret is of step times; choose one"});
    }
  }

  /// Returns whether flags say what --table and --layer-costs say themselves.
  bool has_task() const {
    return step_.given() || save_ || html_.given() || explain_ || plot_ || regret_ ||
           minmax_regret_ || elastic_ || also_.given() || vary_.given() || !only_.empty() ||
           !fix_.empty() || reserve_ || objective_ || export_ || power_budget_ || tokens_.given();
  }

  Result<std::string> published(const full::Options& options, Error mistakes) const {
    plan_.refuse("--table", mistakes);
    if (has_task() || limits_.has_top() || most_memory_ || layer_costs_) {
      mistakes.add(
          {"--table", {}, {}, "gives the work itself; only how long to search may be said"});
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return published_.run(options, json_);
  }

  Result<std::string> search(const full::Task& task, full::Options& options) {
    ProgressBar bar("planning");
    options.go_on = [&] {
      bar.update(0);  // how many plans will have to be looked at is not known
      return Interrupt::going_on();
    };
    const auto begin = std::chrono::steady_clock::now();
    full::Options simple_first = options;
    simple_first.simple_within = kSimpleWithin;
    auto answer = full::search(task, simple_first);
    report::PlanDetails details;
    if (task.machine.parts.empty() && (!answer || answer->fits_nowhere())) {
      ProgressBar looking("what would help");
      details.remedies =
          advice::remedies(task, options, answer, [&](double share) { looking.update(share); });
    }
    if (!answer) {
      Error mistakes = task.fixed.placed(answer.error());
      for (const std::string& remedy : report::remedy_lines(details.remedies)) {
        mistakes.add(Error("what would help: " + remedy));
      }
      return fail(std::move(mistakes));
    }
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    answer->wall_s = wall.count();  // with the searches for remedies
    if (answer->top.empty()) {
      return nothing_found(task, *answer, details);
    }
    ask(task, options, *answer, details);
    const auto whole = tokens_.whole_run(task, answer->top.front().plan);
    if (!whole) {
      return fail(whole.error());
    }
    details.whole_run = whole->plan;
    if (auto launched = say_how_to_launch(task, *answer, details); !launched) {
      return fail(std::move(launched.error()));
    }
    const plan::Plan& best = answer->top.front().plan;
    if (save_) {
      keep(write_file(
          *save_, fmt::format("# For {} on {} x {}, found by `orrery plan`.\n{}", task.model.name,
                              task.devices, task.machine.name, plan::to_yaml(best))));
    }
    if (plot_) {
      const auto svg = report::frontier_plot(full::summary(best), *details.frontier);
      if (!svg) {
        return fail(svg.error());
      }
      keep(write_file(*plot_, *svg));
    }
    const auto json = [&] { return report::plan_search_json(task, *answer, details); };
    return html_.beside(
        json_ ? json() : report::plan_search_table(task, *answer, details) + whole->table, json,
        [&] {
          return web::nearest_extra({{&task.model, &task.machine, best}});
        });
  }

  /// Says which frameworks run the best plan, its launch where one is asked for, and which of the
  /// others cannot be told from it.
  Result<void> say_how_to_launch(const full::Task& task, const full::Answer& answer,
                                 report::PlanDetails& details) {
    const plan::Plan& best = answer.top.front().plan;
    details.frameworks = advice::launchable(best, task.model);
    if (auto ties = advice::ties(task, answer)) {
      details.ties = std::move(*ties);
    } else {
      return fail(std::move(ties.error()));
    }
    if (!export_) {
      return {};
    }
    return advice::launch(task, best, step_.names().model, *export_)
        .map([&](advice::Launch launch) {
          keep(write_file(launch.file, launch.text));
          details.launch = std::move(launch);
        });
  }

  /// Computes what was asked beside the best plan.
  void ask(const full::Task& task, const full::Options& options, full::Answer& answer,
           report::PlanDetails& details) const {
    const auto part = [&](const char* what, const auto& answer_it) {
      ProgressBar bar(what);
      full::Options own = options;
      own.go_on = Interrupt::going_on;
      answer_it(own, [&](double share) { bar.update(share); });
    };
    if (regret_ || minmax_regret_) {
      part("rates", [&](const full::Options& own, const advice::Progress& progress) {
        details.regret = advice::regret_table(task, own, answer, progress);
      });
    }
    if (minmax_regret_) {
      advice::choose(answer, details.regret->plans.front().plan);
    }
    if (explain_ || options.objective == full::Objective::headroom) {
      part("memory", [&](const full::Options& own, const advice::Progress& progress) {
        details.frontier = advice::memory_frontier(task, own, answer, progress);
      });
    }
    if (explain_) {
      part("choices", [&](const full::Options& own, const advice::Progress& progress) {
        details.decisions = advice::decisions(task, own, answer, progress);
      });
    }
    if (options.objective == full::Objective::headroom) {
      advice::choose(answer, advice::most_free(*details.frontier));
    }
    if (elastic_) {
      details.elastic = advice::elastic(task, options, answer);
    }
  }

  /// Text or JSON, and a status that says so.
  Result<std::string> nothing_found(const full::Task& task, const full::Answer& answer,
                                    const report::PlanDetails& details) {
    if (json_) {
      status_ = 2;
      return report::plan_search_json(task, answer, details);
    }
    Error error;
    std::istringstream lines(report::plan_search_table(task, answer, details));
    for (std::string line; std::getline(lines, line);) {
      error.add(Error(std::move(line)));
    }
    return fail(std::move(error));
  }

  full::Objective objective(const machine::Machine& machine, Error& mistakes) const {
    const auto value = parse_value<full::Objective>(objective_.value_or("time"));
    if (!value) {
      mistakes.add(wrong_value("--objective", *objective_, value.error()));
      return full::Objective::time;
    }
    if (step_.given()) {
      collect(full::check_objective(*value, machine), mistakes);
    }
    return *value;
  }

  StepFlags step_;
  PlanFlags plan_;
  AlsoFlag also_;
  VaryFlags vary_;
  PlanLimits limits_;
  TokensFlag tokens_;
  PublishedFlags published_;
  HtmlFlag html_{"plan"};
  std::optional<std::string> reserve_;
  std::optional<std::string> most_memory_;
  std::optional<std::string> save_;
  std::optional<std::string> export_;
  std::optional<std::string> power_budget_;
  std::optional<std::string> layer_costs_;
  std::optional<std::string> objective_;
  std::vector<std::string> only_;
  std::vector<std::string> fix_;
  std::optional<std::string> plot_;
  bool explain_ = false;
  bool regret_ = false;
  bool minmax_regret_ = false;
  bool elastic_ = false;
  bool json_ = false;
  int status_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_plan() {
  return std::make_unique<PlanCommand>();
}

}  // namespace orrery::cli
