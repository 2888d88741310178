// SPDX-License-Identifier: Apache-2.0
#include "base/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/fields.h"
#include "report/report.h"

namespace orrery::report {
namespace {

/// Names and values side by side, so that header and line cannot disagree. Values are those of the
/// report's declaration.
class Columns {
 public:
  explicit Columns(const study::Run& run) { declare(run, report_); }

  void add(std::string_view name, const std::string& value) {
    header_ += (header_.empty() ? "" : ",") + csv_cell(std::string(name));
    line_ += (first_ ? "" : ",") + csv_cell(value);
    first_ = false;
  }
  /// Adds fields of the report; empty where it does not have one.
  void take(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      const auto found = std::ranges::find(report_.flat(), name, &FlatFields::Value::name);
      add(name, found == report_.flat().end() ? std::string() : found->text);
    }
  }
  /// Adds every field of an object: "plan.".
  void take_all(std::string_view prefix) {
    for (const FlatFields::Value& value : report_.flat()) {
      if (value.name.starts_with(prefix)) {
        add(value.name, value.text);
      }
    }
  }
  std::string text() const { return header_ + "\n" + line_ + "\n"; }

 private:
  FlatFields report_;
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
  columns.take({"fits"});
}

}  // namespace

std::string csv_report(const study::Run& run) {
  Columns columns(run);
  columns.take({"model", "machine", "devices", "network"});
  columns.take_all("plan.");
  columns.take({"step_time_s", "tokens_per_s", "model_flops_per_device",
                "hardware_flops_per_device", "peak_type", "mfu", "causal_mfu", "hfu"});
  columns.take_all("breakdown_s.");
  columns.take_all("hidden_s.");
  add_memory(columns, run);
  columns.take({"overlap_tensor.hypothetical", "overlap_tensor.unfused_bytes.total",
                "overlap_tensor.fused_bytes.total", "energy.per_step_j", "cost.per_step", "events",
                "timing.wall_s", "timing.events_per_s"});
  return columns.text();
}

}  // namespace orrery::report
