// SPDX-License-Identifier: Apache-2.0
/// Device memory of one rank over the run, from what its nodes allocate (graph/tensor.h).
///
///   an allocation is held from the begin of the span of the use that begins first to the end of
///   that which ends last; of a span of several operators, operator i of n begins i/n of the way
///
/// Nodes without a span (waits, receives): uses of theirs stand with the next node that has one
/// where kernels run in the order of their list (a step); where they run as they become ready (a
/// trace), at the moment at which what the node waits for has ended.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "graph/liveness.h"
#include "graph/workload.h"
#include "simulate/timeline.h"

namespace orrery::study {

struct MemorySample {
  Time at{0};
  graph::MemoryBytes bytes;  ///< from here to the next sample
};

class MemoryOverTime {
 public:
  /// Reads a workload and its timeline, which both must outlive it. Requires a timeline with spans.
  MemoryOverTime(const graph::Workload& workload, const simulate::Timeline& timeline);

  /// Returns the samples of a simulated rank, one per moment at which something changes, by time;
  /// empty where the workload allocates nothing.
  std::vector<MemorySample> of(std::int64_t rank) const;

 private:
  const graph::Workload& workload_;
  std::vector<const simulate::Span*> spans_;  // by rank
};

struct RankPeak {
  std::int64_t rank = 0;
  MemorySample fullest;  ///< the first with the most bytes
};
/// Returns the peak of each simulated rank, ascending; empty and required as above.
std::vector<RankPeak> fullest_moments(const graph::Workload& workload,
                                      const simulate::Timeline& timeline);

}  // namespace orrery::study
