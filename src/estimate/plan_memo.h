// SPDX-License-Identifier: Apache-2.0
/// Values by plan.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <utility>

#include "base/result.h"
#include "workload/plan/plan.h"
#include "workload/plan/plan_key.h"

namespace orrery::estimate {

/// Never iterated over, so its order does not matter.
/// Of large values only so many are kept: a sweep seldom comes back to a plan long ago.
template <class Value, std::size_t kMost>
class PlanMemo {
 public:
  void forget(const plan::Plan& key) { values_.erase(key); }

  /// The value of `key`, made by make() the first time. Valid until the next get().
  template <class Make>
  Result<Value*> get(const plan::Plan& key, Make&& make) {
    const auto found = values_.find(key);
    if (found != values_.end()) {
      return &found->second;
    }
    Result<Value> value = make();
    if (!value) {
      return fail(std::move(value.error()));
    }
    if (values_.size() == kMost) {
      values_.clear();
    }
    return &values_.emplace(key, std::move(*value)).first->second;
  }

 private:
  std::unordered_map<plan::Plan, Value, plan::PlanHash> values_;
};

}  // namespace orrery::estimate
