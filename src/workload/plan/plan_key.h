// SPDX-License-Identifier: Apache-2.0
/// Plans as keys of hash tables: by all of their fields, by all but some, or by some alone.
///
///   hash = high half into low of  sum over the fields of word_i k_i,  k_i odd
///
/// No field waits for the one before it: a search asks this some million times. The fields visit
/// themselves, so a new one is part of every key that does not name its own.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "workload/plan/plan.h"

namespace orrery::plan {

/// A sum of words, mixed.
class KeyMixer {
 public:
  template <class T>
  void add(const T& value) {
    key_ += 0x9e3779b97f4a7c15U;
    sum_ += word(value) * (key_ | 1U);
  }
  std::size_t hash() const { return sum_ ^ (sum_ >> 32U); }

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

  std::uint64_t key_ = 0;
  std::uint64_t sum_ = 0;
};

/// Members of Plan: what is equal in all others is one key.
template <auto... kMembers>
struct AllFieldsBut {
  struct Hash {
    std::size_t operator()(const Plan& plan) const {
      KeyMixer mixer;
      Plan::fields([&](std::string_view, auto member, std::string_view) {
        if (!is_left_out(member)) {
          mixer.add(plan.*member);
        }
      });
      return mixer.hash();
    }
  };
  struct Equal {
    bool operator()(const Plan& a, const Plan& b) const {
      bool equal = true;
      Plan::fields([&](std::string_view, auto member, std::string_view) {
        equal = equal && (is_left_out(member) || a.*member == b.*member);
      });
      return equal;
    }
  };

 private:
  template <class Member>
  static constexpr bool is_left_out([[maybe_unused]] Member member) {
    return (is_same(member, kMembers) || ...);
  }
  template <class A, class B>
  static constexpr bool is_same(A a, B b) {
    if constexpr (std::is_same_v<A, B>) {
      return a == b;
    } else {
      return false;
    }
  }
};

/// Members of Plan: what is equal in these is one key.
template <auto... kMembers>
struct FieldsAlone {
  struct Hash {
    std::size_t operator()(const Plan& plan) const {
      KeyMixer mixer;
      (mixer.add(plan.*kMembers), ...);
      return mixer.hash();
    }
  };
  struct Equal {
    bool operator()(const Plan& a, const Plan& b) const {
      return ((a.*kMembers == b.*kMembers) && ...);
    }
  };
};

using PlanHash = AllFieldsBut<>::Hash;

/// Values by some fields of plans (AllFieldsBut, FieldsAlone); at most so many, then it begins
/// anew. Nothing is copied, nor made, to find one; that of the plan before is not even looked for.
template <class Fields, class Value, std::size_t kMost>
class PlanTable {
 public:
  PlanTable() = default;
  PlanTable(const PlanTable&) = delete;
  PlanTable& operator=(const PlanTable&) = delete;

  /// Returns the value of `plan`, made by make() the first time. Valid until the next get().
  template <class Make>
  Value& get(const Plan& plan, const Make& make) {
    if (last_ != nullptr && values_.key_eq()(last_->first, plan)) {
      return last_->second;
    }
    auto found = values_.find(plan);
    if (found == values_.end()) {
      Value value = make();
      if (values_.size() == kMost) {
        values_.clear();
      }
      found = values_.emplace(plan, std::move(value)).first;
    }
    last_ = &*found;
    return last_->second;
  }

 private:
  std::unordered_map<Plan, Value, typename Fields::Hash, typename Fields::Equal>
      values_;  // never iterated over
  std::pair<const Plan, Value>* last_ = nullptr;
};

}  // namespace orrery::plan
