// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_choices.h"

#include <algorithm>
#include <utility>

#include "cli/command.h"
#include "workload/plan/aliases.h"
#include "workload/plan/plan_lists.h"

namespace orrery::cli {
namespace {

/// Between commas; between semicolons where a value has commas itself.
std::vector<std::string> values_of(const std::string& field, const std::string& text) {
  const bool lists = field == "stage_layers" || field == "documents";
  if (!lists && text.find(';') == std::string::npos) {
    return plan::list_items(text);
  }
  std::vector<std::string> values;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    values.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return values;
}

}  // namespace

void read_choices(const std::vector<std::string>& fix, const std::vector<std::string>& only,
                  full::Task& task, Error& mistakes) {
  const auto parts = [&](const char* flag, const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      mistakes.add(wrong_value(flag, text, "FIELD=VALUE"));
      return std::pair<std::string, std::string>();
    }
    std::string field = text.substr(0, equals);
    std::replace(field.begin(), field.end(), '-', '_');
    for (const plan::Alias& alias : plan::kAliases) {
      field = alias.name == field ? std::string(alias.field) : field;
    }
    return std::pair(std::move(field), text.substr(equals + 1));
  };
  for (const std::string& text : fix) {
    const auto [field, value] = parts("--fix", text);
    if (field.empty()) {
      continue;
    }
    if (const auto place = task.fixed.places.find(field);
        place != task.fixed.places.end() && place->second.starts_with("--")) {
      mistakes.add(wrong_value("--fix", text, "once: " + place->second + " says it too"));
    }
    if (auto set = full::set_field(task.fixed.plan, field, value, "--fix"); !set) {
      mistakes.add(std::move(set.error()));
    }
    task.fixed.places[field] = "--fix";
  }
  for (const std::string& text : only) {
    const auto [field, values] = parts("--only", text);
    if (!field.empty() && task.only.contains(field)) {
      mistakes.add(wrong_value("--only", text, "every value of a field in one --only"));
    }
    if (field.empty()) {
      continue;
    }
    std::vector<std::string>& chosen = task.only[field];
    plan::Plan trial;
    for (std::string& value : values_of(field, values)) {
      if (auto set = full::set_field(trial, field, value, "--only"); !set) {
        mistakes.add(std::move(set.error()));
        break;
      }
      if (std::find(chosen.begin(), chosen.end(), value) == chosen.end()) {
        chosen.push_back(std::move(value));
      }
    }
  }
}

}  // namespace orrery::cli
