// SPDX-License-Identifier: Apache-2.0
/// Tensors of `orrery astra` with track-local-mem.
#pragma once

#include <span>
#include <string>

#include "compat/astra/local_memory.h"
#include "compat/astra/run.h"

namespace orrery::report {

/// Returns a line per rank: "[workload] [info] sys[0] peak local memory, 1536 bytes at 2000
/// cycles."
std::string local_memory_lines(std::span<const astra::LocalMemory> memory,
                               const astra::RunResult& result);

/// Lifetimes of a rank's tensors as a trace for https://ui.perfetto.dev, a slice for each on a row
/// of its own, in microseconds, and the bytes that live as a counter.
std::string local_memory_trace(const astra::LocalMemory& memory);

}  // namespace orrery::report
