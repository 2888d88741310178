// SPDX-License-Identifier: Apache-2.0
/// One run in the forms in which people and programs read it.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "base/format.h"
#include "report/fields.h"
#include "report/json_writer.h"
#include "study/run.h"

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

/// One JSON object, indented, newline at the end. Keys: model, machine, devices, network, plan,
/// step_time_s, tokens_per_s, model_flops_per_device, hardware_flops_per_device (FLOP/s), mfu, hfu,
/// breakdown_s (by category), hidden_s (by axis), memory_bytes (a list by stage: categories at the
/// fullest moment, total, capacity, fits, moment, host, storage), memory_timeline (of the stages
/// that the table lists: points [piece of work, most bytes while it ran]), fold, events, timing
/// {wall_s, events_per_s, passes_s}, which differs from run to run. When the machine says what its
/// kernels draw: clock {of_full_clock, of_kernel_tables (the rate that is left of the kernel
/// tables'), power_cap_w, limited_by (power or nothing), origin (of the power model: measured,
/// fitted, inferred ...)}. When it states its power: energy {per_step_j, per_step_kwh,
/// average_device_power_w, per_token_j, tokens_per_j, and the parts of study/energy.h}; its price:
/// cost {price_per_hour, per_step, per_million_tokens} in dollars.
std::string json_report(const study::Run& run);
/// Returns the JSON of a run that comes from no plan: name, and the keys above from machine to
/// step_time_s, critical_rank, breakdown_s, hidden_s, memory_bytes (where the run has peaks: a list
/// by simulated rank: rank, kinds of memory at its fullest moment, total, capacity, fits,
/// moment_s), fold to timing.
std::string json_report(const study::WorkloadRun& run);

/// CSV (RFC 4180): one header line, one line of values. Nested keys of the JSON report are joined
/// with dots ("breakdown_s.forward", "plan.tp"). The columns do not depend on the plan, so that
/// lines of several runs stack: memory_bytes is the fullest stage's, named by memory_stage and
/// memory_moment.
std::string csv_report(const study::Run& run);

/// Declares what the JSON of a run says: the keys above, each with its sentence.
void declare(const study::Run& run, Fields& fields);
void declare(const study::WorkloadRun& run, Fields& fields);
/// Declares every field of the plan, typed.
void declare(const plan::Plan& plan, Fields& fields);
/// Returns the JSON schema of json_report(Run): docs/schema/simulate.json.
std::string run_schema();

/// A plan as its file would state it, each field typed.
void write_plan(JsonWriter& json, const plan::Plan& plan);

/// A value as parse_value reads it back equal: "25 MiB", "true", "selective".
template <class T>
std::string value_text(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else {
    return exact_text(value);
  }
}

/// Capacity of a device's own memory; 0 where the machine states none.
Bytes capacity_of(const study::WorkloadRun& run);

/// Stages to list, ascending: all, but of more than 16 the first, the last and the fullest.
std::vector<std::size_t> listed_stages(const study::Run& run);

/// Node completions per second of wall time.
double events_per_second(const study::WorkloadRun& run);

}  // namespace orrery::report
