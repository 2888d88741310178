// SPDX-License-Identifier: Apache-2.0
#include "planner/advice/elastic.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/format.h"
#include "machine/device_groups.h"

namespace orrery::advice {
namespace {

std::vector<std::string> changes_of(const plan::Plan& from, const plan::Plan& to) {
  std::vector<std::string> changes;
  plan::Plan::fields([&](std::string_view name, auto member, std::string_view) {
    if (from.*member != to.*member && name != "global_batch") {
      changes.push_back(
          fmt::format("{}: {} -> {}", name, exact_text(from.*member), exact_text(to.*member)));
    }
  });
  return changes;
}

/// Devices and batch.
using Attempt = std::pair<std::int64_t, std::int64_t>;

std::vector<Attempt> tries(const full::Task& task, const plan::Plan& plan, std::int64_t left) {
  std::vector<Attempt> works{{left, plan.global_batch}};
  const std::int64_t replica = plan.tp * plan.cp * plan.pp;
  const auto possible = [&](std::int64_t replicas) {
    return machine::with_devices(task.machine, replicas * replica).has_value();
  };
  const auto divides = [&](std::int64_t replicas) {
    return plan.global_batch % (replicas * plan.microbatch) == 0;
  };
  bool first = true;
  for (std::int64_t replicas = left / replica; replicas > 0; --replicas) {
    if (!possible(replicas)) {
      continue;
    }
    if (first) {
      const std::int64_t step = replicas * plan.microbatch;
      const std::int64_t times = std::max<std::int64_t>((plan.global_batch + step / 2) / step, 1);
      works.emplace_back(replicas * replica, times * step);
      first = false;
    }
    if (divides(replicas)) {
      works.emplace_back(replicas * replica, plan.global_batch);
      break;
    }
  }
  std::sort(works.begin(), works.end());
  works.erase(std::unique(works.begin(), works.end()), works.end());
  return works;
}

/// Returns the task without so many devices of one part.
full::Task without(full::Task task, std::size_t part, std::int64_t node) {
  auto& parts = task.machine.parts;
  parts[part].devices -= node;
  if (parts[part].devices == 0) {
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(part));
  }
  task.machine.device = machine::mean_device(parts);
  task.devices -= node;
  return task;
}

/// Every part in turn loses a node.
std::vector<Fallback> each_part_loses(const full::Task& task, const full::Options& options,
                                      const plan::Plan& plan, std::int64_t node) {
  std::vector<Fallback> fallbacks;
  const std::vector<machine::DeviceGroup>& parts = task.machine.parts;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    if (parts[part].devices < node || task.devices <= node) {
      continue;
    }
    if (auto best = good_plan(without(task, part, node), options)) {
      std::vector<std::string> changes = changes_of(plan, best->plan);
      const std::int64_t used = best->plan.devices();
      fallbacks.push_back({used, task.devices - node - used, plan.global_batch, parts[part].name,
                           std::move(*best), std::move(changes)});
    }
  }
  return fallbacks;
}

}  // namespace

Elastic elastic(const full::Task& task, const full::Options& options, const full::Answer& answer) {
  const plan::Plan& plan = answer.top.front().plan;
  Elastic result{.node = devices_of_node(task.machine), .fallbacks = {}};
  const std::int64_t left = task.devices - result.node;
  if (left < 1) {
    return result;
  }
  full::Task own = task;
  if (const auto cut = machine::with_devices(task.machine, task.devices);
      cut && !task.machine.parts.empty()) {
    own.machine.parts = cut->parts;
    own.machine.device = cut->device;
  }
  const bool alike = own.machine.parts.empty();
  if (!alike) {
    result.fallbacks = each_part_loses(own, options, plan, result.node);
  }
  for (const auto& [devices, batch] : alike ? tries(own, plan, left) : std::vector<Attempt>()) {
    full::Task smaller = own;
    smaller.devices = devices;
    smaller.fixed.plan.global_batch = batch;
    if (auto best = good_plan(smaller, options)) {
      std::vector<std::string> changes = changes_of(plan, best->plan);
      result.fallbacks.push_back(
          {devices, left - devices, batch, "", std::move(*best), std::move(changes)});
    }
  }
  std::stable_sort(result.fallbacks.begin(), result.fallbacks.end(),
                   [](const Fallback& a, const Fallback& b) {
                     return a.best.tokens_per_s > b.best.tokens_per_s;
                   });
  return result;
}

}  // namespace orrery::advice
