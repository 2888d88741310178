// SPDX-License-Identifier: Apache-2.0
#include "report/jobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"
#include "report/json_writer.h"

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

std::string jobs_json(const study::JobsRun& run) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("machine").value(run.machine.name);
    json.key("devices").value(run.devices);
    json.key("network").value(name_of(run.network));
    json.key("end_s").value(to_seconds(run.end));
    json.key("events").value(run.events);
    json.key("jobs").begin_array();
    for (const study::JobResult& job : run.jobs) {
      json.begin_object();
      json.key("name").value(job.name);
      json.key("start_s").value(to_seconds(job.start));
      json.key("finish_s").value(to_seconds(job.finish));
      json.key("alone_s").value(to_seconds(job.alone));
      json.key("slowdown").value(job.slowdown);
      json.key("devices").begin_array();
      for (const std::int64_t device : job.ranks) {
        json.value(device);
      }
      json.end_array();
      json.end_object();
    }
    json.end_array();
    json.end_object();
  });
}

}  // namespace orrery::report
