// SPDX-License-Identifier: Apache-2.0
#include "serving/home.h"

#include "cli/commands.h"
#include "cli/plain_fields.h"

namespace orrery::cli {
namespace {

constexpr const char* kHomeExamples =
    "Tensor parallel over small devices behind gateways; a model larger than their memory passes\n"
    "a window of blocks (half a layer each) on its way from the disk. The planner picks the "
    "window\n"
    "and the all-reduce of prompt and token unless they are stated.\n"
    "Examples:\n"
    "  orrery home --model llama-2-70b\n"
    "  orrery home --model llama-2-7b --devices 4 --window 4 --retain 2 --json\n"
    "  orrery home --model llama-2-13b --devices 3 --powers 2,1,1 --all-reduce star\n";

class AtHome : public Command {
 public:
  void declare(Options& options) override {
    options.value("--model", model_, "NAME|FILE", "a name of `orrery list models`, or a file");
    options.value("--machine", machine_, "NAME|FILE", "of the devices; default home-8");
    fields_.declare(options);
    options.flag("--json", json_, "print one JSON object");
    options.footer(kHomeExamples);
  }

  Result<std::string> run(Error mistakes) override {
    if (!model_) {
      mistakes.add({"--model", {}, {}, "missing; expected a name or a file"});
    }
    const zoo::Model model =
        model_ ? load_named("--model", *model_, zoo::load_model, mistakes) : zoo::Model();
    const machine::Machine machine =
        load_named("--machine", machine_.value_or("home-8"), machine::load_machine, mistakes);
    const serving::Home home = fields_.read(mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return serving::serve_at_home(model, machine, home).map([&](const serving::HomeRun& run) {
      return json_ ? as_json(model, machine, home, run)
                   : fmt::format("{} on {} devices of {}\n{}", model.name, home.devices,
                                 machine.name, fields_text(run));
    });
  }

 private:
  static std::string as_json(const zoo::Model& model, const machine::Machine& machine,
                             const serving::Home& home, const serving::HomeRun& run) {
    return report::json_text([&](report::JsonWriter& json) {
      json.begin_object();
      json.key("model").value(model.name);
      json.key("machine").value(machine.name);
      json.key("devices").value(home.devices);
      write_fields(json, run);
      json.end_object();
    });
  }

  std::optional<std::string> model_;
  std::optional<std::string> machine_;
  FieldFlags<serving::Home> fields_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_home() {
  return std::make_unique<AtHome>();
}

}  // namespace orrery::cli
