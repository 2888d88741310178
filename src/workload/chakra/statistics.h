// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "workload/chakra/trace.h"

namespace orrery::chakra {

/// Statistics are what traces cost and hold. Bytes per node of a trace set = memory / nodes.
struct Statistics {
  Bytes memory{0};                ///< of the TraceSet, spare capacity included
  std::int64_t programs = 0;      ///< distinct ones
  std::int64_t stored_nodes = 0;  ///< of distinct programs
  std::int64_t nodes = 0;         ///< over all ranks
};

Bytes bytes_of(const Program& program);
Bytes bytes_of(const TraceSet& traces);
Statistics statistics(const TraceSet& traces);
/// Returns the bytes per node; 0 without nodes.
double bytes_per_node(const Statistics& statistics);
/// Returns "2264 nodes as 566 of 2 programs, 42.1 bytes per node".
std::string to_string(const Statistics& statistics);

}  // namespace orrery::chakra
