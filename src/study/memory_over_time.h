// SPDX-License-Identifier: Apache-2.0
/// Device memory of one rank over the run, from what its nodes allocate (graph/tensor.h).
///
///   an allocation is held from the begin of the span of its first use to the end of that of its
///   last; of a span of several operators, operator i of n begins i/n of the way
///
/// Allocations of nodes without a span (waits, receives) stand with the next node that has one.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "graph/liveness.h"
#include "graph/workload.h"
#include "simulate/timeline.h"

namespace orrery {

struct MemorySample {
  Time at{0};
  MemoryBytes bytes;  ///< from here to the next sample
};

/// By time, one sample per moment at which something changes; empty where the workload allocates
/// nothing. Requires a timeline with spans.
std::vector<MemorySample> memory_over_time(const Workload& workload, const Timeline& timeline,
                                           std::int64_t rank);

}  // namespace orrery
