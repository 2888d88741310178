// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace orrery::topology {

/// An edge of a bipartite multigraph: a flow from a leaf to a leaf.
struct LeafPair {
  std::int32_t source = 0;
  std::int32_t target = 0;
};

/// Edges at the leaf side that has most: the fewest colours that a proper colouring needs.
std::int32_t largest_degree(std::span<const LeafPair> edges, std::int32_t leaves);

/// Returns a colour below largest_degree() for every edge, such that no two edges of one side of a
/// leaf have the same: each edge takes colours free at its ends; where these differ, the
/// alternating path of the two is flipped.
///
/// Source: König, Math. Ann. 77, 1916. Takes edges times the length of such paths; memory leaves
/// times degree.
std::vector<std::int32_t> edge_colours(std::span<const LeafPair> edges, std::int32_t leaves);

}  // namespace orrery::topology
