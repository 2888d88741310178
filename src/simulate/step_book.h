// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulate/rank_state.h"
#include "simulate/timeline.h"

namespace orrery::simulate {

/// StepBook tells the steps of a run apart. A rank has ended a step when the last node of its
/// instances on the compute stream is done: what another stream still moves runs beside the next
/// step.
struct StepBook {
  std::int64_t count = 1;  ///< steps of the list
  std::int64_t warm = 0;   ///< the first ones, which breakdowns do not count
  std::size_t behind = 0;  ///< ranks that have not ended step number ends.size()
  std::vector<Time> ends;  ///< when all ranks have ended each step, of several
  /// Holds, by rank, what was booked until the end of the warm-up, and until that of the last step.
  /// Empty for one step, without a warm-up, or for a run that stopped before.
  std::vector<Breakdown> booked_warm;
  std::vector<Breakdown> booked;

  /// A node of the rank's instance on the compute stream is done. Returns whether that ends, for
  /// every rank, a step after which book() is to be called, with all chains walked to `now`.
  bool note(std::vector<RankState>& ranks, RankIndex index, std::int64_t instance, Time now);
  void book(std::vector<RankState>& ranks, Time now);
};

}  // namespace orrery::simulate
