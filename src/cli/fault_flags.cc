// SPDX-License-Identifier: Apache-2.0
#include "cli/fault_flags.h"

#include <cmath>
#include <map>

#include "base/file.h"
#include "report/telemetry.h"
#include "simulate/fault_places.h"

namespace orrery::cli {
namespace {

/// Ranks that are gone at the end, and since when.
std::map<std::int64_t, Time> ranks_gone(const study::WorkloadRun& run,
                                        const faults::FaultPlan& faults) {
  std::map<std::int64_t, Time> gone;
  const bool links_change = row_of(run.network).links_change;
  const auto schedule = faults::schedule_of(
      faults, simulate::fault_places(run.machine, name_of(run.network), links_change));
  for (const faults::Change& change :
       schedule ? schedule->changes : std::vector<faults::Change>{}) {
    if (!change.link && std::isinf(change.value)) {
      gone.try_emplace(change.place, change.at);
    } else if (!change.link) {
      gone.erase(change.place);
    }
  }
  return gone;
}

}  // namespace

void FaultFlags::declare(Options& options) {
  options.value("--faults", file_, "FILE",
                "what breaks when: slow ranks, links, nodes (docs/models/faults.md)");
  options.output("--telemetry-out", telemetry_, "FILE",
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
    const report::Measurement measurement{faults.measurement_noise, faults.seed,
                                          ranks_gone(run, faults)};
    if (auto written = write_file(*telemetry_, report::telemetry_text(run, measurement));
        !written) {
      return written;
    }
  }
  if (run.timeline.stopped) {
    return fail(run.timeline.stopped->why);
  }
  return {};
}

}  // namespace orrery::cli
