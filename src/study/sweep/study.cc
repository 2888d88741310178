// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/study.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/lists.h"
#include "base/one_of.h"
#include "serving/engine.h"
#include "study/sweep/check_study.h"
#include "study/sweep/config_path.h"
#include "study/sweep/kind.h"
#include "study/sweep/model_field.h"
#include "workload/plan/aliases.h"
#include "workload/zoo/model.h"

namespace orrery::sweep {
namespace {

constexpr std::string_view kPlan = "plan";
constexpr std::string_view kModel = "model";
constexpr std::string_view kEngine = "engine";

bool is_file(const KindEntry& kind, std::string_view field) {
  return std::find(kind.files.begin(), kind.files.end(), field) != kind.files.end();
}

/// A name of the table, as the file that says no more.
ConfigNode engine_of_table(const std::string& name) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::map;
  node.fields.push_back({"engine", scalar_node(name, node)});
  return node;
}

bool is_in_table(const std::string& name) {
  const auto& table = serving::engines();
  return std::any_of(table.begin(), table.end(), [&](const serving::EngineDefaults& row) {
    return row.name == name || row.name.substr(0, row.name.find('@')) == name;
  });
}

Result<ConfigNode> load_file(const KindEntry& kind, std::string_view field,
                             const std::string& name) {
  if (field == kModel) {
    return zoo::load_model_file(name).map([](zoo::ModelFile file) {
      file.node.fields.push_back({std::string(kModelName), scalar_node(file.name, file.node)});
      file.node.fields.back().value.quoted = true;
      return std::move(file.node);
    });
  }
  if (field == kEngine) {
    return serving::load_engine(name).and_then([&](const serving::Engine&) {
      return is_in_table(name) ? Result<ConfigNode>(engine_of_table(name)) : load_config(name);
    });
  }
  if (kind.files.data() == kAstraFiles.data()) {
    return load_config(name);
  }
  return find_config(std::string(field) + "s", name).and_then(load_config);
}

/// Loads what `node` names, once. A name that there is not is a mistake at its place.
void load_named(const KindEntry& kind, std::string_view field, const ConfigNode& node,
                NamedFiles& files, Error& mistakes) {
  if (node.kind != ConfigNode::Kind::scalar) {
    return;
  }
  const auto [file, is_new] = files.emplace(std::pair(std::string(field), node.text), ConfigNode());
  if (!is_new) {
    return;
  }
  auto loaded = load_file(kind, field, node.text);
  if (loaded) {
    file->second = std::move(*loaded);
    return;
  }
  for (Mistake& mistake : loaded.error().mistakes) {
    if (mistake.where.empty()) {
      mistake.where = node.where();
      mistake.field = field;
    }
  }
  mistakes.add(std::move(loaded.error()));
}

void load_files(Study& study, Error& mistakes) {
  for (const ConfigField& field : study.base.fields) {
    if (is_file(*study.kind, field.name)) {
      load_named(*study.kind, field.name, field.value, study.files, mistakes);
    }
  }
  for (const Axis& axis : study.space.axes) {
    for (const ConfigNode& value : axis.values) {
      if (is_file(*study.kind, axis.name)) {
        load_named(*study.kind, axis.name, value, study.files, mistakes);
      }
    }
  }
}

/// One of the two names of a plan's field stays: the one that is set.
void drop_other_names(ConfigNode& description, const std::string& path) {
  const auto plan = std::find_if(description.fields.begin(), description.fields.end(),
                                 [](const ConfigField& field) { return field.name == kPlan; });
  if (plan == description.fields.end()) {
    return;
  }
  const std::string name = path.substr(kPlan.size() + 1);
  std::erase_if(plan->value.fields, [&](const ConfigField& field) {
    return field.name != name && plan::own_name(field.name) == plan::own_name(name);
  });
}

/// A value of one axis, as its place in the description.
struct Assignment {
  const std::string* name;
  const ConfigNode* value;
};

Description assigned(const Study& study, const std::vector<Assignment>& values) {
  Description result{.node = study.base, .mistakes = {}};
  ConfigNode& description = result.node;
  const auto set = [&](const std::string& path, const ConfigNode& value) {
    if (auto ok = set_field(description, path, value); !ok) {
      result.mistakes.add(std::move(ok.error()));
    }
  };
  // Whole descriptions first: what is set inside them stays.
  for (const Assignment& one : values) {
    if (is_file(*study.kind, *one.name)) {
      set(*one.name, *one.value);
    }
  }
  for (ConfigField& field : description.fields) {
    const bool named =
        is_file(*study.kind, field.name) && field.value.kind == ConfigNode::Kind::scalar;
    if (named) {
      field.value = study.files.find(std::pair(field.name, field.value.text))->second;
    }
  }
  for (const Assignment& one : values) {
    if (is_file(*study.kind, *one.name)) {
      continue;
    }
    if (one.name->starts_with("plan.")) {
      drop_other_names(description, *one.name);
    }
    set(own_model_field(description, *one.name), *one.value);
  }
  return result;
}

std::vector<Assignment> values_of(const Space& space, std::size_t point) {
  std::vector<Assignment> values;
  for (std::size_t axis = 0; axis < space.axes.size(); ++axis) {
    if (const ConfigNode* value = space.value(point, axis)) {
      values.push_back({&space.axes[axis].name, value});
    }
  }
  return values;
}

/// The kind, or null and a mistake. Its fields become the study's base.
const KindEntry* read_kind(Reader& read) {
  const auto name = read.optional<std::string>("kind", "simulate");
  const auto* const kind = std::find_if(kKinds.begin(), kKinds.end(),
                                        [&](const KindEntry& k) { return k.name == name; });
  if (kind != kKinds.end()) {
    return kind;
  }
  read.reject("kind", one_of(name, kind_names()));
  return nullptr;
}

void read_base(Reader& read, Study& study) {
  study.base = read.node();
  std::erase_if(study.base.fields, [&](const ConfigField& field) {
    const auto& known = study.kind->fields;
    return std::find(known.begin(), known.end(), field.name) == known.end() ||
           field.value.kind == ConfigNode::Kind::null;
  });
  for (const std::string_view field : study.kind->fields) {
    read.ignore(field);
  }
}

}  // namespace

std::vector<std::string> Study::varied() const {
  return mapped(space.axes, &Axis::name);
}

Description Study::describe(std::size_t point) const {
  return assigned(*this, values_of(space, point));
}

Description Study::describe_unvaried() const {
  std::vector<Assignment> values = values_of(space, 0);
  std::erase_if(values,
                [](const Assignment& one) { return one.name->find('.') != std::string::npos; });
  return assigned(*this, values);
}

Description Study::describe_with(std::size_t axis, const ConfigNode& value) const {
  std::vector<Assignment> values = values_of(space, 0);
  const std::string* const varied_name = &space.axes[axis].name;
  std::erase_if(values, [&](const Assignment& one) { return one.name == varied_name; });
  values.push_back({varied_name, &value});
  return assigned(*this, values);
}

Result<Study> parse_study(const ConfigNode& node, std::string name) {
  Reader read(node);
  Study study;
  study.name = std::move(name);
  study.kind = read_kind(read);
  study.skip_invalid = read.optional("skip_invalid", true);
  study.space = read_space(read);
  if (study.kind == nullptr) {
    for (const KindEntry& kind : kKinds) {
      std::for_each(kind.fields.begin(), kind.fields.end(),
                    [&](std::string_view field) { read.ignore(field); });
    }
    return read.finish(std::move(study));
  }
  read_base(read, study);
  Error mistakes;
  check_names(node, *study.kind, mistakes);
  load_files(study, mistakes);
  if (!mistakes.empty()) {
    read.absorb(Result<int>(fail(std::move(mistakes))));
  }
  auto finished = read.finish(std::move(study));
  if (finished) {
    if (Error wrong = check_values(*finished); !wrong.empty()) {
      return fail(std::move(wrong));
    }
  }
  return finished;
}

namespace {

/// Adds an axis of one value to what the study varies.
Result<void> fix(ConfigNode& study, const std::string& name, const std::string& value) {
  auto vary = std::ranges::find(study.fields, "vary", &ConfigField::name);
  if (vary == study.fields.end()) {
    ConfigNode none;
    none.kind = ConfigNode::Kind::map;
    none.source = study.source;
    none.path = "vary";
    vary = study.fields.insert(study.fields.end(), {.name = "vary", .value = std::move(none)});
  }
  if (vary->value.find(name) != nullptr) {
    return fail(Error(Mistake{study.file(), name, value, "no flag beside what the study varies"}));
  }
  ConfigNode only;
  only.kind = ConfigNode::Kind::scalar;
  only.text = value;
  only.source = study.source;
  only.path = "vary." + name;
  ConfigNode axis = only;
  axis.kind = ConfigNode::Kind::sequence;
  axis.text.clear();
  axis.items = {std::move(only)};
  vary->value.fields.push_back({.name = name, .value = std::move(axis)});
  return {};
}

}  // namespace

Result<Study> load_study(const std::string& file, const FixedFields& fixed) {
  auto node = load_config(file);
  if (!node) {
    return fail(std::move(node.error()));
  }
  for (const auto& [name, value] : fixed) {
    if (auto added = fix(*node, name, value); !added) {
      return fail(std::move(added.error()));
    }
  }
  return parse_study(*node, std::filesystem::path(file).stem().string());
}

}  // namespace orrery::sweep
