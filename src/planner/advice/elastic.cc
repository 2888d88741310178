// SPDX-License-Identifier: Apache-2.0
#include "planner/advice/elastic.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/format.h"

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
using Work = std::pair<std::int64_t, std::int64_t>;

std::vector<Work> tries(const full::Task& task, const plan::Plan& plan, std::int64_t left) {
  std::vector<Work> works{{left, plan.global_batch}};
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

}  // namespace

Elastic elastic(const full::Task& task, const full::Options& options, const full::Answer& answer) {
  const plan::Plan& plan = answer.top.front().plan;
  Elastic result{.node = devices_of_node(task.machine), .fallbacks = {}};
  const std::int64_t left = task.devices - result.node;
  if (left < 1) {
    return result;
  }
  for (const auto& [devices, batch] : tries(task, plan, left)) {
    full::Task smaller = task;
    smaller.devices = devices;
    smaller.fixed.plan.global_batch = batch;
    if (auto best = good_plan(smaller, options)) {
      std::vector<std::string> changes = changes_of(plan, best->plan);
      result.fallbacks.push_back(
          {devices, left - devices, batch, std::move(*best), std::move(changes)});
    }
  }
  std::stable_sort(result.fallbacks.begin(), result.fallbacks.end(),
                   [](const Fallback& a, const Fallback& b) {
                     return a.best.tokens_per_s > b.best.tokens_per_s;
                   });
  return result;
}

}  // namespace orrery::advice
