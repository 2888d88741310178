// SPDX-License-Identifier: Apache-2.0
/// Values by plan.
#pragma once

#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "workload/plan/plan.h"

namespace orrery::estimate {

/// Mixes every field of a plan. The fields visit themselves, so a new one cannot be forgotten.
struct PlanHash {
  std::size_t operator()(const plan::Plan& plan) const {
    std::size_t hash = 0;
    plan::Plan::fields([&](std::string_view, auto member, std::string_view) {
      hash = (hash ^ word(plan.*member)) * 0x9e3779b97f4a7c15U;
      hash ^= hash >> 29;
    });
    return hash;
  }

 private:
  template <class T>
  static std::size_t word(const T& value) {
    if constexpr (std::is_same_v<T, std::string> || std::is_floating_point_v<T>) {
      return std::hash<T>()(value);
    } else if constexpr (requires { value.value(); }) {
      return static_cast<std::size_t>(value.value());
    } else {
      return static_cast<std::size_t>(value);
    }
  }
};

/// Never iterated over, so its order does not matter.
template <class Value>
class PlanMemo {
 public:
  /// Of large values only so many are kept: a sweep seldom comes back to a plan long ago.
  static constexpr std::size_t kMost = 32;

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
  std::unordered_map<plan::Plan, Value, PlanHash> values_;
};

}  // namespace orrery::estimate
