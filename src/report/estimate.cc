// SPDX-License-Identifier: Apache-2.0
#include "report/estimate.h"

#include <fmt/format.h>

#include <iterator>

#include "base/format.h"
#include "report/report.h"
#include "report/trust.h"

namespace orrery::report {

std::string estimate_table(const std::string& title, const study::StepEstimate& estimate) {
  std::string text = title + "\n";
  const auto line = [&](const char* name, Time time) {
    fmt::format_to(std::back_inserter(text), "  {:<34}{:>12.6f} s{:>9}\n", name, to_seconds(time),
                   percent(time / estimate.time.value));
  };
  line("estimated step time", estimate.time.value);
  line("  kernels", estimate.time.compute);
  line("  exposed communication and host", estimate.time.exposed);
  line("  pipeline fill, drain and waits", estimate.time.bubble);
  line("  end of the step", estimate.time.tail);
  line("no run is faster than", estimate.time.least);
  line("few runs are slower than", estimate.time.most);
  text += fmt::format("  {:<34}{} of {}: {}\n", "memory of the fullest stage",
                      to_string(estimate.memory), to_string(estimate.capacity),
                      estimate.fits ? "fits" : "does not fit");
  text += fmt::format("  {}\n", trust_text(estimate.machine, study::trust_in(estimate.causes),
                                           estimate.time.value, "\n  "));
  return estimate.hypothetical.empty() ? text : text + "  " + estimate.hypothetical + "\n";
}

void declare(const study::StepEstimate& estimate, Fields& fields) {
  const estimate::Interval& time = estimate.time;
  fields.field("devices", "accelerators of the plan", estimate.devices);
  fields.field("step_time_s", "seconds, estimated", time.value);
  fields.field("lower_bound_s", "seconds; no simulated run is faster", time.least);
  fields.field("upper_bound_s", "seconds; the value times a measured band, not proved", time.most);
  declare_trust(fields, estimate.machine, study::trust_in(estimate.causes), to_seconds(time.value));
  fields.field("compute_s", "part of step_time_s: kernels of the busiest stage", time.compute);
  fields.field("exposed_s",
               "part of step_time_s: its exposed communication, waits for the host, slower kernels",
               time.exposed);
  fields.field("bubble_s", "part of step_time_s: pipeline fill and drain, waits for messages",
               time.bubble);
  fields.field("tail_s", "part of step_time_s: after the last pass", time.tail);
  fields.field("memory_bytes", "of the fullest stage, per device", estimate.memory);
  fields.field("capacity_bytes", "of a device's own memory", estimate.capacity);
  fields.field("fits", "whether every stage fits, in lower tiers too", estimate.fits);
  fields.when(!estimate.hypothetical.empty(), "hypothetical", kHypothetical, estimate.hypothetical);
}

}  // namespace orrery::report
