// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "planner/full/search.h"

namespace orrery::cli {

/// The flags that say how far a search goes and how many plans it answers with.
class PlanLimits {
 public:
  void declare(Options& options);
  /// Options with these limits, all else as by default.
  full::Options read(Error& mistakes) const;

  bool has_top() const { return top_.has_value(); }
  bool has_simulations() const { return simulations_.has_value(); }
  bool has_bounds() const { return bounds_.has_value(); }
  bool is_exhaustive() const { return exhaustive_; }
  /// Returns whether any of them is given.
  bool given() const {
    return top_ || estimates_ || bounds_ || simulations_ || exhaustive_ || threads_;
  }

 private:
  std::optional<std::string> top_;
  std::optional<std::string> estimates_;
  std::optional<std::string> bounds_;
  std::optional<std::string> simulations_;
  std::optional<std::string> threads_;
  bool exhaustive_ = false;
};

}  // namespace orrery::cli
