// SPDX-License-Identifier: Apache-2.0
/// Holdings are what one device holds of a program at its fullest; a search may have a limit of it.
///
/// Bytes of a tensor in its form (slices: 1/N), for both half-batches:
///   parameter    4 times: weights, gradients, two moments of Adam; of elements of 2 bytes 9 times:
///                also weights in 4 bytes, as are the gradients and moments; a converted copy once
///                more, kept from the forward to the backward pass
///   others       once, kept until the backward pass; a converted copy once more
///
/// Ignores: that a last use frees some activations earlier; buffers of collectives; fragmentation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "planner/spmd/search.h"

namespace orrery::spmd {

/// Returns the bytes of one tensor in one form.
Bytes held(const OperatorGraph& graph, int tensor, Form form, bool converted, std::int64_t devices);

/// Holdings are what one device holds, by what it is for.
struct Holdings {
  Bytes parameters{0};  ///< and their converted copies
  Bytes gradients{0};
  Bytes optimizer{0};  ///< the states, of elements of 2 bytes also the copy in 4
  Bytes activations{0};

  Bytes total() const { return parameters + gradients + optimizer + activations; }
  Holdings& operator+=(const Holdings& more);
};

/// Returns the holdings of one tensor of which a device has `part`.
Holdings holdings_of(const OperatorGraph& graph, int tensor, Bytes part, bool converted);

/// Requires a strategy that replay() accepts.
Holdings holdings_of(const OperatorGraph& graph, const Strategy& strategy, std::int64_t devices);

/// Returns the total of the holdings.
Bytes memory_of(const OperatorGraph& graph, const Strategy& strategy, std::int64_t devices);

struct LimitedSolution {
  Solution solution;  ///< its total without the price of memory
  Bytes memory{0};    ///< at most the limit
  Time bound{0};      ///< no program within the limit is faster
};

/// Returns the fastest program found within `limit` bytes on a device, with a bound: a byte gets a
/// price (priced_search.h), at which the search is exact. The bound equals the time where the
/// unlimited optimum fits. Mistakes: those of search(); the least that any program needs is above
/// the limit.
Result<LimitedSolution> search_within(const OperatorGraph& graph, const Prices& prices,
                                      std::int64_t devices, Bytes limit,
                                      const SearchOptions& options = {});

struct MemoryPoint {
  Solution solution;  ///< its total without penalties
  Bytes memory{0};
};

/// Returns the time against memory: every program that some price of a byte makes the best, the
/// fastest first, each with less memory than the one before and slower. They are the corners of the
/// lower convex hull of all programs, so each is the fastest within its own memory, to a picosecond
/// a tensor; between two corners other programs may lie (priced_search.h). At most `most` corners.
/// Mistakes: those of search().
Result<std::vector<MemoryPoint>> memory_frontier(const OperatorGraph& graph, const Prices& prices,
                                                 std::int64_t devices,
                                                 const SearchOptions& options = {},
                                                 std::size_t most = 64);

}  // namespace orrery::spmd
