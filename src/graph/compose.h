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
};

/// The jobs beside each other as one workload of `ranks` ranks; those that no job has do nothing.
///
///   roles     of equal rows are one where their messages go to equal offsets as placed
///   groups    each job's own, "name/group", as lists of ranks; group_offsets() says where they are
///   streams, phases, categories   rows of one name are one
///   source    the jobs' own; nothing before a job's start
///
/// Leaves out tensors: what a job holds is what it holds alone.
///
/// Requires verified workloads; as many different ranks as each has, none twice, all below `ranks`.
/// Mistakes: streams of one name and different order; hosts that issue at different speeds.
Result<Workload> compose(std::span<const PlacedJob> jobs, std::int64_t ranks);

/// The row of each job's first group in the composition.
std::vector<std::size_t> group_offsets(std::span<const PlacedJob> jobs);

}  // namespace orrery::graph
