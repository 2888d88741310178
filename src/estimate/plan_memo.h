// SPDX-License-Identifier: Apache-2.0
/// Values by plan.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "workload/plan/plan.h"

namespace orrery::estimate {

/// Mixes every field of a plan. The fields visit themselves, so a new one cannot be forgotten.
///
///   hash = high half into low of  sum over the fields of word_i k_i,  k_i odd
///
/// No field waits for the one before it: a search asks this some million times.
struct PlanHash {
  std::size_t operator()(const plan::Plan& plan) const {
    std::uint64_t hash = 0;
    std::uint64_t key = 0;
    plan::Plan::fields([&](std::string_view, auto member, std::string_view) {
      key += 0x9e3779b97f4a7c15U;
      hash += word(plan.*member) * (key | 1U);
    });
    return hash ^ (hash >> 32U);
  }

 private:
  template <class T>
  static std::uint64_t word(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      return value.empty() ? 0 : std::hash<T>()(value);  // most are
    } else if constexpr (std::is_floating_point_v<T>) {
      return std::bit_cast<std::uint64_t>(value + T(0));  // equal ones alike, also -0
    } else if constexpr (requires { value.value(); }) {
      return static_cast<std::uint64_t>(value.value());
    } else {
      return static_cast<std::uint64_t>(value);
    }
  }
};

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
  std::unordered_map<plan::Plan, Value, PlanHash> values_;
};

}  // namespace orrery::estimate
