// SPDX-License-Identifier: Apache-2.0
/// Messages of the double binary tree.
#pragma once

#include <optional>

#include "collective/schedule.h"

namespace orrery {

/// all_reduce: each chunk goes up its tree, is reduced on the way, and comes down again. broadcast:
/// rank 0 feeds the roots of two trees over the other ranks. Others: nothing. The first tree
/// carries the first half of the blocks.
std::optional<MessageSchedule> tree_schedule(CollectiveKind kind, int ranks, int chunks);

}  // namespace orrery
