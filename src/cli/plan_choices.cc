// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/reader.h"
#include "cli/command.h"
#include "machine/device_groups.h"
#include "workload/plan/aliases.h"
#include "workload/plan/defaults.h"
#include "workload/plan/plan_lists.h"

namespace orrery::cli {
namespace {

/// Returns the values between commas, or between semicolons where a value has commas itself.
std::vector<std::string> values_of(const std::string& field, const std::string& text) {
  const bool lists = field == "stage_layers" || field == "documents" || field == "batch_shares" ||
                     field == "parts";
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
                  full::Task& task, Error& mistakes, const std::string& fixes) {
  const auto parts = [&](const std::string& flag, const std::string& text) {
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
    const auto [field, value] = parts(fixes, text);
    if (field.empty()) {
      continue;
    }
    if (const auto place = task.fixed.places.find(field);
        place != task.fixed.places.end() && place->second.starts_with("--")) {
      mistakes.add(wrong_value(fixes, text, "once: " + place->second + " says it too"));
    }
    collect(full::set_field(task.fixed.plan, field, value, fixes), mistakes);
    task.fixed.places[field] = fixes;
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

Bytes read_reserve(const std::optional<std::string>& reserve,
                   const std::optional<std::string>& most_memory, const machine::Machine& machine,
                   Error& mistakes) {
  const auto bytes = [&](const char* flag, const std::optional<std::string>& text, Bytes fallback) {
    if (!text) {
      return fallback;
    }
    const auto value = parse_value<Bytes>(*text);
    if (value && *value >= Bytes(0)) {
      return *value;
    }
    mistakes.add(wrong_value(flag, *text, value ? "0 or more" : value.error()));
    return fallback;
  };
  if (reserve && most_memory) {
    mistakes.add({"--max-memory", {}, {}, "contradicts --reserve; choose one"});
  }
  Bytes capacity{0};  // of the device that has most
  for (const machine::Machine& part : machine::by_device_group(machine)) {
    const auto& memory = part.device.memory;
    capacity = std::max(capacity, memory.empty() ? Bytes(0) : memory.front().capacity);
  }
  const Bytes most = bytes("--max-memory", most_memory, capacity);
  const Bytes free = bytes("--reserve", reserve, 2_GiB);
  if (most_memory && most == Bytes(0)) {
    mistakes.add(wrong_value("--max-memory", *most_memory, "a size above 0"));
  }
  if (most > capacity) {
    mistakes.add(
        wrong_value("--max-memory", *most_memory, "at most the device's " + to_string(capacity)));
  }
  if (reserve && free >= capacity && capacity > Bytes(0)) {
    mistakes.add(
        wrong_value("--reserve", *reserve, "less than the device's " + to_string(capacity)));
  }
  return most_memory ? std::max(Bytes(0), capacity - most) : free;
}

void hold_power(const std::optional<std::string>& power_budget, full::Task& task, Error& mistakes) {
  if (!power_budget) {
    return;
  }
  const auto budget = parse_value<Power>(*power_budget);
  if (!budget || *budget <= Power(0)) {
    mistakes.add(wrong_value("--power-budget", *power_budget,
                             budget ? "a power above 0, such as 20 kW" : budget.error()));
    return;
  }
  if (task.devices == 0 || !mistakes.empty()) {
    return;
  }
  auto held = machine::with_power_cap(task.machine, *budget / static_cast<double>(task.devices));
  if (held) {
    task.machine = std::move(*held);
    return;
  }
  for (const Mistake& mistake : held.error().mistakes) {
    mistakes.add(
        wrong_value("--power-budget", *power_budget,
                    fmt::format("for each of {} devices {}", task.devices, mistake.expected)));
  }
}

std::string listed_flags(const std::vector<std::pair<bool, std::string>>& flags) {
  std::vector<std::string> names;
  for (const auto& [is_given, name] : flags) {
    if (is_given) {
      names.push_back(name);
    }
  }
  const std::string last = names.empty() ? "" : names.back();
  names.resize(names.empty() ? 0 : names.size() - 1);
  return fmt::format("{}{}{}", fmt::join(names, ", "), names.empty() ? "" : " and ", last);
}

void use_default_batch(full::Task& task, const Error& mistakes) {
  if (!mistakes.empty()) {
    return;
  }
  const std::int64_t batch =
      plan::complete(task.fixed, &task.model, &task.machine, task.devices).global_batch;
  task.fixed.plan.global_batch = batch;
  task.fixed.places["global_batch"] = "--batch";
  tell_notes({fmt::format("--batch: {} sequences per step, as simulate takes", batch)});
}

}  // namespace orrery::cli
