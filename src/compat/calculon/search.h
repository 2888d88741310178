// SPDX-License-Identifier: Apache-2.0
/// The fastest of all executions that Calculon's own search would try.
///
///   tensor_par, pipeline_par   divisors that the devices and the application allow
///   pipeline_interleaving      divisors of a stage's blocks
///   batch_size                 the largest multiple of data_par up to the given one; of more
///                              replicas than that there is none
///   microbatch_size            divisors of a replica's sequences; tensor_par divides its tokens
///   networks                   every assignment of the parallel dimensions above 1
///   the rest                   every value, where the value can do anything
///
/// Exact: every execution counts, none is left out. A block is worked out once for all executions
/// that share it, memory once for all assignments of networks, which do not change it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compat/calculon/step.h"

namespace orrery::calculon {

struct Space {
  std::int64_t devices = 1;
  std::int64_t batch = 1;  ///< sequences of a step at the most
};

struct Found {
  Execution execution;
  Run run;
};

struct SearchResult {
  std::vector<Found> top;  ///< the most sequences per second first; of equal ones the first tried
  std::uint64_t executions = 0;
  std::uint64_t distinct = 0;  ///< but for the networks
  std::uint64_t feasible = 0;
};

/// `progress` gets the share done, now and then.
SearchResult search(const Application& application, const System& system, const Space& space,
                    std::size_t top, const std::function<void(double)>& progress = {});

}  // namespace orrery::calculon
