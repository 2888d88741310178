// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/reader.h"
#include "cli/plain_fields.h"
#include "report/report.h"
#include "study/run.h"
#include "workload/plan/aliases.h"
#include "workload/plan/defaults.h"
#include "workload/plan/plan_lists.h"
#include "workload/plan/shard.h"

namespace orrery::cli {

void PlanFlags::declare(Options& options, bool with_file, bool alone) {
  if (with_file) {
    options.value("--plan", file_, "NAME|FILE", "plan: a name of `orrery list plans` or a file");
  }
  options.group("Plan fields (each wins over the plan's file)");
  const plan::Plan defaults;
  plan::Plan::fields([&](std::string_view name, auto member, std::string_view meaning) {
    using T = std::decay_t<decltype(defaults.*member)>;
    std::optional<std::string>& text = given_[std::string(name)];
    const std::string help =
        std::string(meaning) + (alone ? "; " + plan::default_text(name) : std::string());
    if constexpr (std::is_same_v<T, plan::OverlapExperts>) {
      options.value_or(flag_of(name), text, kind_of_field(member), "true", help);
    } else {
      declare_field(options, flag_of(name), text, member, help);
    }
  });
  for (const plan::Alias& alias : plan::kAliases) {
    options.alias(flag_of(alias.name), flag_of(alias.field));
  }
  options.group("");
}

std::vector<study::Setting> PlanFlags::settings() const {
  std::vector<study::Setting> settings;
  plan::Plan::fields([&](std::string_view field, auto, std::string_view) {
    if (const std::optional<std::string>& text = given_.find(field)->second) {
      settings.push_back({std::string(field), *text, flag_of(field)});
    }
  });
  return settings;
}

void PlanFlags::refuse(const std::string& other, Error& mistakes) const {
  const auto add = [&](const std::string& flag) {
    mistakes.add({flag, {}, {}, "contradicts " + other + ", which wants no plan"});
  };
  if (file_) {
    add("--plan");
  }
  for (const study::Setting& setting : settings()) {
    add(setting.where);
  }
}

std::optional<std::string> PlanFlags::take(std::string_view field) {
  return std::exchange(given_.find(field)->second, std::nullopt);
}

plan::PlacedPlan PlanFlags::placed_plan(Error& mistakes, const std::optional<std::string>& name,
                                        const std::string& where) const {
  plan::PlacedPlan placed;
  if (name) {
    placed = load_named(where, *name, plan::load_placed_plan, mistakes);
  } else if (file_) {
    placed = load_named("--plan", *file_, plan::load_placed_plan, mistakes);
  }
  placed.plan = over(std::move(placed.plan), mistakes);
  for (const study::Setting& flag : settings()) {
    placed.places[flag.field] = flag.where;
  }
  return placed;
}

plan::Plan PlanFlags::plan(const zoo::Model* model, const machine::Machine* machine,
                           std::int64_t devices, Error& mistakes) const {
  const plan::PlacedPlan placed = placed_plan(mistakes);
  return mistakes.empty() ? plan::complete(placed, model, machine, devices) : placed.plan;
}

plan::Plan PlanFlags::over(plan::Plan base, Error& mistakes) const {
  plan::Plan plan = std::move(base);
  plan::Plan::fields([&](std::string_view field, auto member, std::string_view) {
    using T = std::decay_t<decltype(plan.*member)>;
    const std::optional<std::string>& text = given_.find(field)->second;
    if (!text) {
      return;
    }
    if (auto value = parse_value<T>(*text)) {
      plan.*member = *value;
    } else {
      mistakes.add(wrong_value(flag_of(field), *text, value.error()));
    }
  });
  if (const auto texts = plan::check_texts(plan); !texts) {
    for (const Mistake& mistake : texts.error().mistakes) {
      const bool given = given_.at(mistake.field).has_value();
      mistakes.add(given ? wrong_value(flag_of(mistake.field), mistake.found, mistake.expected)
                         : mistake);
    }
  }
  return plan;
}

void tell_long_sequence(const zoo::Model& model, const plan::Plan& plan) {
  constexpr std::int64_t kCommon = 16'384;  // pre-training takes 2,048 to 8,192, some models 16,384
  const std::int64_t tokens = plan::sequence_of(model, plan);
  if (plan.sequence == 0 && tokens > kCommon) {
    tell_notes(
        {fmt::format("--sequence: {} tokens, the longest that {} takes; pre-training "
                     "commonly has 4096 or 8192",
                     tokens, model.name)});
  }
}

PlannedStep read_planned_step(const StepFlags& step, const PlanFlags& plan, Error& mistakes) {
  Error unread;
  PlannedStep planned{step.read(unread), plan.placed_plan(unread)};
  if (unread.empty()) {
    planned.plan.plan =
        plan::complete(planned.plan, &planned.model, &planned.machine, planned.devices);
    unread = planned.plan.placed(
        study::plan_mistakes(planned.model, planned.machine, planned.plan.plan, planned.devices));
    tell_long_sequence(planned.model, planned.plan.plan);
  }
  mistakes.add(std::move(unread));
  return planned;
}

}  // namespace orrery::cli
