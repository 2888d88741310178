// SPDX-License-Identifier: Apache-2.0
#include "serving/stated_fields.h"

#include <algorithm>
#include <array>

#include "serving/launch_flags.h"
#include "serving/step/quantization.h"

namespace orrery::serving {
namespace {

ConfigNode& child_of(ConfigNode& map, const std::string& name, ConfigNode::Kind kind) {
  auto found = std::ranges::find(map.fields, name, &ConfigField::name);
  if (found == map.fields.end()) {
    map.fields.push_back({name, {}});
    found = map.fields.end() - 1;
    found->value.kind = kind;
    found->value.path = map.path.empty() ? name : map.path + "." + name;
  }
  return found->value;
}

}  // namespace

std::string flag_of_field(std::string_view section, std::string_view field) {
  constexpr std::array<std::string_view, 5> kPlain{"parallel", "precision", "scheduler", "cache",
                                                   "fleet"};
  std::string flag =
      "--" +
      (std::ranges::count(kPlain, section) > 0 ? std::string() : std::string(section) + "-") +
      std::string(field);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

const std::vector<ForeignFlag>& foreign_flags() {
  static const std::vector<ForeignFlag> flags = [] {
    std::vector<ForeignFlag> list;
    const auto add = [&](const std::string& flag, const Flag& row, bool negates) {
      const std::string own = flag_of_field(row.section, row.field);
      if (flag != own && std::ranges::count(list, flag, &ForeignFlag::flag) == 0) {
        list.push_back({flag, own, negates});
      }
    };
    for (const Flag& row : engine_flags()) {
      add("--" + std::string(row.name), row, row.kind == FlagKind::no);
      if (row.kind == FlagKind::yes && !row.name.starts_with("disable")) {
        add("--no-" + std::string(row.name), row, true);
      }
    }
    return list;
  }();
  return flags;
}

Result<Engine> load_engine_with(const zoo::ModelFile& model, const std::string& name_or_path,
                                const std::vector<StatedField>& fields) {
  if (fields.empty()) {
    return load_engine_for(model, name_or_path);
  }
  auto node = engine_node(name_or_path);
  if (!node) {
    return fail(std::move(node.error()));
  }
  for (const StatedField& stated : fields) {
    ConfigNode& section = child_of(*node, stated.section, ConfigNode::Kind::map);
    ConfigNode& field = child_of(section, stated.field, ConfigNode::Kind::scalar);
    field.text = stated.text;
    field.source = std::make_shared<const std::string>(stated.flag);
    field.line = 0;
  }
  auto engine = step::quantization_of(model.node).and_then([&](const auto& checkpoint) {
    return parse_engine(*node, checkpoint);
  });
  if (!engine) {
    for (Mistake& mistake : engine.error().mistakes) {
      const auto stated = std::ranges::find_if(fields, [&](const StatedField& one) {
        return mistake.field == one.section + "." + one.field ||
               mistake.where.starts_with(one.flag + ":");
      });
      if (stated != fields.end()) {
        mistake.where = stated->flag;
        mistake.field.clear();
      }
    }
    return engine;
  }
  for (auto& [field, where] : engine->stated) {
    where = where.ends_with(":0") ? where.substr(0, where.size() - 2) : where;  // a flag's
  }
  return engine;
}

}  // namespace orrery::serving
