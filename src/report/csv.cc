// SPDX-License-Identifier: Apache-2.0
#include "base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "report/report.h"
#include "study/energy.h"
#include "study/tensor_overlap.h"

namespace orrery::report {
namespace {

/// Names and values side by side, so that header and line cannot disagree.
class Columns {
 public:
  void add(std::string_view name, const std::string& value) {
    header_ += (header_.empty() ? "" : ",") + csv_cell(std::string(name));
    line_ += (first_ ? "" : ",") + csv_cell(value);
    first_ = false;
  }
  void add(std::string_view name, double value) { add(name, fmt::format("{}", value)); }
  std::string text() const { return header_ + "\n" + line_ + "\n"; }

 private:
  std::string header_;
  std::string line_;
  bool first_ = true;
};

void add_memory(Columns& columns, const study::Run& run) {
  if (run.memory.empty()) {
    return;
  }
  const auto fullest =
      std::max_element(run.memory.begin(), run.memory.end(),
                       [](const footprint::StageMemory& a, const footprint::StageMemory& b) {
                         return a.total() < b.total();
                       });
  columns.add("memory_stage", std::to_string(fullest - run.memory.begin()));
  for (const Named<plan::MemoryCategory>& category : kNames<plan::MemoryCategory>) {
    columns.add(fmt::format("memory_bytes.{}", category.name),
                std::to_string((*fullest)[category.value].value()));
  }
  columns.add("memory_bytes.total", std::to_string(fullest->total().value()));
  columns.add("memory_moment", footprint::to_string(fullest->moment, fullest->chunked));
  columns.add("memory_bytes.host", std::to_string(fullest->lower[0].value()));
  columns.add("memory_bytes.storage", std::to_string(fullest->lower[1].value()));
  columns.add("memory_bytes.remote", std::to_string(fullest->lower[graph::kRemoteLower].value()));
  columns.add("memory_bytes.capacity", std::to_string(run.capacity.value()));
  columns.add("fits", value_text(run.fits));
}

void add_overlap(Columns& columns, const study::Run& run) {
  const std::optional<study::StepOverlap> overlap = study::overlap_of(run);
  const auto bytes = [&](const study::TileAccesses study::StepOverlap::*accesses) {
    return overlap ? fmt::format("{}", ((*overlap).*accesses).total()) : std::string();
  };
  columns.add("overlap_tensor.hypothetical", overlap ? overlap->hypothetical : std::string());
  columns.add("overlap_tensor.unfused_bytes.total", bytes(&study::StepOverlap::unfused));
  columns.add("overlap_tensor.fused_bytes.total", bytes(&study::StepOverlap::fused));
}

}  // namespace

std::string csv_report(const study::Run& run) {
  Columns columns;
  columns.add("model", run.model.name);
  columns.add("machine", run.machine.name);
  columns.add("devices", std::to_string(run.devices));
  columns.add("network", std::string(name_of(run.network)));
  plan::Plan::fields([&](std::string_view name, auto member, std::string_view) {
    columns.add(fmt::format("plan.{}", name), value_text(run.plan.*member));
  });
  columns.add("step_time_s", to_seconds(run.timeline.step_time));
  columns.add("tokens_per_s", run.tokens_per_s);
  columns.add("model_flops_per_device", run.model_flops_per_device.value());
  columns.add("hardware_flops_per_device", run.hardware_flops_per_device.value());
  columns.add("peak_type", std::string(name_of(run.peak_type)));
  columns.add("mfu", run.mfu);
  columns.add("hfu", run.hfu);
  const simulate::Breakdown& breakdown = run.timeline.breakdown;
  for (std::size_t row = 0; row < breakdown.time.size(); ++row) {
    columns.add(fmt::format("breakdown_s.{}", run.timeline.categories.name(row)),
                to_seconds(breakdown.time[row]));
  }
  for (std::size_t group = 0; group < breakdown.hidden.size(); ++group) {
    columns.add(fmt::format("hidden_s.{}", run.workload.groups[group].name),
                to_seconds(breakdown.hidden[group]));
  }
  add_memory(columns, run);
  add_overlap(columns, run);
  const auto energy = study::energy_of(run);
  const auto cost = study::cost_of(run);
  columns.add("energy.per_step_j", energy ? fmt::format("{}", energy->total().value()) : "");
  columns.add("cost.per_step", cost ? fmt::format("{}", cost->per_step.value()) : "");
  columns.add("events", std::to_string(run.timeline.events));
  columns.add("wall_s", run.wall_s);
  columns.add("events_per_s", events_per_second(run));
  return columns.text();
}

}  // namespace orrery::report
