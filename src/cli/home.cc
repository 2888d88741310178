// SPDX-License-Identifier: Apache-2.0
#include "serving/home.h"

#include "base/lists.h"
#include "cli/commands.h"
#include "cli/plain_fields.h"
#include "machine/device_groups.h"

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
    "  orrery home --model llama-2-13b --devices 3 --powers 2,1,1 --all-reduce star\n"
    "  orrery home --model llama-2-7b --machine m1.yaml,i5.yaml,i7.yaml,i7.yaml --window 4\n";

class AtHome : public Command {
 public:
  void declare(Options& options) override {
    options.value("--model", model_, "NAME|FILE", "a name of `orrery list models`, or a file");
    options.value("--machine", machine_, "NAME|FILE",
                  "of the devices, default home-8; several by commas: one a device, master first");
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
    const std::vector<machine::Machine> machines =
        mapped(names_of_machines(), [&](const std::string& name) {
          return load_named("--machine", name, machine::load_alike, mistakes);
        });
    serving::Home home = fields_.read(mistakes);
    if (machines.size() > 1 && !fields_.given("devices")) {
      home.devices = static_cast<std::int64_t>(machines.size());
    }
    if (fields_.given("window") && home.window == 0) {
      mistakes.add(
          wrong_value("--window", "0", "blocks in memory, 1 or more; without it the best"));
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const auto run = machines.size() == 1 ? serving::serve_at_home(model, machines.front(), home)
                                          : serving::serve_at_home(model, machines, home);
    if (!run) {
      return fail(fields_.placed(run.error()));
    }
    const std::string names = joined(machines, ", ", &machine::Machine::name);
    return json_ ? as_json(model, names, home, *run)
                 : fmt::format("{} on {} devices of {}\n{}", model.name, home.devices, names,
                               fields_text(*run));
  }

 private:
  static std::string as_json(const zoo::Model& model, const std::string& machines,
                             const serving::Home& home, const serving::HomeRun& run) {
    return report::json_text([&](report::JsonWriter& json) {
      json.begin_object();
      json.key("model").value(model.name);
      json.key("machine").value(machines);
      json.key("devices").value(home.devices);
      write_fields(json, run);
      json.end_object();
    });
  }

  std::vector<std::string> names_of_machines() const {
    const std::string text = machine_.value_or("home-8");
    std::vector<std::string> names(1);
    for (const char c : text) {
      if (c == ',') {
        names.emplace_back();
      } else {
        names.back() += c;
      }
    }
    return names;
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
