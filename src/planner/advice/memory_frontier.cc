// SPDX-License-Identifier: Apache-2.0
#include "planner/advice/memory_frontier.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/advice/least_memory.h"

namespace orrery::advice {
namespace {

/// Returns the plans that no other beats in both.
std::vector<full::Found> unbeaten(std::vector<full::Found> plans) {
  std::stable_sort(plans.begin(), plans.end(), [](const full::Found& a, const full::Found& b) {
    return std::pair(a.memory, a.score) < std::pair(b.memory, b.score);
  });
  std::vector<full::Found> best;
  for (full::Found& plan : plans) {
    if (best.empty() || plan.score < best.back().score) {
      best.push_back(std::move(plan));
    }
  }
  return best;
}

}  // namespace

std::vector<full::Found> memory_frontier(const full::Task& task, const full::Options& options,
                                         const full::Answer& answer, const Progress& progress) {
  constexpr int kLimits = 7;
  constexpr double kNear = 1.05;
  std::vector<full::Found> plans = answer.top;
  const Bytes most = answer.top.front().memory;
  const auto least = least_memory(task, options, Bytes(0), most, kNear);
  progress(1.0 / (kLimits + 1));
  if (least && most > Bytes(0)) {
    plans.push_back(*least);
    const double part = least->memory / most;
    for (int i = 1; i <= kLimits && (!options.go_on || options.go_on()); ++i) {
      full::Task limited_task = task;
      full::Options limits = options;
      const Bytes limit = std::max(least->memory, most * std::pow(part, double(i) / kLimits));
      use_memory(limited_task, limits, std::min(limit, most - Bytes(1)));
      if (auto found = good_plan(limited_task, limits)) {
        plans.push_back(std::move(*found));
      }
      progress((i + 1.0) / (kLimits + 1));
    }
  }
  return unbeaten(std::move(plans));
}

full::Found most_free(const std::vector<full::Found>& frontier) {
  constexpr double kSlower = 1.05;
  const Time limit = std::ranges::min(frontier, {}, &full::Found::score).score * kSlower;
  return *std::ranges::min_element(frontier, {}, [&](const full::Found& found) {
    return found.score <= limit ? found.memory : Bytes::max();
  });
}

}  // namespace orrery::advice
