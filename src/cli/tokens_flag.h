// SPDX-License-Identifier: Apache-2.0
/// --tokens: how many a whole training run takes.
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "planner/full/search.h"
#include "study/run_plan.h"

namespace orrery::cli {

class TokensFlag {
 public:
  void declare(Options& options, const char* sentence) {
    options.value("--tokens", text_, "COUNT", sentence);
  }
  const std::optional<std::string>& text() const { return text_; }
  bool given() const { return text_.has_value(); }

  /// Returns the number, 1 where the flag is missing; mistakes: what is no number of tokens.
  double read(Error& mistakes);

  struct WholeRun {
    std::optional<study::RunPlan> plan;
    std::string table;  ///< an empty line before it
  };
  /// Returns what a run of steps of a found plan takes, without stops; nothing without the flag.
  /// Mistakes: fewer tokens than a step has. Requires read().
  Result<WholeRun> whole_run(const full::Task& task, const plan::Plan& found) const;
  /// Mistakes of study::plan_run's `tokens`, at the flag.
  static Error placed(Error error);

 private:
  std::optional<std::string> text_;
  double tokens_ = 1;
};

}  // namespace orrery::cli
