// SPDX-License-Identifier: Apache-2.0
/// Algorithms that run through all dimensions of a group at once, as NCCL's do.
#pragma once

#include <array>
#include <span>

#include "collective/algorithm.h"
#include "collective/steps.h"

namespace orrery::collective {

/// One StepCount per extent; loads are in units of the whole buffer of the whole group.
struct FlatCount {
  std::array<StepCount, topology::kMaxDimensions> part;
  /// Members of each block inside the dimension that send over it: what its node link carries, in
  /// loads of a member.
  std::array<double, topology::kMaxDimensions> senders{};
  std::size_t parts = 0;
  bool lockstep = false;  ///< every step takes as long as one of the slowest dimension
};

/// Counts of one phase over all extents, innermost first. With members c_0 .. c_k in the
/// dimensions, Q_i = c_0 ... c_(i-1) members inside dimension i, and N in all:
///
///   ring     every ring visits the members of a dimension before it moves on in the next, there
///            and back by turns, so that of its N edges (c_i - 1) N/Q_(i+1) lie in an inner
///            dimension and N/Q_k in the outermost. Where that is no switch and odd, the closing
///            edge crosses the dimensions inside as well. N/c_k rings, each with an equal share of
///            S, rotate over the members: the load of a port is that share of edges. A member sends
///            step s after step s-1, so the whole ring moves in lockstep with its slowest edge.
///   tree     a chain through the inner dimensions of each outermost coordinate, a double binary
///            tree over the coordinates of the outermost; rotated in the same way
///   in_switch (all_reduce)  the innermost switch reduces every shard to one member and multicasts
///            the sums; between, a double binary tree per shard over the outer coordinates
///   rail (all_to_all)  an exchange inside the innermost dimension, then Q_i/c_0 (c_i - 1) bundled
///            messages a member to the others of its rail in dimension i
///   send_recv  rank r sends to r+1: the whole buffer through the outermost dimension in which
///            they differ
///   all_to_all (direct, pairwise)  Q_i (c_i - 1) of the N-1 messages of a member leave through
///            dimension i, and those that pass it on their way to a dimension outside that is no
///            switch: X_i = 1 + sum over such j > i of (c_j - 1) c_(i+1) ... c_(j-1) times as many
///
/// One extent: as count_steps. False when the algorithm does not do this.
bool count_flat(graph::CollectiveKind kind, const AlgorithmRow& row,
                std::span<const Extent> extents, const machine::Machine& machine, FlatCount& flat);

/// Peers that a member exchanges with at once over the dimension of extent i, of the busiest
/// member:
///   at once (direct)  all that it reaches there, Q_i (c_i - 1)
///   others            as their rows say (rail, trees), else one; send_recv: one
std::int64_t peers_at_once(graph::CollectiveKind kind, const AlgorithmRow& row,
                           std::span<const Extent> extents, std::size_t i);

/// Returns whether that changes what a port reaches in any of the dimensions.
bool peers_count(std::span<const Extent> extents, const machine::Machine& machine);

/// Returns the number of members of the group.
std::int64_t members_of(std::span<const Extent> extents);

}  // namespace orrery::collective
