// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "planner/full/space.h"

namespace orrery::full {

/// The plans that a variant becomes by the ways to save memory, the lightest first: what saves more
/// is only looked at once everything that saves less of the same has turned out not to fit, since
/// saving never makes a step faster.
class Savings {
 public:
  Savings(const Space& space, plan::Plan variant)
      : variant_(std::move(variant)), states_(space.savings(), State::waiting) {}

  /// Marks a saving that does not fit, or is no plan.
  void fail(std::size_t saving) { states_[saving] = State::failed; }

  /// Returns one that waits for nothing any more; savings() when there is none for now.
  std::size_t next(const Space& space) {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (states_[i] == State::waiting && is_free(space, i)) {
        states_[i] = State::taken;
        return i;
      }
    }
    return states_.size();
  }

  const plan::Plan& variant() const { return variant_; }

  plan::Plan plan(const Space& space, std::size_t saving) const {
    return space.with_saving(variant_, saving);
  }

 private:
  enum class State : std::uint8_t { waiting, taken, failed };

  bool is_free(const Space& space, std::size_t saving) const {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (states_[i] != State::failed && space.saves_less(i, saving)) {
        return false;
      }
    }
    return true;
  }

  plan::Plan variant_;
  std::vector<State> states_;
};

}  // namespace orrery::full
