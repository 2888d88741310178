// SPDX-License-Identifier: Apache-2.0
#include "report/estimate.h"

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/plan_flags.h"
#include "cli/step_flags.h"
#include "study/estimate_step.h"

namespace orrery::cli {
namespace {

constexpr const char* kEstimateExamples =
    "The same step as `orrery simulate`, from the costs of its blocks alone: a time that no run "
    "can\n"
    "beat, what it probably takes, and what few runs exceed.\n"
    "Examples:\n"
    "  orrery estimate --model gpt3-175b --machine dgx-a100-80g --plan gpt3-175b-1024\n"
    "  orrery estimate --model llama-3-8b --machine dgx-h100 --plan llama-3-8b-8 --zero 3 --json\n";

class Estimate : public Command {
 public:
  void declare(Options& options) override {
    step_.declare(options);
    options.flag("--json", json_, "print one JSON object");
    plan_.declare(options, true, true);
    options.footer(kEstimateExamples);
  }

  Result<std::string> run(Error mistakes) override {
    const PlannedStep step = read_planned_step(step_, plan_, mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const auto estimate =
        study::estimate_step(step.model, step.machine, step.plan.plan, step.devices);
    if (!estimate) {
      return fail(step.plan.placed(estimate.error()));
    }
    return json_ ? report::json_of(*estimate)
                 : report::estimate_table(
                       fmt::format("{} on {} x {} ({})", step.model.name, estimate->devices,
                                   step.machine.device.name, step.machine.name),
                       *estimate);
  }

 private:
  StepFlags step_;
  PlanFlags plan_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_estimate() {
  return std::make_unique<Estimate>();
}

}  // namespace orrery::cli
