// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/file.h"
#include "base/names.h"
#include "base/reader.h"
#include "cli/commands.h"
#include "cli/plan_flags.h"
#include "cli/show_schema.h"
#include "cli/show_topology.h"
#include "machine/describe.h"
#include "machine/machine.h"
#include "report/json_writer.h"
#include "report/node_json.h"
#include "report/report.h"
#include "report/serving.h"
#include "serving/engine.h"
#include "workload/plan/defaults.h"
#include "workload/plan/shard.h"
#include "workload/zoo/describe.h"
#include "workload/zoo/model.h"

namespace orrery::cli {
namespace {

constexpr const char* kShowExamples =
    "Kinds:\n"
    "  machine                         a name of `orrery list machines`, or a file\n"
    "  model                           a name of `orrery list models`, or a file\n"
    "  engine                          a name of `orrery list engines`, or a file\n"
    "  plan                            a name of `orrery list plans`, or a file; the defaults\n"
    "                                  without any\n"
    "  topology                        a network such as fat_tree:k=8, or a file\n"
    "  schema                          JSON schema of a command's --json, or of a file that you\n"
    "                                  write: machine-file, plan-file, engine-file\n"
    "Examples:\n"
    "  orrery show topology fat_tree:k=8\n"
    "  orrery show topology dragonfly:hosts=2,routers=4,globals=2 --svg > dragonfly.svg\n"
    "  orrery show machine dgx-a100-80g\n"
    "  orrery show machine dgx-a100-80g --yaml > my-machine.yaml\n"
    "  orrery show model gpt3-175b\n"
    "  orrery show plan gpt3-175b-1024 --recompute selective > my-plan.yaml\n"
    "  orrery show plan\n"
    "  orrery show engine vllm@0.19 > my-engine.yaml\n"
    "  orrery show schema simulate\n"
    "A plan flag wins over the plan's file; both files can be edited and read back.\n";

void write_model(report::JsonWriter& json, const zoo::Model& model) {
  const zoo::ParameterCount count = zoo::count_parameters(model);
  zoo::Model without = model;  // as published counts are
  without.mtp = 0;
  const zoo::ParameterCount published = zoo::count_parameters(without);
  json.begin_object();
  json.key("name").value(model.name);
  json.key("model_type").value(model.model_type);
  json.key("layers").value(model.layers);
  json.key("hidden").value(model.hidden);
  json.key("heads").value(model.heads);
  json.key("kv_heads").value(model.kv_heads);
  json.key("head_dim").value(model.head_dim);
  json.key("ffn").value(model.ffn);
  json.key("vocab").value(model.vocab);
  json.key("max_positions").value(model.max_positions);
  json.key("sequence").value(plan::sequence_of(model, {}));
  json.key("mlp").value(name_of(model.mlp));
  json.key("norm").value(name_of(model.norm));
  json.key("position").value(name_of(model.position));
  json.key("tied_embedding").value(model.tied_embedding);
  json.key("experts").value(model.experts);
  json.key("top_k").value(model.top_k);
  json.key("layer_kinds").begin_object();
  const std::vector<std::string> kinds = zoo::layer_kinds(model);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    json.key(kinds[i]).value(count.per_kind[i]);
  }
  json.end_object();
  json.key("parameters").begin_object();
  json.key("layers").value(count.layers);
  json.key("embedding").value(count.embedding);
  json.key("position").value(count.position);
  json.key("final_norm").value(count.final_norm);
  json.key("head").value(count.head);
  json.key("mtp").value(count.mtp);
  json.key("total").value(published.total);
  json.key("active").value(published.active);
  json.end_object();
  json.key("model_flops_per_sequence")
      .value(zoo::model_flops_per_sequence(model, model.max_positions).value());
  json.end_object();
}

/// A machine, and how its own file states it.
struct MachineFile {
  std::string text;
  ConfigNode node;
  machine::Machine machine;
};

Result<MachineFile> load_machine_file(const std::string& name) {
  MachineFile file;
  const auto path = find_config("machines", name);
  return path.and_then([](const std::string& found) { return read_file(found); })
      .and_then([&](std::string text) {
        file.text = std::move(text);
        return parse_config(file.text, *path, syntax_of(file.text, *path));
      })
      .and_then([&](ConfigNode node) {
        file.node = std::move(node);
        return machine::parse_machine(file.node);
      })
      .map([&](machine::Machine machine) {
        file.machine = std::move(machine);
        return std::move(file);
      });
}

class Show : public Command {
 public:
  void declare(Options& options) override {
    options.positional("KIND", kind_, "machine, model, engine, plan, topology or schema");
    options.positional("NAME", name_, "a name of `orrery list`, or a file");
    options.flag("--json", json_, "print one JSON object");
    options.flag("--yaml", yaml_, "print a machine as its file (a plan always is)");
    options.flag("--svg", svg_, "draw a topology");
    plan_.declare(options, false, true);
    options.footer(kShowExamples);
  }

  Result<std::string> run(Error mistakes) override {
    check_words(mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    Result<std::string> text = kind_ == "model"      ? show_model(mistakes)
                               : kind_ == "machine"  ? show_machine(mistakes)
                               : kind_ == "engine"   ? show_engine(mistakes)
                               : kind_ == "schema"   ? show_schema(name_)
                               : kind_ == "topology" ? show_topology(name_, json_, svg_, mistakes)
                                                     : show_plan(mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return text;
  }

 private:
  void check_words(Error& mistakes) const {
    const std::vector<std::string> kinds = {"machine", "model",    "engine",
                                            "plan",    "topology", "schema"};
    if (std::find(kinds.begin(), kinds.end(), kind_) == kinds.end()) {
      mistakes.add(wrong_value(
          "show", kind_,
          "one of machine, model, engine, plan, topology, schema" + did_you_mean(kind_, kinds)));
    }
    if (kind_ != "plan") {
      plan_.refuse("show " + kind_, mistakes);
    }
    refuse_given({{"--svg", svg_ && kind_ != "topology"}}, "goes with topology", mistakes);
    refuse_given({{"--yaml", yaml_ && kind_ != "machine" && kind_ != "plan"}},
                 "goes with machine and plan", mistakes);
    if (json_) {
      refuse_given({{"--yaml", yaml_}, {"--svg", svg_}}, "contradicts --json; choose one",
                   mistakes);
    }
    if (mistakes.empty() && name_.empty() && kind_ != "plan") {
      mistakes.add({"show",
                    {},
                    {},
                    kind_ == "schema" ? std::string("which schema? a command's name, or plan-file")
                    : kind_ == "topology"
                        ? std::string("which topology? a network such as fat_tree:k=8 or a file")
                        : fmt::format("which {0}? a name of `orrery list {0}s` or a file", kind_)});
    }
  }

  Result<std::string> show_model(Error& mistakes) const {
    const zoo::Model model = load_named("show model", name_, zoo::load_model, mistakes);
    if (!mistakes.empty()) {
      return {};
    }
    return json_ ? report::json_text([&](report::JsonWriter& json) { write_model(json, model); })
                 : zoo::describe(model);
  }

  Result<std::string> show_machine(Error& mistakes) const {
    const MachineFile file = load_named("show machine", name_, load_machine_file, mistakes);
    if (!mistakes.empty()) {
      return {};
    }
    if (json_) {
      return report::json_text(
          [&](report::JsonWriter& json) { report::write_node(json, file.node); });
    }
    return yaml_ ? file.text : machine::describe(file.machine);
  }

  Result<std::string> show_engine(Error& mistakes) const {
    const serving::Engine engine = load_named("show engine", name_, serving::load_engine, mistakes);
    return json_ ? report::engine_json(engine) : serving::to_yaml(engine);
  }

  Result<std::string> show_plan(Error& mistakes) const {
    const plan::PlacedPlan placed =
        plan_.placed_plan(mistakes, name_.empty() ? std::nullopt : std::optional(name_));
    if (json_) {
      return report::json_of(placed.plan);
    }
    return name_.empty() ? with_rules(placed) : plan::to_yaml(placed.plan);
  }

  /// Returns the plan's file, which still leaves open what is left open.
  static std::string with_rules(const plan::PlacedPlan& placed) {
    std::string text;
    std::istringstream lines(plan::to_yaml(placed.plan));
    for (std::string line; std::getline(lines, line);) {
      const std::string field = line.substr(0, line.find(':'));
      const auto* const open =
          std::ranges::find(plan::kOpenFields, std::string_view(field), &plan::OpenField::name);
      if (open != plan::kOpenFields.end() && !placed.places.contains(field)) {
        line = fmt::format("# {}: left open: {}", field, open->today);
        line += open->before.empty() ? "" : fmt::format("; as_of before 2023: {}", open->before);
      }
      text += line + "\n";
    }
    return text;
  }

  std::string kind_;
  std::string name_;
  PlanFlags plan_;
  bool json_ = false;
  bool yaml_ = false;
  bool svg_ = false;
};

}  // namespace

std::unique_ptr<Command> make_show() {
  return std::make_unique<Show>();
}

}  // namespace orrery::cli
