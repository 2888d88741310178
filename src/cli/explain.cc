// SPDX-License-Identifier: Apache-2.0
#include "study/explain.h"

#include "cli/chakra_flags.h"
#include "cli/commands.h"
#include "cli/html_flag.h"
#include "cli/loop_flags.h"
#include "cli/plan_flags.h"
#include "cli/progress.h"
#include "cli/step_flags.h"
#include "report/explain.h"
#include "web/extra.h"

namespace orrery::cli {
namespace {

constexpr const char* kExplainExamples =
    "Examples:\n"
    "  orrery explain --model gpt3-175b --machine dgx-a100-80g --plan gpt3-175b-1024\n"
    "  orrery explain --model llama-3-8b --machine dgx-h100 --plan llama-3-8b-8 --items 30\n"
    "  orrery explain --model llama-3-70b --machine dgx-h100 --plan llama-3-70b-512 --json\n"
    "  orrery explain --chakra traces/step --groups traces/step.groups.json --machine dgx-h100\n";

class Explain : public Command {
 public:
  void declare(Options& options) override {
    step_.declare(options);
    step_.declare_topology(options);
    chakra_.declare(options);
    loop_.declare(options);
    options.flag("--no-next", no_next_, "do not look for the next bottleneck (most of the time)");
    options.value("--items", items_, "INT", "longest items to name; default 10");
    options.value("--threads", threads_, "INT", "simulations at once; default: one per processor");
    html_.declare(options);
    options.flag("--json", json_, "print one JSON object");
    plan_.declare(options, true, true);
    options.footer(kExplainExamples);
  }

  Result<std::string> run(Error mistakes) override {
    constexpr int kItems = 10;
    chakra_.check(mistakes);
    const std::int64_t items = whole_number("--items", items_, kItems, INT64_MAX, mistakes);
    how_.threads = thread_count(threads_, 0, mistakes);
    loop_.read(how_, mistakes);
    how_.next_bottleneck = !no_next_;
    ProgressBar bar("explaining");
    how_.progress = [&](double share) { bar.update(share); };
    const auto explanation =
        chakra_.given() ? explain_traces(std::move(mistakes)) : explain_plan(std::move(mistakes));
    if (!explanation) {
      return fail(explanation.error());
    }
    const auto json = [&] { return report::json_of(*explanation); };
    return html_.beside(
        json_ ? json() : report::explanation_table(*explanation, static_cast<std::size_t>(items)),
        json, [&] {
          return web::run_extra(explanation->run, &model_,
                                explanation->plan ? &*explanation->plan : nullptr);
        });
  }

 private:
  Result<study::Explanation> explain_plan(Error mistakes) {
    const PlannedStep step = read_planned_step(step_, plan_, mistakes);
    model_ = step.model;
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    auto explanation = study::explain(step.model, step.machine, step.plan.plan, step.devices, how_);
    return explanation ? std::move(explanation)
                       : fail(step.plan.placed(std::move(explanation.error())));
  }

  Result<study::Explanation> explain_traces(Error mistakes) const {
    const StepInput step = step_.read_machine("--chakra", mistakes);
    plan_.refuse("--chakra", mistakes);
    refuse_given({{"--allow-oom", how_.allow_oom}}, "contradicts --chakra, which has no plan",
                 mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const auto workload = chakra_.read(step.machine, step.devices);
    if (!workload) {
      return fail(workload.error());
    }
    return study::explain(chakra_.name(), *workload, step.machine, how_);
  }

  StepFlags step_;
  ChakraFlags chakra_;
  PlanFlags plan_;
  zoo::Model model_;
  study::ExplainOptions how_;
  std::optional<std::string> items_;
  std::optional<std::string> threads_;
  LoopFlags loop_;
  HtmlFlag html_{"explain"};
  bool no_next_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_explain() {
  return std::make_unique<Explain>();
}

}  // namespace orrery::cli
