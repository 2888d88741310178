// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_vary.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/file.h"
#include "base/format.h"
#include "base/lists.h"
#include "base/reader.h"
#include "cli/progress.h"
#include "report/plan_design.h"
#include "report/report.h"
#include "study/sweep/design.h"
#include "workload/plan/plan_lists.h"

namespace orrery::cli {
namespace {

/// "network.1.bandwidth" of the machine is "machine.network.1.bandwidth" of a study.
std::string study_name(const std::string& field) {
  const bool of_machine = field.starts_with("network.") || field.starts_with("device.") ||
                          field.starts_with("parts.") || field.starts_with("remote_memory.");
  return of_machine ? "machine." + field : field;
}

/// "100 GB/s" of "100GB/s".
std::string spaced(const std::string& text) {
  const std::size_t unit = text.find_first_not_of("0123456789.");
  const bool joined = unit != std::string::npos && unit > 0 && text[unit] != ' ' &&
                      parse_number(text.substr(0, unit)).has_value();
  return joined ? text.substr(0, unit) + " " + text.substr(unit) : text;
}

/// Returns the text in quotes, unless it is a number or a truth value, which have none.
std::string scalar(const std::string& text) {
  return parse_number(text) || parse_bool(text) ? text : exact_text(text);
}

/// A machine's values have units: with a space, as YAML files have them.
std::string yaml_value(const std::string& field, const std::string& text) {
  return scalar(field.starts_with("machine.") ? spaced(text) : text);
}

/// Values as a study has them: "a..b" doubles, "a..b+c" adds, else a list between commas.
std::string study_values(const std::string& field, const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) {
    const std::string list = joined(plan::list_items(text), ", ", [&](const std::string& item) {
      return yaml_value(field, item);
    });
    return "[" + list + "]";
  }
  const std::string from = text.substr(0, dots);
  const std::string rest = text.substr(dots + 2);
  const std::size_t plus = rest.find('+');
  const std::string by =
      plus == std::string::npos ? "factor: 2" : "step: " + yaml_value(field, rest.substr(plus + 1));
  return fmt::format("{{from: {}, to: {}, {}}}", yaml_value(field, from),
                     yaml_value(field, rest.substr(0, plus)), by);
}

/// "FIELD=REST".
std::pair<std::string, std::string> halves(const char* flag, const std::string& text,
                                           const char* expected, Error& mistakes) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    mistakes.add(wrong_value(flag, text, expected));
    return {};
  }
  return {study_name(text.substr(0, equals)), text.substr(equals + 1)};
}

std::string study_text(const StepFlags::Names& step, const full::Task& task,
                       const full::Options& options, const std::string& vary) {
  // All of them, so that a new one is not forgotten: a study has it, or PlanCommand refuses its
  // flag.
  [[maybe_unused]] const auto& [top, estimates, simulations, bounds, threads, exhaustive, reserve,
                                objective, simple_within, go_on] = options;
  std::string text = fmt::format(
      "kind: plan\nmodel: {}\nmachine: {}\ndevices: {}\nreserve: {}\nestimates: {}\nobjective: "
      "{}\n",
      exact_text(step.model), exact_text(step.machine), task.devices, exact_text(reserve),
      estimates, name_of(objective));
  text += "plan:\n";
  plan::Plan::fields([&](std::string_view name, auto member, std::string_view) {
    if (task.fixed.places.contains(std::string(name))) {
      text += fmt::format("  {}: {}\n", name, scalar(report::value_text(task.fixed.plan.*member)));
    }
  });
  if (!task.only.empty()) {
    text += "only:\n";
  }
  for (const auto& [field, values] : task.only) {
    const std::string list =
        joined(values, ", ", [&](const std::string& value) { return scalar(value); });
    text += fmt::format("  {}: [{}]\n", field, list);
  }
  return text + "vary:\n" + vary;
}

}  // namespace

void VaryFlags::declare(Options& options) {
  options.values("--vary", vary_, "FIELD=VALUES",
                 "which machine: a field of the machine (network.1.bandwidth), devices or model; "
                 "A..B doubles, A..B+C adds, or a list; may be repeated");
  options.values("--price", prices_, "FIELD=USD/UNIT",
                 "with --vary: what a device costs more an hour for each unit above its file");
  options.value("--budget", budget_, "USD", "with --vary: an hour of all devices costs no more");
}

bool VaryFlags::varies(const std::string& field) const {
  return std::any_of(vary_.begin(), vary_.end(), [&](const std::string& text) {
    const std::string name = study_name(text.substr(0, text.find('=')));
    return field.ends_with('.') ? name.starts_with(field) : name == field;
  });
}

std::string VaryFlags::read(sweep::DesignOptions& how, Error& mistakes) const {
  std::string vary;
  for (const std::string& text : vary_) {
    const auto [field, values] = halves(
        "--vary", text, "FIELD=VALUES, as in network.1.bandwidth=100GB/s..800GB/s", mistakes);
    vary += fmt::format("  {}: {}\n", exact_text(field), study_values(field, values));
  }
  if (vary_.empty()) {
    mistakes.add({"--vary", {}, {}, "missing; what --price and --budget choose from"});
  }
  for (const std::string& text : prices_) {
    const auto [field, price] =
        halves("--price", text, "FIELD=USD/UNIT, as in network.1.bandwidth=0.01/GB/s", mistakes);
    const std::size_t slash = std::min(price.find('/'), price.size());
    const auto money = parse_value<Money>(price.substr(0, slash));
    if (!field.empty() && !money) {
      mistakes.add(wrong_value("--price", text, money.error()));
    }
    const std::string unit = slash == price.size() ? "" : price.substr(slash + 1);
    how.prices.push_back({field, unit, money.value_or(Money(0))});
  }
  if (budget_) {
    how.budget = Money(0);
    take("--budget", budget_, *how.budget, mistakes);
  }
  return vary;
}

Result<std::string> VaryFlags::run(const StepFlags::Names& step, const full::Task& task,
                                   const full::Options& options,
                                   const std::optional<std::string>& plot, bool json) const {
  Error mistakes;
  sweep::DesignOptions how;
  const std::string vary = read(how, mistakes);
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  how.threads = options.threads;
  ProgressBar bar("planning");
  how.progress = [&](double share) { bar.update(share); };
  const auto design =
      parse_config(study_text(step, task, options, vary), "--vary", ConfigSyntax::yaml)
          .and_then([](const ConfigNode& node) { return sweep::parse_study(node, "vary"); })
          .and_then([&](const sweep::Study& study) { return sweep::design(study, how); });
  if (!design) {
    return fail(design.error());
  }
  if (design->best.empty()) {
    const std::string& first = design->points.front().outcome.error;
    const bool one_cause = !first.empty() && std::ranges::all_of(design->points, [&](auto& point) {
      return point.outcome.error == first;
    });
    Error none = one_cause    ? Error()
                 : how.budget ? Error("no machine within the budget has a plan that fits")
                              : Error("no machine has a plan that fits");
    std::istringstream lines(one_cause ? first : report::design_table(*design));
    for (std::string line; std::getline(lines, line);) {
      none.add(Error(std::move(line)));
    }
    return fail(std::move(none));
  }
  if (plot) {
    const auto written =
        report::design_plot(step.model + " on " + step.machine, *design)
            .and_then([&](const std::string& svg) { return write_file(*plot, svg); });
    if (!written) {
      return fail(written.error());
    }
  }
  return json ? report::design_json(*design) : report::design_table(*design);
}

}  // namespace orrery::cli
