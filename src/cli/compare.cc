// SPDX-License-Identifier: Apache-2.0
#include "study/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/split.h"
#include "cli/commands.h"
#include "cli/html_flag.h"
#include "cli/measured_files.h"
#include "cli/network_flag.h"
#include "cli/progress.h"
#include "cli/step_flags.h"
#include "report/compare.h"
#include "report/measured.h"
#include "report/report.h"
#include "study/run.h"
#include "web/extra.h"
#include "workload/plan/aliases.h"
#include "workload/plan/defaults.h"

namespace orrery::cli {
namespace {

constexpr const char* kCompareExamples =
    "A run is a file that `orrery simulate --json` wrote, or a plan (a file, or a name of\n"
    "`orrery list plans`), which is simulated with --model and --machine. With --networks or "
    "two\n"
    "--machine one plan is enough: every plan is simulated on each of them.\n"
    "With --measured one plan is simulated beside what devices did: where they differ by class of\n"
    "work, and what to calibrate.\n"
    "Examples:\n"
    "  orrery simulate --model gpt3-175b --machine dgx-a100-80g --plan gpt3-175b-1024 --json > "
    "a.json\n"
    "  orrery simulate --model gpt3-175b --machine dgx-a100-80g --plan gpt3-175b-1024 \\\n"
    "                  --recompute full --json > b.json\n"
    "  orrery compare a.json b.json\n"
    "  orrery compare one.yaml two.yaml three.yaml --model llama-3-8b --machine dgx-h100 --json\n"
    "  orrery compare llama-3-8b-8 --model llama-3-8b --machine dgx-h100 --machine dgx-h200\n"
    "  orrery compare llama-3-8b-8 --model llama-3-8b --machine dgx-h100 --networks\n"
    "  orrery compare one.yaml --model gpt2 --machine dgx-a100-80g --networks ports,flow\n"
    "  orrery compare one.yaml --model gpt2 --machine dgx-a100-80g --measured 'rank*.json'\n";

class Compare : public Command {
 public:
  void declare(Options& options) override {
    options.positionals(
        "RUN", runs_,
        "two or more: reports or plans (also of `orrery list plans`); with --networks or several "
        "--machine one or more");
    step_.declare_each(options);
    step_.declare_topology(options);
    options.flag("--allow-oom", run_.allow_oom,
                 "also plans of which a stage does not fit in memory");
    options.value_or("--networks", networks_, "MODEL,...", usual_networks(),
                     "simulate plans on each of these; default " + usual_networks());
    options.value("--measured", measured_, "FILES",
                  "beside traces of torch.profiler or databases of Nsight Systems, several by *");
    options.value("--measured-steps", measured_steps_, "INT",
                  "that each has; default: as its annotations say");
    html_.declare(options);
    options.flag("--json", json_, "print one JSON object");
    options.footer(kCompareExamples);
  }

  Result<std::string> run(Error mistakes) override {
    const std::vector<simulate::NetworkModel> networks = read_networks(mistakes);
    if (measured_) {
      return beside_measured(networks.front(), std::move(mistakes));
    }
    refuse_given({{"--measured-steps", measured_steps_}}, "goes with --measured", mistakes);
    if (runs_.empty()) {
      mistakes.add(
          {"RUN", {}, {}, "missing; expected plans, or what `orrery simulate --json` wrote"});
    } else if (runs_.size() * networks.size() * step_.machines() < 2) {
      mistakes.add(wrong_value("compare", runs_.front(),
                               "two or more runs, or one with --networks or several --machine"));
    }
    std::vector<ConfigNode> documents;
    for (const std::string& name : runs_) {
      if (auto document = load(name)) {
        documents.push_back(std::move(*document));
      } else {
        mistakes.add(std::move(document.error()));
      }
    }
    const bool plans = (runs_.empty() && step_.given()) ||
                       std::any_of(documents.begin(), documents.end(), is_plan);
    const std::vector<StepInput> steps =
        plans ? step_.read_each(mistakes) : std::vector<StepInput>(1);
    if (!plans && mistakes.empty() && (step_.given() || networks_ || run_.allow_oom)) {
      mistakes.add(
          {"compare",
           {},
           {},
           "all of these are runs, which have been simulated: --model, --machine, "
           "--devices, --topology, --power-cap, --networks and --allow-oom are for plans"});
    }
    std::vector<study::RunFigures> runs;
    for (const ConfigNode& document : documents) {
      const std::size_t machines = is_plan(document) ? steps.size() : 1;
      for (std::size_t i = 0; i < machines * networks.size(); ++i) {
        if (i == 0 || is_plan(document)) {
          run_.network = networks[i % networks.size()];
          runs.push_back(figures_of(document, steps[i / networks.size()], mistakes));
        }
      }
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const study::Comparison comparison = study::compare(std::move(runs));
    const auto json = [&] { return report::json_of(comparison); };
    return html_.beside(json_ ? json() : report::comparison_table(comparison), json,
                        [&] { return web::nearest_extra(planned_); });
  }

 private:
  Result<std::string> beside_measured(simulate::NetworkModel network, Error mistakes) {
    refuse_given({{"--networks", networks_}}, "contradicts --measured: one network", mistakes);
    if (html_.given()) {
      mistakes.add({"--html", {}, {}, "contradicts --measured, which has no page"});
    }
    const std::int64_t steps =
        whole_number("--measured-steps", measured_steps_, 0, 1'000'000, mistakes);
    if (runs_.size() != 1 || step_.machines() > 1) {
      mistakes.add({"compare", {}, {}, "--measured goes with one plan and one --machine"});
      return fail(std::move(mistakes));
    }
    const auto ranks = collect(read_measured(*measured_), mistakes);
    const std::vector<StepInput> input = step_.read_each(mistakes);
    plan::PlacedPlan plan =
        collect(load(runs_.front()).and_then(plan::parse_placed_plan), mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const StepInput& step = input.front();
    plan.plan = plan::complete(plan, &step.model, &step.machine, step.devices);
    run_.network = network;
    run_.record_spans = true;
    const auto run = study::run_step(step.model, step.machine, plan.plan, step.devices, run_);
    if (!run) {
      return fail(plan.placed(run.error()));
    }
    study::MeasuredComparison comparison =
        study::compare_measured(study::times_of(ranks, steps), study::times_of(*run));
    comparison.model = run->model.name;
    comparison.machine = run->machine.name;
    for (const study::RankActivities& rank : ranks) {
      comparison.files.push_back(rank.file);
    }
    return json_ ? report::json_of(comparison) : report::measured_table(comparison);
  }

  /// All but packets: minutes for a plan that the others run in milliseconds.
  static std::string usual_networks() {
    std::string text;
    for (const simulate::NetworkRow& network : simulate::networks()) {
      if (!network.by_byte) {
        text += fmt::format("{}{}", text.empty() ? "" : ",", network.name);
      }
    }
    return text;
  }

  /// Returns the network models of --networks in its order; ports without it.
  std::vector<simulate::NetworkModel> read_networks(Error& mistakes) const {
    std::vector<simulate::NetworkModel> networks;
    const std::string names = networks_.value_or("ports");
    for (const std::string_view name : split_at(names, ',')) {
      networks.push_back(network_named("--networks", std::string(name), mistakes));
    }
    return networks;
  }

  /// A file of whatever name, or a shipped plan. JSON begins with a brace.
  static Result<ConfigNode> load(const std::string& name) {
    std::error_code ignored;
    const auto path = std::filesystem::exists(name, ignored) ? Result<std::string>(name)
                                                             : find_config("plans", name);
    return path.map_error([&](Error error) { return of_flag("compare", name, std::move(error)); })
        .and_then([](const std::string& file) { return read_file(file); })
        .and_then([&](const std::string& text) {
          const std::size_t first = text.find_first_not_of(" \t\r\n");
          const bool json = first != std::string::npos && text[first] == '{';
          return parse_config(text, *path, json ? ConfigSyntax::json : ConfigSyntax::yaml);
        });
  }

  /// Whether any field of the document is one of a plan's.
  static bool is_plan(const ConfigNode& document) {
    bool any = false;
    plan::Plan::fields([&](std::string_view field, auto, std::string_view) {
      any = any || document.find(field) != nullptr;
    });
    for (const plan::Alias& alias : plan::kAliases) {
      any = any || document.find(alias.name) != nullptr;
    }
    return any && !study::is_run(document);
  }

  /// Plans are simulated once there are no mistakes.
  study::RunFigures figures_of(const ConfigNode& document, const StepInput& step, Error& mistakes) {
    if (study::is_run(document)) {
      return collect(study::parse_run(document), mistakes);
    }
    if (!is_plan(document)) {
      mistakes.add({document.file(),
                    {},
                    {},
                    "neither a run nor a plan; expected what `orrery simulate --json` writes, or "
                    "a plan"});
      return {};
    }
    plan::PlacedPlan plan = collect(plan::parse_placed_plan(document), mistakes);
    if (!mistakes.empty()) {
      return {};
    }
    plan.plan = plan::complete(plan, &step.model, &step.machine, step.devices);
    planned_.push_back({&step.model, &step.machine, plan.plan});
    auto figures = simulate(step, plan.plan, document.file());
    if (!figures) {  // several plans are there: say whose mistake it is
      figures = fail(plan.placed(std::move(figures.error())));
      for (Mistake& mistake : figures.error().mistakes) {
        mistake.where = mistake.where.empty() ? document.file() : mistake.where;
      }
    }
    return collect(std::move(figures), mistakes);
  }

  /// Through its report, so that a plan is compared as its file would be.
  Result<study::RunFigures> simulate(const StepInput& step, const plan::Plan& plan,
                                     const std::string& source) {
    ProgressBar bar;
    run_.progress = [&](double share, std::uint64_t events) { bar.update(share, events); };
    return study::run_step(step.model, step.machine, plan, step.devices, run_)
        .and_then([&](const study::Run& run) {
          return parse_config(report::json_of(run), source, ConfigSyntax::json);
        })
        .and_then(study::parse_run);
  }

  std::vector<std::string> runs_;
  StepFlags step_;
  std::optional<std::string> networks_;
  std::vector<web::PlannedRun> planned_;  ///< those that are simulated, while run() has its steps
  std::optional<std::string> measured_;
  std::optional<std::string> measured_steps_;
  study::RunOptions run_;
  HtmlFlag html_{"compare"};
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_compare() {
  return std::make_unique<Compare>();
}

}  // namespace orrery::cli
