// SPDX-License-Identifier: Apache-2.0
/// Results of `orrery astra`, in ASTRA-sim's words and as JSON. One cycle is a nanosecond.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "compat/astra/local_memory.h"
#include "compat/astra/run.h"
#include "compat/astra/statistics.h"
#include "workload/chakra/statistics.h"

namespace orrery::report {

inline std::int64_t cycles(Time time) {
  return time.value() / (1_ns).value();
}

/// Returns a line per rank in the order in which they finish, equal ones by rank, as ASTRA-sim's
/// log has it but without the wall clock:
///
///   [workload] [info] sys[0] finished, 43025 cycles, exposed communication 43025 cycles.
std::string astra_lines(const astra::RunResult& result);

struct AstraReport {
  const astra::RunResult& result;
  const astra::RunOptions& options;
  const std::vector<std::string>& warnings;
  std::span<const astra::LocalMemory> memory{};  ///< by class; empty when it was not tracked
  chakra::Statistics traces{};
  std::span<const astra::Statistics> statistics{};  ///< by class; empty when not asked for
};

/// Returns the lines per rank in ASTRA-sim's words: wall, CPU, GPU, communication and remote memory
/// time (those that are not zero), the overlap of GPU and communication, under roofline the shares,
/// and the bytes sent into each dimension; then a line for each link of the aware back-end.
///
///   [statistics] [info] sys[0], GPU time: 4000
std::string statistics_lines(std::span<const astra::Statistics> statistics,
                             const astra::RunResult& result);

/// Returns {"ranks": [{"rank", "cycles", "exposed_cycles"}...] by rank (with "peak_memory_bytes"
/// where it was tracked, and "statistics" where asked for: "wall_cycles", "cpu_cycles",
/// "gpu_cycles", "communication_cycles", "remote_memory_cycles", "overlap_cycles" and under
/// roofline "compute_bound", "compute_utilisation", "memory_utilisation", "operations_per_byte";
/// and "sent_bytes" into each dimension), "links": [{"from", "to", "bytes"}...] of the aware
/// back-end (the switch has the number after the last NPU's), "npus", "cycles" and "cycles_min"
/// (greatest and least over the ranks), "exposed_cycles" (greatest), "backend", "quirks" (name to
/// on), "classes", "unfolded" (why), "events", "messages", "traces": {"programs", "nodes",
/// "stored_nodes", "bytes", "bytes_per_node"}, "warnings"}.
std::string astra_json(const AstraReport& report);

/// Returns two or three lines for people: times, the slowest rank, how far ranks folded.
std::string astra_summary(const astra::RunResult& result);

}  // namespace orrery::report
