// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/config_node.h"
#include "base/file.h"
#include "base/lists.h"
#include "base/one_of.h"
#include "cli/commands.h"
#include "compat/astra/quirks.h"
#include "planner/spmd/profile.h"
#include "report/json_writer.h"
#include "serving/engine.h"
#include "simulate/network_model.h"
#include "study/profile.h"
#include "workload/parallel/lower.h"
#include "workload/plan/framework.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::cli {
namespace {

struct Row {
  std::string name;
  std::string description;
};
using Rows = std::vector<Row>;

/// Returns one row per shipped configuration of `kind`, described from what its file holds.
template <class Describe>
Result<Rows> shipped(const std::string& kind, Describe describe) {
  Rows rows;
  Error mistakes;
  for (const std::string& name : list_configs(kind)) {
    rows.push_back({name, collect<std::string>(describe(name), mistakes)});
  }
  return or_mistakes(std::move(rows), std::move(mistakes));
}

/// Returns the sentence that begins a machine's file; the rest, a hundred times as long, is not
/// read.
Result<std::string> machine_description(const std::string& name) {
  return find_config("machines", name).and_then([](const std::string& path) {
    return read_file(path)
        .and_then([&](const std::string& text) {
          return parse_config(text.substr(0, text.find("\ndevice:")), path, ConfigSyntax::yaml);
        })
        .map([](const ConfigNode& node) {
          const ConfigNode* description = node.find("description");
          return description == nullptr ? std::string() : description->text;
        });
  });
}

Result<Rows> machines() {
  return shipped("machines", machine_description);
}

Result<Rows> models() {
  return shipped("models", [](const std::string& name) {
    return zoo::load_model(name).map([](const zoo::Model& model) {
      const zoo::ParameterCount count = zoo::count_parameters(model);
      return fmt::format("{:.4g} billion parameters; {} layers, hidden {}, heads {}",
                         static_cast<double>(count.total - count.mtp) / 1e9, model.layers,
                         model.hidden, model.heads);
    });
  });
}

Result<Rows> plans() {
  return shipped("plans", [](const std::string& name) {
    return plan::load_plan(name).map([](const plan::Plan& plan) {
      return fmt::format("{} devices: tp {}, pp {}, dp {}; {}, recompute {}", plan.devices(),
                         plan.tp, plan.pp, plan.dp, name_of(plan.schedule),
                         name_of(plan.recompute));
    });
  });
}

Result<Rows> spmd_profiles() {
  return shipped("spmd", [](const std::string& name) {
    return spmd::load_profile(name).map(
        [](const spmd::Profile& profile) { return profile.description; });
  });
}

Result<Rows> frameworks() {
  return shipped("frameworks", plan::framework_description);
}

Result<Rows> passes() {
  Rows rows;
  for (parallel::PassName& pass : parallel::lowering_passes()) {
    rows.push_back({std::move(pass.name), std::move(pass.meaning)});
  }
  return rows;
}

Result<Rows> tables() {
  return shipped("validation", [](const std::string& name) {
    return study::load_profile(name).map(
        [](const study::ValidationProfile& profile) { return profile.title; });
  });
}

Result<Rows> quirks() {
  Rows rows;
  for (const auto& quirk : kNames<astra::Quirk>) {
    rows.push_back({std::string(quirk.name), std::string(quirk.meaning)});
  }
  return rows;
}

Result<Rows> networks() {
  Rows rows;
  for (const auto& network : kNames<simulate::NetworkModel>) {
    rows.push_back({std::string(network.name), std::string(network.meaning)});
  }
  return rows;
}

Result<Rows> engine_rows() {
  Rows rows;
  for (const serving::EngineDefaults& engine : serving::engines()) {
    rows.push_back({std::string(engine.name), std::string(engine.sentence)});
  }
  return rows;
}

struct Kind {
  std::string_view name;
  std::string_view sentence;
  Result<Rows> (*rows)();
};

constexpr std::array kKinds{
    Kind{"machines", "machine files", machines},
    Kind{"models", "model configurations", models},
    Kind{"plans", "parallel plans", plans},
    Kind{"frameworks", "training frameworks; --framework takes their names", frameworks},
    Kind{"engines", "inference engines of `orrery serve`", engine_rows},
    Kind{"spmd", "profiles of `orrery spmd`", spmd_profiles},
    Kind{"networks", "models of the network; --network takes their names", networks},
    Kind{"passes", "passes from plan to workload, in order; --skip takes their names", passes},
    Kind{"tables", "tables of published runs for validation", tables},
    Kind{"quirks", "what ASTRA-sim does otherwise; --quirk of `orrery astra` takes their names",
         quirks},
};

class List : public Command {
 public:
  void declare(Options& options) override {
    options.positional("KIND", kind_, "what to list: " + kind_names());
    options.flag("--json", json_, "print one JSON object");
    std::string footer = "Kinds:\n";
    for (const Kind& kind : kKinds) {
      footer += fmt::format("  {:<32}{}\n", kind.name, kind.sentence);
    }
    options.footer(footer + "Examples:\n  orrery list machines\n  orrery list passes --json\n");
  }

  Result<std::string> run(Error mistakes) override {
    const auto* const kind =
        std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& k) { return k.name == kind_; });
    if (kind == kKinds.end()) {
      mistakes.add(
          wrong_value("list", kind_, one_of(kind_, mapped<std::string>(kKinds, &Kind::name))));
    }
    collect(check_config_folders(), mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return kind->rows().map(
        [&](const Rows& rows) { return json_ ? as_json(kind->name, rows) : as_text(rows); });
  }

 private:
  static std::string kind_names() { return joined(kKinds, ", ", &Kind::name); }

  static std::string as_text(const Rows& rows) {
    std::size_t width = 0;
    for (const Row& row : rows) {
      width = std::max(width, row.name.size());
    }
    std::string text;
    for (const Row& row : rows) {
      text += row.description.empty()
                  ? row.name + "\n"
                  : fmt::format("{:<{}}  {}\n", row.name, width, row.description);
    }
    return text;
  }

  static std::string as_json(std::string_view kind, const Rows& rows) {
    return report::json_text([&](report::JsonWriter& json) {
      json.begin_object().key(kind).objects(rows, [&](const Row& row) {
        json.key("name").value(row.name);
        json.key("description").value(row.description);
      });
      json.end_object();
    });
  }

  std::string kind_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_list() {
  return std::make_unique<List>();
}

}  // namespace orrery::cli
