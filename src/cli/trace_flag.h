// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "cli/command.h"
#include "study/workload_run.h"

namespace orrery::cli {

/// --trace and --trace-limit. A trace beyond the limit is written once the user at a terminal says
/// so, and refused where there is no terminal.
class TraceFlag {
 public:
  void declare(Options& options);
  bool given() const { return file_.has_value(); }
  void check(Error& mistakes);
  /// Writes it, if it is asked for.
  Result<void> write(const study::WorkloadRun& run) const;

 private:
  Result<void> allow(Bytes size) const;

  std::optional<std::string> file_;
  std::optional<std::string> limit_text_;
  Bytes limit_{400'000'000};
};

}  // namespace orrery::cli
