// SPDX-License-Identifier: Apache-2.0
/// The fastest strategies of all layers of a chain within a limit of memory:
///
///   min  sum_l time(l, s_l) + change(l, s_(l-1), s_l)   over s_l, with   sum_l memory(l, s_l) <= M
///
/// Galvatron solves it with a table over whole megabytes, O(layers M strategies^2). Here bytes are
/// bytes and the work does not grow with M:
///
///   1. a byte gets a price p; the chain without a limit is solved exactly, and p bisected. For
///      every p the least of time + p (memory - M) is a bound (Lagrangian duality); the fastest
///      that fits is a first answer
///   2. labels (time, memory) go forward through the layers. One falls if another of its strategy
///   is as good in both, if the least memory of the rest does not fit, or if its own time with the
///   bound of the rest, at the best price or at one of four others, is not below the best answer so
///   far
///
/// Step 2 runs with at most 8 labels for each strategy, for better answers, then with 64, then with
/// all, which proves the optimum. Where there are more than 2^16 for one strategy, as when memory
/// of every layer is a number of its own and no answer is near the bound, the best of them stay,
/// and the answer has a bound below it. Source: problem of Galvatron (Miao et al., VLDB'23); the
/// search is ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/layerwise/chain.h"

namespace orrery::layerwise {

struct Assignment {
  std::vector<std::size_t> strategies;  ///< by layer
  Time time{0};
  Bytes memory{0};
  Time bound{0};             ///< nothing within the limit is faster; the time itself where proved
  std::uint64_t labels = 0;  ///< looked at
};

/// Requires a chain of at least one layer. Mistakes: no assignment fits; then how much the most
/// frugal one needs.
Result<Assignment> fastest_within(const Chain& chain, Bytes limit);

}  // namespace orrery::layerwise
