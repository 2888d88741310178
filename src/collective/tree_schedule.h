// SPDX-License-Identifier: Apache-2.0
/// Messages of the double binary tree.
#pragma once

#include <optional>
#include <vector>

#include "collective/schedule.h"

namespace orrery::collective {

/// all_reduce: each chunk goes up its tree, is reduced on the way, and comes down again. broadcast:
/// rank 0 feeds the roots of two trees over the other ranks. Others: nothing. The first tree
/// carries the first half of the blocks.
std::optional<MessageSchedule> tree_schedule(graph::CollectiveKind kind, int ranks, int chunks);

/// Bytes, in units of S, on the links from member g to g+1 and back: both trees on a line, or on a
/// ring (closed), where the last entry is the way from the last member to the first.
struct GapLoad {
  double forward = 0;
  double backward = 0;
};
std::vector<GapLoad> tree_gap_loads(graph::CollectiveKind kind, int ranks, bool closed);

}  // namespace orrery::collective
