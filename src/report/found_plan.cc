// SPDX-License-Identifier: Apache-2.0
#include "report/found_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "report/report.h"

namespace orrery::report {

std::string lost(const full::Found& plan, const full::Found& best) {
  using Part = std::pair<const char*, Time full::Simulated::*>;
  constexpr std::array<Part, 4> kParts{{{"kernels", &full::Simulated::compute},
                                        {"exposed", &full::Simulated::exposed},
                                        {"bubble", &full::Simulated::bubble},
                                        {"tail", &full::Simulated::tail}}};
  const auto more = [&](const Part& part) { return plan.*part.second - best.*part.second; };
  const Part& worst =
      *std::max_element(kParts.begin(), kParts.end(),
                        [&](const Part& a, const Part& b) { return more(a) < more(b); });
  return more(worst) <= Time(0)
             ? std::string()
             : fmt::format("{} +{:.2f} %", worst.first, 100 * (more(worst) / best.step_time));
}

void write_found(JsonWriter& json, const full::Found& found, const full::Found* best) {
  json.begin_object();
  json.key("plan");
  write_plan(json, found.plan);
  json.key("step_time_s").value(to_seconds(found.step_time));
  json.key("unfused_step_time_s").value(found.unfused);
  json.key("estimate_s").value(to_seconds(found.estimate));
  json.key("memory_bytes").value(found.memory.value());
  json.key("mfu").value(found.mfu);
  json.key("tokens_per_s").value(found.tokens_per_s);
  json.key("energy_per_step_j").value(found.energy);
  json.key("cost_per_million_tokens").value(found.cost_per_million_tokens);
  if (best != nullptr) {
    json.key("lost").value(lost(found, *best));
  }
  json.end_object();
}

}  // namespace orrery::report
