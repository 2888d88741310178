// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/plain_fields.h"
#include "cli/served_model.h"
#include "machine/device_groups.h"
#include "serving/composition.h"
#include "serving/engine.h"

namespace orrery::cli {
namespace {

constexpr const char* kComposeExamples =
    "A router picks one of many whole models for every prompt; they lie in the second memory tier\n"
    "and the last used ones in the first. Router and experts have the shape of --model.\n"
    "Examples:\n"
    "  orrery compose --model llama-2-7b --machine sn40l --devices 8\n"
    "  orrery compose --model llama-2-7b --machine dgx-h100 --devices 8 \\\n"
    "                 --switch-bandwidth '64 GB/s' --batch 8 --output 200 --json\n"
    "  orrery compose --model llama-2-7b --machine dgx-h100 --devices 8 --prefetch true\n";

class Compose : public Command {
 public:
  void declare(Options& options) override {
    options.value("--model", model_, "NAME|FILE", "a name of `orrery list models`, or a file");
    options.value("--machine", machine_, "NAME|FILE",
                  "a name of `orrery list machines`, or a file");
    options.value("--devices", devices_, "INT", "tensor parallel; default 1");
    options.value("--engine", engine_, "NAME|FILE",
                  "its precision, graphs and launches; default: vllm@0.20");
    fields_.declare(options);
    options.flag("--json", json_, "print one JSON object");
    options.footer(kComposeExamples);
  }

  Result<std::string> run(Error mistakes) override {
    if (!machine_) {
      mistakes.add({"--machine", {}, {}, "missing; expected a name or a file"});
    }
    auto [model, engine] = load_served(model_, engine_, mistakes);
    const machine::Machine machine =
        machine_ ? load_named("--machine", *machine_, machine::load_alike, mistakes)
                 : machine::Machine();
    take("--devices", devices_, engine.tp, mistakes);
    const serving::Composition composition = fields_.read(mistakes);
    if (mistakes.empty() && fields_.given("switch_bandwidth") &&
        composition.switch_bandwidth == Bandwidth(0)) {
      mistakes.add({"--switch-bandwidth", {}, "0 B/s", "a rate above 0"});
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return serving::compose(model, machine, serving::step_options(engine), composition)
        .map([&, &name = model.name, tp = engine.tp](const serving::ComposedRun& run) {
          return json_ ? as_json(name, machine, composition, run)
                       : fmt::format("{} experts of {} on {} {}\n{}{}", composition.experts, name,
                                     tp, machine.name, fields_text(run), note_of(composition, run));
        })
        .map_error([&](Error error) { return fields_.placed(std::move(error)); });
  }

 private:
  static std::string note_of(const serving::Composition& composition,
                             const serving::ComposedRun& run) {
    return run.stored < composition.experts
               ? fmt::format("note: the second tier holds {} of {} experts; copied as if all\n",
                             run.stored, composition.experts)
               : std::string();
  }

  static std::string as_json(const std::string& model, const machine::Machine& machine,
                             const serving::Composition& composition,
                             const serving::ComposedRun& run) {
    return report::json_text([&](report::JsonWriter& json) {
      json.begin_object();
      json.key("model").value(model);
      json.key("machine").value(machine.name);
      json.key("experts").value(composition.experts);
      json.key("batch").value(composition.batch);
      write_fields(json, run);
      json.end_object();
    });
  }

  std::optional<std::string> model_;
  std::optional<std::string> machine_;
  std::optional<std::string> devices_;
  std::optional<std::string> engine_;
  FieldFlags<serving::Composition> fields_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_compose() {
  return std::make_unique<Compose>();
}

}  // namespace orrery::cli
