// SPDX-License-Identifier: Apache-2.0
#include "planner/advice/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/lists.h"
#include "machine/device_groups.h"
#include "planner/full/summary.h"

namespace orrery::advice {
namespace {

/// Says that no plan fits, and what the most frugal one lacks.
std::string why_none(const full::Task& task, const full::Answer& answer) {
  if (answer.stopped) {
    return fmt::format("the search was ended before a plan on {} devices was found", task.devices);
  }
  std::string text = fmt::format("no plan {} on {} devices",
                                 answer.complete ? "fits" : "that fits was found", task.devices);
  if (!answer.missing.empty()) {
    text += fmt::format("; the most frugal, {}: {}", full::summary(answer.frugal),
                        joined(answer.missing.mistakes, "; ",
                               [](const Mistake& mistake) { return Error(mistake).to_string(); }));
  }
  return text;
}

Result<full::Found> best_of(const full::Task& task, const full::Options& options) {
  auto answer = full::search(task, options);
  if (!answer) {
    return fail(std::move(answer.error()));
  }
  if (answer->top.empty()) {
    return fail(why_none(task, *answer));
  }
  return std::move(answer->top.front());
}

}  // namespace

full::Options limited(full::Options options, std::size_t estimates, std::size_t simulations) {
  options.top = 1;
  options.exhaustive = false;
  options.most_estimates = std::min(options.most_estimates, estimates);
  options.most_simulations = std::min(options.most_simulations, simulations);
  return options;
}

std::optional<full::Found> any_plan(const full::Task& task, const full::Options& options) {
  auto found = best_of(task, limited(options, 1, 1));
  return found ? std::optional(std::move(*found)) : std::nullopt;
}

full::Options good_limits(const full::Options& options) {
  constexpr std::size_t kEstimates = 100;
  constexpr std::size_t kSimulations = 12;
  return limited(options, kEstimates, kSimulations);
}

Result<full::Found> good_plan(const full::Task& task, const full::Options& options) {
  return best_of(task, good_limits(options));
}

Bytes usable_memory(const full::Task& task, const full::Options& options) {
  const auto& memory = task.machine.device.memory;
  return memory.empty() ? Bytes(0) : std::max(Bytes(0), memory.front().capacity - options.reserve);
}

void use_memory(full::Task& task, full::Options& options, Bytes usable) {
  const bool mixed = !task.machine.parts.empty();
  machine::change_devices(task.machine, [&](compute::Device& device) {
    if (!device.memory.empty()) {
      Bytes& capacity = device.memory.front().capacity;
      const Bytes own = std::max(Bytes(0), capacity - options.reserve);
      capacity = mixed ? std::min(own, usable) : usable;
    }
  });
  options.reserve = Bytes(0);
}

full::Task of_plan(full::Task task, const plan::Plan& plan) {
  task.fixed.plan = plan;
  task.devices = plan.devices();  // of a machine of several sorts it may leave some idle
  plan::Plan::fields([&](std::string_view name, auto, std::string_view) {
    task.fixed.places[std::string(name)] = "the plan";
  });
  task.only.clear();
  return task;
}

std::int64_t devices_of_node(const machine::Machine& machine) {
  if (machine.network.size() < 2) {
    return 1;
  }
  const topology::NetworkDimension& inner = machine.network.front();
  return std::max<std::int64_t>(inner.granule > 0 ? inner.granule : inner.size, 1);
}

}  // namespace orrery::advice
