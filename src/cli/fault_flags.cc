// SPDX-License-Identifier: Apache-2.0
#include "cli/fault_flags.h"

#include "base/file.h"
#include "report/telemetry.h"

namespace orrery::cli {

void FaultFlags::declare(Options& options) {
  options.value("--faults", file_, "FILE",
                "what breaks when: slow ranks, links, nodes (docs/models/faults.md)");
  options.value("--telemetry-out", telemetry_, "FILE",
                "also write what the ranks would have recorded, for `orrery diagnose`");
}

faults::FaultPlan FaultFlags::read(Error& mistakes) const {
  if (!file_) {
    return {};
  }
  auto plan = faults::load_faults(*file_);
  if (!plan) {
    mistakes.add(std::move(plan.error()));
    return {};
  }
  return std::move(*plan);
}

Result<void> FaultFlags::conclude(const study::WorkloadRun& run,
                                  const faults::FaultPlan& faults) const {
  if (telemetry_) {
    const report::Measurement noise{faults.measurement_noise, faults.seed};
    if (auto written = write_file(*telemetry_, report::telemetry_text(run, noise)); !written) {
      return written;
    }
  }
  if (run.timeline.stopped) {
    return fail(run.timeline.stopped->why);
  }
  return {};
}

}  // namespace orrery::cli
