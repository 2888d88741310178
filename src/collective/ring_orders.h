// SPDX-License-Identifier: Apache-2.0
/// The rings of a ring algorithm, as orders in which they visit the members of a group.
#pragma once

#include <span>
#include <vector>

#include "collective/cost.h"
#include "collective/schedule.h"

namespace orrery::collective {

/// Returns the directed Hamiltonian cycles of the complete graph of n >= 2 members, no edge in two
/// of them: n-1 for odd n, else n-2 (for n = 2, one). Zigzags 0, 1, -1, 2, ... on a circle of n-1
/// members, turned, and closed through the last member (Walecki, in Alspach, Bull. ICA 52, 2008),
/// both ways round. For even n >= 8 there are n-1 (steps.h counts them), which no such simple
/// scheme gives.
std::vector<std::vector<int>> complete_cycles(int members);

/// Returns the rings of flat.h over extents; members are numbered innermost first. In one
/// dimension: one on a switch or line, one each way on a whole ring, complete_cycles where all are
/// connected. Over several: those of the outermost with those of the rest, there and back by turns,
/// once for every member inside to begin with; where closing edges cross the dimensions inside
/// (flat.h), for every block to begin with too.
std::vector<std::vector<int>> ring_orders(std::span<const Extent> extents,
                                          const machine::Machine& machine);

/// Returns the messages of an algorithm of rings (AlgorithmRow::rings) on all of these at once, an
/// equal part of the buffer each. A broadcast begins with member 0 everywhere.
MessageSchedule rings(graph::CollectiveKind kind, const std::vector<std::vector<int>>& orders,
                      int chunks, CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring);

}  // namespace orrery::collective
