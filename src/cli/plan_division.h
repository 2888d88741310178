// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "planner/full/search.h"

namespace orrery::cli {

/// --also: other models that share the devices of `orrery plan` (planner/advice/division.h).
class AlsoFlag {
 public:
  void declare(Options& options);
  bool given() const { return !also_.empty(); }

  /// Adds what several models want of the other flags, and what they have no answer for.
  void check(const full::Task& task, const full::Options& options, bool tokens_given,
             Error& mistakes) const;

  /// Divides the devices between the task's model and the others. `name` and `tokens` are those of
  /// the task's model. Mistakes: models, fields and tokens that are none; devices that are no
  /// whole nodes, or fewer of these than models.
  Result<std::string> run(const std::string& name, const full::Task& task, double tokens,
                          const full::Options& options, bool json) const;

 private:
  std::vector<std::string> also_;
};

}  // namespace orrery::cli
