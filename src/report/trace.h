// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "report/json_writer.h"
#include "study/workload_run.h"

namespace orrery::report {

/// The run's spans as Chrome trace events ("JSON Object Format" of Google's Trace Event Format, as
/// Perfetto and chrome://tracing read it):
///
///   process = a simulated rank, named after its role
///   thread  = a stream of it; spans that overlap within a stream lie on further threads ("receive
///   2") span    = one complete event ("X"); `ts` and `dur` in microseconds with six decimals, that
///   is
///             exact to the picosecond; args: phase, axis (of communication), microbatch, chunk,
///             begin_ps, end_ps, host_stall_ps (part of a compute span that waits for the host)
///   counter = "memory" of a process: bytes on its device by kind (study/memory_over_time.h)
///
/// Requires a run with record_spans. Nothing is rounded: the breakdown can be recomputed from it.
/// `progress` is called now and then with the share done.
void write_trace(const study::WorkloadRun& run, JsonWriter& json,
                 const std::function<void(double)>& progress = {});

/// The same into a file, whole or not at all (written beside it, then renamed).
Result<void> write_trace_file(const study::WorkloadRun& run, const std::string& path,
                              const std::function<void(double)>& progress = {});

}  // namespace orrery::report
