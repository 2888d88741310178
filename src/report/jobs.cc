// SPDX-License-Identifier: Apache-2.0
#include "report/jobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"

namespace orrery::report {
namespace {

/// "0-7, 16": runs of numbers one after the other, in the job's order.
std::string ranges(const std::vector<std::int64_t>& numbers) {
  constexpr std::size_t kMostShown = 32;
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    text += text.empty() ? "" : ", ";
    text += last > i ? fmt::format("{}-{}", numbers[i], numbers[last]) : std::to_string(numbers[i]);
    i = last + 1;
    if (text.size() > kMostShown && i < numbers.size()) {
      return text + ", ...";
    }
  }
  return text;
}

}  // namespace

std::string jobs_table(const study::JobsRun& run) {
  std::size_t width = 4;
  for (const study::JobResult& job : run.jobs) {
    width = std::max(width, job.name.size());
  }
  std::string text =
      fmt::format("{} jobs on {} devices of {}, network {}; all over after {}\n", run.jobs.size(),
                  run.devices, run.machine.name, name_of(run.network), to_string(run.end));
  text += fmt::format("{:<{}} {:>12} {:>12} {:>12} {:>9}  devices\n", "job", width, "start",
                      "takes", "alone", "slowdown");
  for (const study::JobResult& job : run.jobs) {
    text += fmt::format("{:<{}} {:>12} {:>12} {:>12} {:>8.4f}x  {}\n", job.name, width,
                        to_string(job.start), to_string(job.finish - job.start),
                        to_string(job.alone), job.slowdown, ranges(job.ranks));
  }
  return text;
}

void declare(const study::JobsRun& run, Fields& fields) {
  fields.field("machine", "its name", run.machine.name);
  fields.field("devices", "of the machine", run.devices);
  fields.field("network", "network model", name_of(run.network));
  fields.field("end_s", "when the last job is over", run.end);
  fields.field("events", "node completions of the run together", run.events);
  fields.list(
      "jobs", {"in the order of the file", "a job"}, run.jobs, [&](const study::JobResult& job) {
        fields.field("name", "of the job", job.name);
        fields.field("start_s", "when it begins", job.start);
        fields.field("finish_s", "when its last rank is done", job.finish);
        fields.field("alone_s", "what it takes on the same devices without the others", job.alone);
        fields.field("slowdown", "(finish - start) / alone", job.slowdown);
        fields.values("devices", {"by rank", "a device"}, job.ranks);
      });
}

}  // namespace orrery::report
