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
///             2")
///   span    = one complete event ("X"); `ts` and `dur` in microseconds with six decimals, that is
///             exact to the picosecond; args: phase, group and bytes (of communication), layer, or
///             layers from first to last where it is of several ("0-7"), microbatch, chunk,
///             begin_ps, end_ps, host_stall_ps (part of a compute span that waits for the host)
///   kernel  = where several run as one span: a complete event of category "kernel" within it. Each
///             has the share of the span that it has of their times alone (what runs beside them,
///             or the host, is taken to slow all of them alike), cut to nanoseconds
///   arrow   = a flow ("s", "f") from the send of a message to its receive
///   counter = "memory" of a process: bytes on its device by kind (study/memory_over_time.h)
///
/// Requires a run with record_spans. Of spans nothing is rounded: the breakdown can be recomputed
/// from them. `progress` is called now and then with the share done.
void write_trace(const study::WorkloadRun& run, JsonWriter& json,
                 const std::function<void(double)>& progress = {});

/// Returns how much write_trace writes: as long a piece of work, without a disk.
Bytes trace_size(const study::WorkloadRun& run);

/// Writes the same into a file, whole or not at all (written beside it, then renamed).
Result<void> write_trace_file(const study::WorkloadRun& run, const std::string& path,
                              const std::function<void(double)>& progress = {});

}  // namespace orrery::report
