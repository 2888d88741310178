// SPDX-License-Identifier: Apache-2.0
/// Results of `orrery astra`, in ASTRA-sim's words and as JSON. One cycle is a nanosecond.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compat/astra/local_memory.h"
#include "compat/astra/run.h"
#include "workload/chakra/statistics.h"

namespace orrery::report {

/// A line per rank in the order in which they finish, equal ones by rank, as ASTRA-sim's log has it
/// but without the wall clock:
///
///   [workload] [info] sys[0] finished, 43025 cycles, exposed communication 43025 cycles.
std::string astra_lines(const astra::RunResult& result);

struct AstraReport {
  const astra::RunResult& result;
  const astra::RunOptions& options;
  const std::vector<std::string>& warnings;
  std::span<const astra::LocalMemory> memory{};  ///< by class; empty when it was not tracked
  chakra::Statistics traces{};
};

/// {"ranks": [{"rank", "cycles", "exposed_cycles"}...] by rank (with "peak_memory_bytes" where it
/// was tracked), "npus", "cycles" and "cycles_min" (greatest and least over the ranks),
/// "exposed_cycles" (greatest), "backend", "quirks" (name to on), "classes", "unfolded" (why),
/// "events", "messages", "traces": {"programs", "nodes", "stored_nodes", "bytes",
/// "bytes_per_node"}, "warnings"}.
std::string astra_json(const AstraReport& report);

/// Two or three lines for people: times, the slowest rank, how far ranks folded.
std::string astra_summary(const astra::RunResult& result);

}  // namespace orrery::report
