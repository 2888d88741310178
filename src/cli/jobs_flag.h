// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "cli/step_flags.h"
#include "simulate/simulate.h"

namespace orrery::cli {

/// --jobs: several jobs on one machine instead of one.
class JobsFlag {
 public:
  void declare(Options& options);
  bool given() const { return file_.has_value(); }
  /// Table or JSON of the run. `step`: machine and devices.
  Result<std::string> run(const StepInput& step, simulate::SimulateOptions options,
                          bool json) const;

 private:
  std::optional<std::string> file_;
};

}  // namespace orrery::cli
