// SPDX-License-Identifier: Apache-2.0
#include "study/run_plan.h"

#include "cli/commands.h"
#include "cli/plain_fields.h"
#include "cli/plan_flags.h"
#include "cli/step_flags.h"
#include "cli/tokens_flag.h"
#include "report/goodput.h"

namespace orrery::cli {
namespace {

constexpr const char* kRunPlanExamples =
    "A whole training run from one simulated step: days, money, energy, checkpoints, failures.\n"
    "Examples:\n"
    "  orrery run-plan --tokens 15T --model llama-3.1-405b --machine dgx-h100 --plan "
    "llama-3.1-405b-16384 \\\n"
    "                  --mtbf '50677 h' --checkpoint-cost 60s --restart 600s\n"
    "  orrery run-plan --tokens 300B --model llama-3-8b --machine aws-p5 --devices 64 --json\n";

class RunPlanned : public Command {
 public:
  void declare(Options& options) override {
    tokens_.declare(options, "to train on: 15T, 300B or 1.5e12");
    step_.declare(options);
    options.value("--price-per-hour", price_, "MONEY",
                  "of one device, instead of the machine's: 2.5 or '2.5 USD'");
    options.value("--pue", pue_, "NUMBER",
                  "energy of the site for each joule of the devices; default 1");
    options.flag("--json", json_, "print one JSON object");
    options.group("Failures and checkpoints");
    fields_.declare(options);
    plan_.declare(options, true, true);
    options.footer(kRunPlanExamples);
  }

  Result<std::string> run(Error mistakes) override {
    PlannedStep step = read_planned_step(step_, plan_, mistakes);
    if (!tokens_.given()) {
      mistakes.add({"--tokens", {}, {}, "missing; expected a number such as 15T or 300B"});
    }
    const double tokens = tokens_.read(mistakes);
    take("--price-per-hour", price_, step.machine.device.price_per_hour, mistakes);
    if (price_) {
      step.machine.origins["device.price_per_hour"] = "stated on the command line";
    }
    double pue = 1;
    take("--pue", pue_, pue, mistakes);
    if (pue_ && !(pue >= 1 && pue <= 10)) {
      mistakes.add(wrong_value("--pue", *pue_, "1 or more, at most 10"));
    }
    const goodput::Question question = fields_.read(mistakes);
    const std::int64_t devices = step.devices > 0 ? step.devices : step.plan.plan.devices();
    const auto asked =
        goodput::ask(question, std::max<std::int64_t>(devices, 1), fields_.well_given(mistakes));
    if (!asked) {
      mistakes.add(fields_.placed(asked.error()));
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const auto run = study::run_step(step.model, step.machine, step.plan.plan, step.devices, {});
    if (!run) {
      return fail(step.plan.placed(run.error()));
    }
    const auto plan = study::plan_run(*run, tokens, *asked, question.seeds, pue);
    if (!plan) {
      return fail(fields_.placed(TokensFlag::placed(plan.error())));
    }
    return json_ ? report::json_of(*run, *plan, *asked, pue)
                 : report::run_plan_table(*run, *plan, *asked, pue);
  }

 private:
  StepFlags step_;
  PlanFlags plan_;
  FieldFlags<goodput::Question> fields_;
  TokensFlag tokens_;
  std::optional<std::string> price_;
  std::optional<std::string> pue_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_run_plan() {
  return std::make_unique<RunPlanned>();
}

}  // namespace orrery::cli
