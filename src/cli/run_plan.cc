// SPDX-License-Identifier: Apache-2.0
#include "study/run_plan.h"

#include "cli/commands.h"
#include "cli/plain_fields.h"
#include "cli/plan_flags.h"
#include "cli/step_flags.h"
#include "cli/tokens_flag.h"
#include "machine/compute/device.h"
#include "report/goodput.h"

namespace orrery::cli {
namespace {

constexpr const char* kRunPlanExamples =
    "A whole training run from one simulated step: days, money, energy, checkpoints, failures.\n"
    "Examples:\n"
    "  orrery run-plan --tokens 15T --model llama-3.1-405b --machine dgx-h100 --devices 16384 "
    "--tp 8 --pp 16 \\\n"
    "                  --recompute-modules layernorm --mtbf '50677 h' --restart 600s \\\n"
    "                  --checkpoint-to nvme --checkpoint-through host\n"
    "  orrery run-plan --tokens 300B --model llama-3-8b --machine aws-p5 --devices 64 --zero 2 "
    "--json\n";

class RunPlanned : public Command {
 public:
  void declare(Options& options) override {
    tokens_.declare(options, "to train on: 15T, 300B or 1.5e12");
    step_.declare(options);
    options.value("--price-per-hour", price_, "MONEY",
                  "of one device, instead of the machine's: 2.5 or '2.5 USD'");
    options.boolean("--price-of-node", price_of_node_,
                    "that price is of a whole node (--node-devices); default false");
    options.value("--price-source", price_source_, "TEXT",
                  "whose price it is and of which date, for the result");
    options.value("--pue", pue_, "NUMBER",
                  "energy of the site for each joule of the devices; default 1");
    options.flag("--json", json_, "print one JSON object");
    options.group("Failures and checkpoints");
    fields_.declare(options);
    options.value("--checkpoint-to", path_.to, "TIER",
                  "of device.memory: what a checkpoint costs follows from its bandwidth");
    options.value("--checkpoint-through", path_.through, "TIER",
                  "copied there first, so that the job waits for that copy alone");
    options.boolean(
        "--checkpoint-whole", path_.whole,
        "one of the ranks with the same states writes them; default false: each a part");
    plan_.declare(options, true, true);
    options.footer(kRunPlanExamples);
  }

  Result<std::string> run(Error mistakes) override {
    PlannedStep step = read_planned_step(step_, plan_, mistakes);
    if (!tokens_.given()) {
      mistakes.add({"--tokens", {}, {}, "missing; expected a number such as 15T or 300B"});
    }
    const double tokens = tokens_.read(mistakes);
    double pue = 1;
    take("--pue", pue_, pue, mistakes);
    if (pue_ && !(pue >= 1 && pue <= 10)) {
      mistakes.add(wrong_value("--pue", *pue_, "1 or more, at most 10"));
    }
    goodput::Question question = fields_.read(mistakes);
    const std::int64_t price_devices = read_price(question, step.machine, mistakes);
    const study::CheckpointPath path = read_path(mistakes);
    const std::int64_t devices =
        std::max<std::int64_t>(step.devices > 0 ? step.devices : step.plan.plan.devices(), 1);
    auto asked = goodput::ask(question, devices, fields_.well_given(mistakes));
    if (!asked) {
      mistakes.add(fields_.placed(asked.error()));
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    study::RunOptions how;
    how.advise = true;
    const auto run = study::run_step(step.model, step.machine, step.plan.plan, step.devices, how);
    if (!run) {
      return fail(step.plan.placed(run.error()));
    }
    std::optional<study::WrittenCheckpoint> written;
    if (path_.to) {
      const auto found = study::written_checkpoint(*run, path);
      asked = found ? ask_with(found->cost, question, devices) : fail(found.error());
      if (!asked) {
        return fail(placed(asked.error()));
      }
      written = *found;
    }
    auto plan = study::plan_run(*run, tokens, *asked, question.seeds, pue);
    if (!plan) {
      return fail(fields_.placed(TokensFlag::placed(plan.error())));
    }
    plan->checkpoint = written;
    plan->price_devices = price_devices;
    return json_ ? report::json_of(*run, *plan, *asked, pue)
                 : report::run_plan_table(*run, *plan, *asked, pue);
  }

 private:
  /// Returns of how many devices the stated price is.
  std::int64_t read_price(const goodput::Question& question, machine::Machine& machine,
                          Error& mistakes) const {
    const std::size_t before = mistakes.mistakes.size();
    take("--price-per-hour", price_, machine.device.price_per_hour, mistakes);
    if (price_ && before == mistakes.mistakes.size() &&
        compute::is_unknown(machine.device.price_per_hour)) {
      mistakes.add(wrong_value("--price-per-hour", *price_, "more than 0"));
    }
    bool of_node = false;
    take("--price-of-node", price_of_node_, of_node, mistakes);
    if (!price_) {
      refuse_given({{"--price-of-node", price_of_node_}, {"--price-source", price_source_}},
                   "expected beside --price-per-hour", mistakes);
      return 1;
    }
    const std::int64_t devices = of_node ? std::max<std::int64_t>(question.node_devices, 1) : 1;
    machine.device.price_per_hour = machine.device.price_per_hour / static_cast<double>(devices);
    machine.origins["device.price_per_hour"] =
        price_source_.value_or("stated on the command line, without its date");
    return devices;
  }

  study::CheckpointPath read_path(Error& mistakes) const {
    study::CheckpointPath path{path_.to.value_or(""), path_.through.value_or(""), false};
    take("--checkpoint-whole", path_.whole, path.whole, mistakes);
    if (!path_.to) {
      refuse_given({{"--checkpoint-through", path_.through}, {"--checkpoint-whole", path_.whole}},
                   "expected beside --checkpoint-to", mistakes);
      return path;
    }
    for (const char* field : {"checkpoint_cost", "checkpoint_persist"}) {
      if (fields_.given(field)) {
        mistakes.add(
            {flag_of(field), {}, {}, "expected it or --checkpoint-to, from which it follows"});
      }
    }
    return path;
  }

  /// Asks the question with the checkpoint's cost as if it had been stated.
  Result<goodput::Asked> ask_with(const goodput::CheckpointCost& cost, goodput::Question& question,
                                  std::int64_t devices) const {
    question.checkpoint_cost = cost.holds;
    question.checkpoint_persist = cost.persists;
    return goodput::ask(question, devices, [&](std::string_view field) {
      return field == "checkpoint_cost" || field == "checkpoint_persist" || fields_.given(field);
    });
  }

  Error placed(Error error) const {
    for (Mistake& mistake : error.mistakes) {
      if (mistake.where.empty() &&
          (mistake.field == "checkpoint_to" || mistake.field == "checkpoint_through")) {
        mistake.where = flag_of(mistake.field);
        mistake.field.clear();
      }
    }
    return fields_.placed(std::move(error));
  }

  struct PathFlags {
    std::optional<std::string> to;
    std::optional<std::string> through;
    std::optional<std::string> whole;
  };

  StepFlags step_;
  PlanFlags plan_;
  FieldFlags<goodput::Question> fields_;
  TokensFlag tokens_;
  PathFlags path_;
  std::optional<std::string> price_;
  std::optional<std::string> price_of_node_;
  std::optional<std::string> price_source_;
  std::optional<std::string> pue_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_run_plan() {
  return std::make_unique<RunPlanned>();
}

}  // namespace orrery::cli
