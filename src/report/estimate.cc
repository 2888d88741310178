// SPDX-License-Identifier: Apache-2.0
#include "report/estimate.h"

#include <fmt/format.h>

#include <iterator>

#include "base/format.h"
#include "report/json_writer.h"
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

std::string estimate_json(const study::StepEstimate& estimate) {
  std::string text;
  {
    JsonWriter json([&](std::string_view piece) { text += piece; }, JsonWriter::Layout::indented);
    json.begin_object();
    json.key("devices").value(estimate.devices);
    json.key("step_time_s").value(to_seconds(estimate.time.value));
    json.key("lower_bound_s").value(to_seconds(estimate.time.least));
    json.key("upper_bound_s").value(to_seconds(estimate.time.most));
    write_trust(json, estimate.machine, study::trust_in(estimate.causes),
                to_seconds(estimate.time.value));
    json.key("compute_s").value(to_seconds(estimate.time.compute));
    json.key("exposed_s").value(to_seconds(estimate.time.exposed));
    json.key("bubble_s").value(to_seconds(estimate.time.bubble));
    json.key("tail_s").value(to_seconds(estimate.time.tail));
    json.key("memory_bytes").value(estimate.memory.value());
    json.key("capacity_bytes").value(estimate.capacity.value());
    json.key("fits").value(estimate.fits);
    if (!estimate.hypothetical.empty()) {
      json.key("hypothetical").value(estimate.hypothetical);
    }
    json.end_object();
  }
  return text + "\n";
}

}  // namespace orrery::report
