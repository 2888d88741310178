// SPDX-License-Identifier: Apache-2.0
/// The search on a mesh (mesh_search.h) under a limit of memory, and time against memory: a byte
/// gets a price (priced_search.h). Memory is that of memory.h.
#pragma once

#include <vector>

#include "planner/spmd/mesh_search.h"
#include "planner/spmd/priced_search.h"

namespace orrery::spmd {

/// A program, its weighted time without the price of memory, and a bound of that.
using MeshPoint = Priced<MeshSolution>;

/// Returns the fastest program found within `limit` bytes on a device; no program within it is
/// faster than its bound. Where the unlimited optimum fits that is the answer. Mistakes: those of
/// search_mesh(); the least that any program needs is above the limit.
Result<MeshPoint> search_mesh_within(const OperatorGraph& graph, const MeshPrices& prices,
                                     Bytes limit, const MeshOptions& options = {});

/// Returns the programs that some price of a byte makes the best, the fastest first, at most so
/// many.
Result<std::vector<MeshPoint>> mesh_frontier(const OperatorGraph& graph, const MeshPrices& prices,
                                             const MeshOptions& options = {},
                                             std::size_t most = 24);

}  // namespace orrery::spmd
