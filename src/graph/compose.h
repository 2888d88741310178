// SPDX-License-Identifier: Apache-2.0
/// Several jobs on one machine, as one workload.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "graph/workload.h"

namespace orrery::graph {

/// A job and where it runs.
struct PlacedJob {
  std::string name;
  const Workload* workload = nullptr;  ///< must outlive the composition
  std::vector<std::int64_t> ranks;     ///< of the composition, by rank of the job
  Time start{0};
  /// Holds a kind by group of the job: groups of jobs whose kinds differ stay apart. Empty: all are
  /// of kind 0.
  std::vector<int> kinds{};
};

struct Composition {
  Workload workload;
  std::vector<std::vector<GroupIndex>> groups;  ///< by job and group of the job: its row
};

/// Returns the jobs beside each other as one workload of `ranks` ranks; those that no job has do
/// nothing.
///
///   roles     of equal rows are one where their messages go to equal offsets as placed
///   groups    as lists of ranks; those of one name, category, size and kind are one family: jobs
///             have no rank in common, and tables by rank and group do not grow with the jobs
///   streams, phases, categories   rows of one name are one
///   source    the jobs' own; nothing before a job's start
///
/// Leaves out tensors: what a job holds is what it holds alone.
///
/// Requires verified workloads; as many different ranks as each has, none twice, all below `ranks`.
/// Mistakes: streams of one name and different order; hosts that issue at different speeds; more
/// groups than a row can number.
Result<Composition> compose(std::span<const PlacedJob> jobs, std::int64_t ranks);

}  // namespace orrery::graph
