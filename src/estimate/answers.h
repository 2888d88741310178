// SPDX-License-Identifier: Apache-2.0
/// What an estimator has answered, by plan.
#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>

#include "base/result.h"
#include "estimate/estimate.h"
#include "estimate/replay.h"
#include "workload/memory/footprint.h"
#include "workload/plan/plan.h"
#include "workload/plan/plan_key.h"

namespace orrery::estimate {

struct Answer {
  std::optional<Estimate> estimate{};
  std::optional<Estimate> maps{};  ///< without events, where there may be some
  std::optional<footprint::Fullest> memory{};
};

class Answers {
 public:
  /// Null: nothing is kept of the plan. Valid until the next of().
  const Answer* find(const plan::Plan& plan) const {
    const auto known = by_plan_.find(plan);
    return known == by_plan_.end() ? nullptr : &known->second;
  }
  /// To be filled in.
  Answer& of(const plan::Plan& plan) {
    if (by_plan_.size() == kMost && !by_plan_.contains(plan)) {
      by_plan_.clear();
    }
    return by_plan_[plan];
  }
  /// What make() says the first time. Kept beside a time alone: to find it again takes about as
  /// long as to sum it up.
  template <class Make>
  Result<footprint::Fullest> memory(const plan::Plan& plan, const Make& make) {
    const auto known = by_plan_.find(plan);
    if (known == by_plan_.end() || !known->second.memory) {
      Result<footprint::Fullest> memory = make();
      if (known == by_plan_.end() || !memory) {
        return memory;
      }
      known->second.memory = *memory;
    }
    return *known->second.memory;
  }

 private:
  /// Some 15 MB: a search asks for the same plan from several sides.
  static constexpr std::size_t kMost = 16384;

  std::unordered_map<plan::Plan, Answer, plan::PlanHash> by_plan_;  // never iterated over
};

/// Of the busiest stage.
Estimate parts_of(const ReplayResult& run);

/// Or that the step takes longer than maps can say: half the range of Time (pass_map.h).
Result<Estimate> within_range(const Estimate& estimate);

}  // namespace orrery::estimate
