// SPDX-License-Identifier: Apache-2.0
/// `orrery astra --native`: the same traces with ASTRA-sim's semantics and on the event loop of
/// training steps, side by side. One cycle is a nanosecond.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compat/astra/run.h"
#include "study/workload_run.h"

namespace orrery::report {

struct NativeReport {
  /// ASTRA-sim's, unless it cannot run the traces: then why not.
  std::optional<astra::RunResult> compat;
  std::string compat_failure;
  std::string backend;  ///< of compat
  study::WorkloadRun native;
  std::vector<std::string> warnings;
};

/// Returns the cycles of the last and the first rank and the greatest exposed communication (a
/// rank's finish less what it computes) with their ratios; then the dimensions of the machine, and
/// what the time of the loop's last rank counts as.
std::string native_table(const NativeReport& report);

/// Returns {"machine", "network" (the model), "backend", "compat": {"cycles", "cycles_min",
/// "exposed_cycles", "messages", "classes"} or {"error"}, "native": {"cycles", "cycles_min",
/// "exposed_cycles", "simulated" (ranks), "unfolded"}, "ratio" (native over compat cycles, null
/// without compat), "dimensions": [{"name", "kind", "size", "bandwidth" (B/s of a device),
/// "latency_ns"}], "breakdown": {category: cycles of the loop's last rank}, "ranks": [{"rank",
/// "compat_cycles" (null), "native_cycles"}] of the ranks that the loop simulated, each for those
/// that mirror it, "warnings"}.
std::string native_json(const NativeReport& report);

}  // namespace orrery::report
