// SPDX-License-Identifier: Apache-2.0
/// orrery reinforce: which devices of a reinforcement-learning step generate and which train.
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/plain_fields.h"
#include "cli/progress.h"
#include "cli/served_model.h"
#include "cli/step_flags.h"
#include "planner/reinforcement/sizing.h"
#include "report/reinforcement.h"

namespace orrery::cli {
namespace {

constexpr const char* kReinforceExamples =
    "A step of GRPO or PPO without a critic: engines generate answers, models score them, the "
    "actor is\n"
    "trained on them, its weights go back to the engines. Devices do it in turn, or some generate "
    "while\n"
    "the others train on the answers of the step before. Engines, training plan and split are "
    "chosen.\n"
    "Examples:\n"
    "  orrery reinforce --model llama-3.1-8b --machine dgx-h100 --devices 32 --answers 768\n"
    "  orrery reinforce --model llama-3-70b --machine dgx-h100 --devices 64 --answers 512 \\\n"
    "                   --reward llama-3-8b --output 'lognormal(4000, 0.8)' --updates 4 --json\n";

class Reinforce : public Command {
 public:
  void declare(Options& options) override {
    step_.declare(options);
    options.value("--engine", engine_, "NAME|FILE", "that generates; default vllm@0.20");
    fields_.declare(options);
    options.flag("--json", json_, "print one JSON object");
    options.footer(kReinforceExamples);
  }

  bool ends_early() const override { return true; }
  Result<std::string> run(Error mistakes) override {
    const StepInput step = step_.read(mistakes);
    reinforcement::Task task{.question = fields_.read(mistakes),
                             .actor = step.model,
                             .reward = {},
                             .engine = {},
                             .machine = step.machine,
                             .devices = step.devices};
    if (step.devices == 0 && step_.given()) {
      mistakes.add({"--devices", {}, {}, "missing; expected how many accelerators there are"});
    }
    if (!task.question.reward.empty()) {
      task.reward = load_named("--reward", task.question.reward, zoo::load_model, mistakes);
    }
    Error of_engine;
    task.engine = load_served(step_.names().model, engine_, of_engine).engine;
    std::erase_if(of_engine.mistakes,  // which step_ has found
                  [](const Mistake& one) { return one.where == "--model"; });
    mistakes.add(std::move(of_engine));
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    ProgressBar bar("arranging");
    auto sizing = reinforcement::size(task, [&] {
      bar.update(0);
      return Interrupt::going_on();
    });
    if (!sizing) {
      return fail(fields_.placed(std::move(sizing.error())));
    }
    const report::ReinforcementReport report{step_.names().model, task.machine.name, task.devices,
                                             std::move(*sizing)};
    status_ = report.sizing.runs() ? 0 : 2;
    return json_ ? report::json_of(report) : report::reinforcement_table(report);
  }

  int status() const override { return status_; }

 private:
  StepFlags step_;
  std::optional<std::string> engine_;
  FieldFlags<reinforcement::Question> fields_;
  bool json_ = false;
  int status_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_reinforce() {
  return std::make_unique<Reinforce>();
}

}  // namespace orrery::cli
