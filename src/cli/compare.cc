// SPDX-License-Identifier: Apache-2.0
#include "study/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/split.h"
#include "cli/chakra_flags.h"
#include "cli/commands.h"
#include "cli/html_flag.h"
#include "cli/measured_files.h"
#include "cli/network_flag.h"
#include "cli/progress.h"
#include "cli/step_flags.h"
#include "report/compare.h"
#include "report/measured.h"
#include "report/report.h"
#include "study/rescale.h"
#include "study/run.h"
#include "study/sweep/config_path.h"
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
    "work, and what to calibrate. --chakra does so with execution traces that run on the machine.\n"
    "With --rescale also the step of another plan, whose kernels are off by as much as measured.\n"
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
    "  orrery compare one.yaml --model gpt2 --machine dgx-a100-80g --measured 'rank*.json'\n"
    "  orrery compare eight.yaml --model gpt2 --machine dgx-a100-80g --chakra trace/gpt2 \\\n"
    "                  --groups trace/gpt2.groups.json --rescale tp=2,pp=1,dp=8,global_batch=16\n";

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
    chakra_.declare(options);
    options.value("--rescale", rescale_, "FIELD=VALUE,...",
                  "with --measured or --chakra: also the step of the plan with these fields");
    html_.declare(options);
    options.flag("--json", json_, "print one JSON object");
    options.footer(kCompareExamples);
  }

  Result<std::string> run(Error mistakes) override {
    const std::vector<simulate::NetworkModel> networks = read_networks(mistakes);
    if (measured_ || chakra_.given()) {
      return beside_measured(networks.front(), std::move(mistakes));
    }
    refuse_given({{"--measured-steps", measured_steps_}}, "goes with --measured", mistakes);
    refuse_given({{"--rescale", rescale_}}, "goes with --measured or --chakra", mistakes);
    chakra_.check(mistakes);
    if (runs_.empty()) {
      mistakes.add(
          {"RUN", {}, {}, "missing; expected plans, or what `orrery simulate --json` wrote"});
    } else if (runs_.size() * networks.size() * step_.machines() < 2) {
      mistakes.add(wrong_value("compare", runs_.front(),
                               "two or more runs, or one with --networks or several --machine"));
    }
    std::vector<ConfigNode> documents;
    for (const std::string& name : runs_) {
      if (auto document = kept(load(name), mistakes)) {
        documents.push_back(std::move(*document));
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
  /// Returns --measured-steps. What contradicts --measured and --chakra is a mistake.
  std::int64_t check_measured(Error& mistakes) const {
    refuse_given({{"--networks", networks_}}, "contradicts --measured and --chakra: one network",
                 mistakes);
    if (html_.given()) {
      mistakes.add({"--html", {}, {}, "contradicts --measured and --chakra, which have no page"});
    }
    if (measured_ && chakra_.given()) {
      mistakes.add({"--chakra", {}, {}, "contradicts --measured: one of them was measured"});
    }
    refuse_given({{"--measured-steps", measured_steps_ && !measured_}}, "goes with --measured",
                 mistakes);
    if (runs_.size() != 1 || step_.machines() > 1) {
      mistakes.add(
          {"compare", {}, {}, "--measured and --chakra go with one plan and one --machine"});
    }
    return whole_number("--measured-steps", measured_steps_, 0, 1'000'000, mistakes);
  }

  Result<std::string> beside_measured(simulate::NetworkModel network, Error mistakes) {
    const std::int64_t steps = check_measured(mistakes);
    if (runs_.size() != 1 || step_.machines() > 1) {
      return fail(std::move(mistakes));
    }
    std::vector<study::RankActivities> ranks;
    if (measured_) {
      ranks = collect(read_measured(*measured_), mistakes);
    }
    const std::vector<StepInput> input = step_.read_each(mistakes);
    auto document = load(runs_.front());
    const auto plan = document ? plan::parse_placed_plan(*document)
                               : Result<plan::PlacedPlan>(fail(std::move(document.error())));
    if (!plan) {
      mistakes.add(plan.error());
    }
    const plan::PlacedPlan other =
        plan ? rescaled_plan(std::move(*document), mistakes) : plan::PlacedPlan();
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const StepInput& step = input.front();
    run_.network = network;
    run_.record_spans = true;
    const auto run = run_plan(step, *plan, step.devices);
    if (!run) {
      return fail(run.error());
    }
    const study::StepTimes simulated = study::times_of(*run);
    const auto measured = chakra_.given() ? times_of_traces(step, *run, simulated)
                                          : Result<study::StepTimes>(study::times_of(ranks, steps));
    if (!measured) {
      return fail(measured.error());
    }
    study::MeasuredComparison comparison = study::compare_measured(*measured, simulated);
    comparison.model = run->model.name;
    comparison.machine = run->machine.name;
    if (chakra_.given()) {
      comparison.files.push_back(chakra_.name());
    }
    for (const study::RankActivities& rank : ranks) {
      comparison.files.push_back(rank.file);
    }
    if (rescale_) {
      const bool open = !other.places.contains("dp");  // then it follows from the devices
      const auto changed = run_plan(step, other, open ? step.devices : 0);
      if (!changed) {
        return fail(changed.error());
      }
      auto rescaled = study::rescale(*measured, simulated, *changed);
      if (!rescaled) {
        return fail(std::move(rescaled.error()));
      }
      comparison.rescaled = std::move(*rescaled);
      comparison.rescaled->fields = *rescale_;
    }
    return json_ ? report::json_of(comparison) : report::measured_table(comparison);
  }

  Result<study::Run> run_plan(const StepInput& step, const plan::PlacedPlan& open,
                              std::int64_t devices) const {
    const plan::Plan plan = plan::complete(open, &step.model, &step.machine, devices);
    return study::run_step(step.model, step.machine, plan, devices, run_)
        .map_error([&](Error error) { return open.placed(std::move(error)); });
  }

  /// Runs the traces of --chakra on the machine. Kernels that the plan has too are of its classes.
  Result<study::StepTimes> times_of_traces(const StepInput& step, const study::Run& run,
                                           const study::StepTimes& simulated) const {
    auto workload = chakra_.read(step.machine, step.devices);
    if (!workload) {
      return fail(std::move(workload.error()));
    }
    if (workload->ranks != run.devices) {
      return fail(Error(wrong_value("--chakra", fmt::format("{} ranks", workload->ranks),
                                    fmt::format("{}, which the plan needs", run.devices))));
    }
    return study::run_workload(chakra_.name(), std::move(*workload), step.machine,
                               {.record_spans = true, .network = run_.network})
        .map([&](const study::WorkloadRun& traced) {
          return study::times_of(traced, simulated.kernels);
        });
  }

  /// Returns the plan of `document` with the fields of --rescale.
  plan::PlacedPlan rescaled_plan(ConfigNode document, Error& mistakes) const {
    if (!rescale_) {
      return {};
    }
    std::string text;
    for (const std::string_view item : split_at(*rescale_, ',')) {
      const std::size_t equals = item.find('=');
      if (equals == std::string_view::npos || equals == 0) {
        mistakes.add(wrong_value("--rescale", *rescale_, "fields of a plan such as tp=4,dp=2"));
        return {};
      }
      text += fmt::format("{}: {}\n", item.substr(0, equals), item.substr(equals + 1));
    }
    const ConfigNode fields =
        collect(parse_config(text, "--rescale", ConfigSyntax::yaml), mistakes);
    for (const ConfigField& field : fields.fields) {
      collect(sweep::set_field(document, field.name, field.value), mistakes);
    }
    return collect(plan::parse_placed_plan(document), mistakes);
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

  /// A file of whatever name, or a shipped plan. JSON begins with a brace, unless named YAML.
  static Result<ConfigNode> load(const std::string& name) {
    std::error_code ignored;
    const auto path = std::filesystem::exists(name, ignored) ? Result<std::string>(name)
                                                             : find_config("plans", name);
    return path.map_error([&](Error error) { return of_flag("compare", name, std::move(error)); })
        .and_then([](const std::string& file) { return read_file(file); })
        .and_then([&](const std::string& text) {
          const std::size_t first = text.find_first_not_of(" \t\r\n");
          const bool json = first != std::string::npos && text[first] == '{' &&
                            !path->ends_with(".yaml") && !path->ends_with(".yml");
          return parse_config(text, *path, json ? ConfigSyntax::json : ConfigSyntax::yaml);
        });
  }

  /// Returns whether any field of the document is one of a plan's.
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

  /// Simulates a plan and reads its report, so that it is compared as its file would be.
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
  ChakraFlags chakra_;
  std::optional<std::string> rescale_;
  study::RunOptions run_;
  HtmlFlag html_{"compare"};
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_compare() {
  return std::make_unique<Compare>();
}

}  // namespace orrery::cli
