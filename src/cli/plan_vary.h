// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/step_flags.h"
#include "planner/full/search.h"
#include "study/sweep/design.h"

namespace orrery::cli {

/// --vary, --price and --budget: which machine for which model (study/sweep/design.h).
class VaryFlags {
 public:
  void declare(Options& options);
  bool given() const { return !vary_.empty() || !prices_.empty() || budget_.has_value(); }

  /// Returns whether a study's `field` is varied, or, with a dot at its end, one below it.
  bool varies(const std::string& field) const;

  /// The study of what is varied, run; the chart goes to `plot`. `step`: names of model and
  /// machine. Mistakes: texts that are none, and all of sweep::parse_study() and design().
  Result<std::string> run(const StepFlags::Names& step, const full::Task& task,
                          const full::Options& options, const std::optional<std::string>& plot,
                          bool json) const;

 private:
  /// Reads what is varied, as a study has it; prices and budget.
  std::string read(sweep::DesignOptions& how, Error& mistakes) const;

  std::vector<std::string> vary_;
  std::vector<std::string> prices_;
  std::optional<std::string> budget_;
};

}  // namespace orrery::cli
