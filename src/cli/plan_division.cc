// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_division.h"

#include <fmt/format.h>

#include <utility>

#include "base/reader.h"
#include "cli/interrupt.h"
#include "cli/plan_choices.h"
#include "cli/progress.h"
#include "planner/advice/division.h"
#include "report/plan_division.h"
#include "study/run_plan.h"
#include "workload/plan/plan_lists.h"

namespace orrery::cli {
namespace {

/// "MODEL,FIELD=VALUE,...": the work like `first`, with this model, its tokens and fields.
advice::Work read_work(const std::string& text, advice::Work first, Error& mistakes) {
  std::vector<std::string> fix;
  std::string where = "--also";
  bool named = false;
  bool has_tokens = false;
  for (const std::string& part : plan::list_items(text)) {
    if (!std::exchange(named, true)) {
      first.name = part;
      first.task.model = load_named(where, part, zoo::load_model, mistakes);
      where += " " + part;
    } else if (part.starts_with("tokens=")) {
      const auto tokens = study::parse_tokens(part.substr(part.find('=') + 1));
      if (!tokens) {
        mistakes.add(wrong_value(where, part, tokens.error()));
      }
      if (std::exchange(has_tokens, true)) {
        mistakes.add(wrong_value(where, part, "tokens once for a model"));
      }
      first.tokens = tokens.value_or(1);
    } else {
      fix.push_back(part);
    }
  }
  if (!named) {
    mistakes.add(wrong_value(where, text, "MODEL,FIELD=VALUE,..."));
    return first;
  }
  full::Task own = first.task;
  own.fixed.places.clear();
  read_choices(fix, {}, own, mistakes, where);
  for (const auto& [field, place] : own.fixed.places) {
    first.task.fixed.places[field] = place;
  }
  first.task.fixed.plan = own.fixed.plan;
  return first;
}

}  // namespace

void AlsoFlag::declare(Options& options) {
  options.values("--also", also_, "MODEL,FIELD=VALUE,...",
                 "another model that trains at the same time on part of the devices: its tokens, "
                 "batch and other fields where they differ; may be repeated; goes with --tokens");
}

void AlsoFlag::check(const full::Task& task, const full::Options& options, bool tokens_given,
                     Error& mistakes) const {
  if (!given()) {
    return;
  }
  if (!tokens_given) {
    mistakes.add({"--tokens", {}, {}, "missing; --also wants what the models are trained on"});
  }
  if (!task.machine.parts.empty()) {
    mistakes.add({"--also", {}, {}, "wants devices that are alike: the machine has parts"});
  }
  if (options.objective == full::Objective::headroom) {
    mistakes.add({"--objective", {}, {}, "of several models is time, cost or tokens_per_joule"});
  }
}

Result<std::string> AlsoFlag::run(const std::string& name, const full::Task& task, double tokens,
                                  const full::Options& options, bool json) const {
  Error mistakes;
  std::vector<advice::Work> works{{.name = name, .task = task, .tokens = tokens}};
  for (const std::string& text : also_) {
    works.push_back(read_work(text, works.front(), mistakes));
  }
  const std::int64_t node = advice::devices_of_node(task.machine);
  const auto count = static_cast<std::int64_t>(works.size());
  if (task.devices % node != 0 || task.devices / node < count) {
    mistakes.add(
        {"--devices",
         {},
         std::to_string(task.devices),
         fmt::format("whole nodes of {}, one for each of {} models at the least", node, count)});
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  ProgressBar bar("dividing");
  full::Options own = options;
  own.go_on = Interrupt::going_on;
  report::DivisionReport report{
      .machine = task.machine.name,
      .devices = task.devices,
      .objective = options.objective,
      .works = works,
      .division = advice::division(works, task.devices, own, [&](double) { bar.update(0); })};
  report.ended_early = !Interrupt::going_on();
  if (!report.division.runs()) {
    return fail(report.ended_early ? Error("the search was ended before every model had a plan")
                                   : std::move(report.division.missing));
  }
  return json ? report::json_of(report) : report::division_table(report);
}

}  // namespace orrery::cli
