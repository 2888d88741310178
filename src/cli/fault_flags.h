// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "machine/faults/faults.h"
#include "study/workload_run.h"

namespace orrery::cli {

/// --faults and --telemetry-out of a simulated run.
class FaultFlags {
 public:
  void declare(Options& options);
  faults::FaultPlan read(Error& mistakes) const;
  bool records() const { return telemetry_.has_value(); }
  /// Writes the telemetry, if it is asked for; then why the run stopped, if it has, is the mistake.
  Result<void> conclude(const study::WorkloadRun& run, const faults::FaultPlan& faults) const;

 private:
  std::optional<std::string> file_;
  std::optional<std::string> telemetry_;
};

}  // namespace orrery::cli
