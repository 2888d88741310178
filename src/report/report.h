// SPDX-License-Identifier: Apache-2.0
/// One run in the forms in which people and programs read it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/format.h"
#include "report/fields.h"
#include "report/json_writer.h"
#include "study/run.h"
#include "study/run_plan.h"

namespace orrery::report {

struct TableOptions {
  bool verbose = false;  ///< also the time of every pass
};

/// Tables for a terminal, at most 100 columns wide: step time and rates, the critical rank's time
/// by category, hidden communication, memory by stage at its fullest moment and which moment that
/// is, what was simulated. With more than 16 stages only the first, the last and the largest are
/// listed, and the text says so.
std::string table_report(const study::Run& run, const TableOptions& options = {});
/// Returns the table of a run that comes from no plan: step time, breakdown, hidden communication,
/// memory by rank where the run has peaks, what was simulated.
std::string table_report(const study::WorkloadRun& run, const TableOptions& options = {});

/// Returns CSV (RFC 4180): one header line, one line of values. Nested keys of the JSON report are
/// joined with dots ("breakdown_s.forward", "plan.tp"). The columns do not depend on the plan, so
/// that lines of several runs stack: memory_bytes is the fullest stage's, named by memory_stage and
/// memory_moment.
std::string csv_report(const study::Run& run);

/// Declares docs/schema/simulate.json, and of a run that comes from no plan
/// docs/schema/simulate-chakra.json. memory_bytes is a list by stage, of a run without a plan by
/// simulated rank; memory_timeline is of the stages that the table lists.
void declare(const study::Run& run, Fields& fields);
void declare(const study::WorkloadRun& run, Fields& fields);
/// Declares a run and, with --tokens, a whole training run of such steps (whole_run).
void declare(const study::Run& run, const std::optional<study::RunPlan>& whole, Fields& fields);
/// Declares every field of the plan, typed.
void declare(const plan::Plan& plan, Fields& fields);
/// The sentence of a field that says what unsold hardware a result rests on.
inline constexpr std::string_view kHypothetical =
    "with overlap_tensor tracked and tracked_mca: what hardware that is not sold the result rests "
    "on";

/// Writes a plan as its file would state it, each field typed.
void write_plan(JsonWriter& json, const plan::Plan& plan);

/// Returns a value as parse_value reads it back equal: "25 MiB", "true", "selective".
template <class T>
std::string value_text(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else {
    return exact_text(value);
  }
}

/// Returns the capacity of a device's own memory; 0 where the machine states none.
Bytes capacity_of(const study::WorkloadRun& run);

/// Returns the stages to list, ascending: all, but of more than 16 the first, the last and the
/// fullest.
std::vector<std::size_t> listed_stages(const study::Run& run);

/// Returns the number of node completions per second of wall time.
double events_per_second(const study::WorkloadRun& run);

}  // namespace orrery::report
