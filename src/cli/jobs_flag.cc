// SPDX-License-Identifier: Apache-2.0
#include "cli/jobs_flag.h"

#include "cli/progress.h"
#include "report/jobs.h"

namespace orrery::cli {

void JobsFlag::declare(Options& options) {
  options.value("--jobs", file_, "FILE",
                "run several jobs on the machine instead (docs/models/jobs.md)");
}

Result<std::string> JobsFlag::run(const StepInput& step, simulate::SimulateOptions options,
                                  bool json) const {
  ProgressBar progress;
  options.progress = [&](double share, std::uint64_t events) { progress.update(share, events); };
  return study::load_jobs(*file_, step.machine)
      .and_then([&](const study::JobsFile& file) {
        return study::run_jobs(file, step.machine, step.devices, options);
      })
      .map([&](const study::JobsRun& run) {
        return json ? report::json_of(run) : report::jobs_table(run);
      });
}

}  // namespace orrery::cli
