// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "planner/full/search.h"
#include "planner/full/summary.h"
#include "study/sweep/config_path.h"
#include "study/sweep/kind.h"
#include "study/sweep/step.h"
#include "workload/interop/capabilities.h"

namespace orrery::sweep {
namespace {

constexpr Bytes kReserve = 2_GiB;
constexpr std::int64_t kEstimates = 1500;
constexpr std::int64_t kMost = 1'000'000;

/// A PlanSearch is what a point searches.
struct PlanSearch {
  full::Task task;
  full::Options options;
};

/// `only: {tp: [1, 2], zero: 3}`.
void read_only(Reader& description, full::Task& task) {
  const ConfigNode* node = description.child("only", false);
  if (node == nullptr) {
    return;
  }
  Reader read(*node);
  for (const ConfigField& field : node->fields) {
    std::vector<std::string>& values = task.only[field.name];
    if (field.value.kind == ConfigNode::Kind::scalar) {
      values.push_back(read.required<std::string>(field.name));
    } else {
      values = read.list<std::string>(field.name, true);
    }
  }
  description.absorb(read.finish(0));
}

Result<PlanSearch> read_search(const ConfigNode& description) {
  Reader read(description);
  Step step = read_step(read);
  PlanSearch search;
  search.options.top = 1;
  search.options.reserve = read.optional("reserve", kReserve);
  read.require(search.options.reserve >= Bytes(0), "reserve", "0 or more bytes");
  const auto estimates = read.optional<std::int64_t>("estimates", kEstimates);
  read.require(estimates > 0 && estimates <= kMost, "estimates", "a number from 1 to 1000000");
  search.options.most_estimates = static_cast<std::size_t>(std::max<std::int64_t>(estimates, 1));
  search.options.objective = read.optional("objective", full::Objective::time);
  read.require(search.options.objective != full::Objective::headroom, "objective",
               "time, tokens_per_joule or cost: headroom is a choice of `orrery plan` afterwards");
  if (auto stated = full::check_objective(search.options.objective, step.machine); !stated) {
    read.reject("objective", stated.error().mistakes.front().expected);
  }
  read.require(step.devices > 0 || !step.machine.parts.empty(), "devices",
               "a number of accelerators; 0 is all of a machine with parts");
  if (read.child("plan", false) == nullptr || !step.plan.places.contains("global_batch")) {
    read.reject("plan", "a map with at least global_batch, sequences per step");
  }
  const std::int64_t devices = step.devices > 0 ? step.devices : devices_in_parts(step.machine);
  search.task = {.model = std::move(step.model),
                 .machine = std::move(step.machine),
                 .devices = devices,
                 .fixed = std::move(step.plan),
                 .only = {}};
  if (interop::launcher_named(search.task.fixed.plan.framework) != nullptr) {
    search.task.launcher = search.task.fixed.plan.framework;
  }
  read_only(read, search.task);
  return read.finish(std::move(search));
}

std::string inputs_of(const PlanSearch& search, const ConfigNode& description) {
  std::string fixed;
  for (const auto& [field, place] : search.task.fixed.places) {
    fixed += " " + field;
  }
  const ConfigNode* only = description.find("only");
  return fmt::format(
      "search\nmodel {}\nmachine {}\nplan {}\nfixed{}\nonly {}\ndevices {}\n"
      "reserve {}\nestimates {}\nobjective {}",
      canonical_text(*description.find("model")), machine::to_yaml(search.task.machine),
      plan::to_yaml(search.task.fixed.plan), fixed, only == nullptr ? "" : canonical_text(*only),
      search.task.devices, search.options.reserve.value(), search.options.most_estimates,
      name_of(search.options.objective));
}

Outcome run_search(const PlanSearch& search) {
  const auto answer = full::search(search.task, search.options);
  if (!answer) {
    return refused(kPlanFigures.size(), search.task.fixed.placed(answer.error()));
  }
  if (answer->top.empty()) {
    Error why = answer->missing;
    why.add(Error("no plan fits; the one whose bound of memory is least: " +
                  full::summary(answer->frugal)));
    return refused(kPlanFigures.size(), why);
  }
  const full::Found& best = answer->top.front();
  const auto stated = [](const auto& value) { return value ? Cell(value->value()) : Cell(); };
  const std::optional<double> gap = answer->gap();
  return {{to_seconds(best.step_time), best.tokens_per_s, best.mfu, best.memory.value(),
           stated(best.energy), stated(best.cost_per_million_tokens), gap ? Cell(*gap) : Cell(),
           full::summary(best.plan), static_cast<std::int64_t>(answer->counts.all),
           static_cast<std::int64_t>(answer->counts.estimated), std::int64_t{answer->complete}},
          ""};
}

}  // namespace

Prepared prepare_plan(const ConfigNode& description) {
  auto read = read_search(description);
  if (!read) {
    return {.inputs = "unread " + canonical_text(description), .mistakes = read.error(), .run = {}};
  }
  const auto search = std::make_shared<PlanSearch>(std::move(*read));
  return {.inputs = inputs_of(*search, description), .mistakes = {}, .run = [search](Shared&) {
            return run_search(*search);
          }};
}

}  // namespace orrery::sweep
