// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/collect.h"
#include "base/config_node.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/format.h"
#include "workload/plan/aliases.h"

namespace orrery::plan {

Error PlacedPlan::placed(Error mistakes) const {
  std::set<std::string, std::less<>> open;
  Plan::fields([&](std::string_view name, auto, std::string_view) {
    if (!places.contains(name)) {
      open.emplace(name);
    }
  });
  for (Mistake& mistake : mistakes.mistakes) {
    if (mistake.where.empty() && !mistake.found.empty() && open.contains(mistake.field)) {
      mistake.expected =
          fmt::format("not given; it would be '{}', expected {}", mistake.found, mistake.expected);
      mistake.found.clear();
    }
    const auto place = mistake.where.empty() ? places.find(mistake.field) : places.end();
    if (place != places.end()) {
      mistake.where = place->second;
      std::string flag = mistake.where;
      std::replace(flag.begin(), flag.end(), '-', '_');
      if (flag == "__" + mistake.field) {  // the flag's name says the field
        mistake.field.clear();
      }
    }
  }
  return mistakes;
}

namespace {

/// Values keep the path that the user wrote; their fields get our names.
Result<PlacedPlan> placed_of(ConfigNode own) {
  PlacedPlan result;
  Error mistakes;
  for (ConfigField& field : own.fields) {
    field.name = own_name(field.name);
    const auto [first, is_new] = result.places.emplace(field.name, field.value.where());
    if (!is_new) {
      mistakes.add({field.value.where(),
                    field.value.path,
                    {},
                    fmt::format("the same field as {}; give one of them", first->second)});
    }
    if (field.value.kind == ConfigNode::Kind::null) {
      mistakes.add({field.value.where(), field.value.path, field.value.shown(),
                    "a value; without its line the field keeps its default"});
    }
  }
  Reader read(own);
  read_fields(read, result.plan);
  if (const ConfigNode* given = own.find("strategy"); given != nullptr && !given->text.empty()) {
    result.plan.strategy =
        (std::filesystem::path(given->file()).parent_path() / result.plan.strategy).string();
  }
  collect(read.finish(result.plan), mistakes);
  return or_mistakes(std::move(result), std::move(mistakes));
}

}  // namespace

Result<PlacedPlan> parse_placed_plan(const ConfigNode& node) {
  return placed_of(node);
}

Result<Plan> parse_plan(const ConfigNode& node) {
  return parse_placed_plan(node).map([](const PlacedPlan& placed) { return placed.plan; });
}

Result<PlacedPlan> load_placed_plan(const std::string& name_or_path) {
  const Result<std::string> path = find_config("plans", name_or_path);
  if (!path) {
    return fail(path.error());
  }
  return load_config(*path).and_then([](ConfigNode node) { return placed_of(std::move(node)); });
}

Result<Plan> load_plan(const std::string& name_or_path) {
  return load_placed_plan(name_or_path).map([](const PlacedPlan& placed) { return placed.plan; });
}

std::string field_text(const Plan& plan, std::string_view field) {
  std::string text;
  Plan::fields([&](std::string_view name, auto member, std::string_view) {
    text = name == field ? exact_text(plan.*member) : text;
  });
  return text;
}

std::string to_yaml(const Plan& plan) {
  std::string text;
  Plan::fields([&](std::string_view name, auto member, std::string_view help) {
    text +=
        fmt::format("{:<40} # {}\n", fmt::format("{}: {}", name, exact_text(plan.*member)), help);
  });
  return text;
}

}  // namespace orrery::plan
