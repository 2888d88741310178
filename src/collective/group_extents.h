// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "collective/cost.h"
#include "graph/members.h"
#include "machine/machine.h"

namespace orrery::collective {

/// Where a communicator lies in the network. By digits, the same for all of the family. As a list
/// of ranks (`only`, `lists`: that of `rank`): per dimension as many members as there are
/// coordinates, if the members are all combinations of them; else all in the outermost dimension in
/// which two differ, as far apart there as the first two. Empty for groups of one.
std::vector<Extent> group_extents(const graph::Members& members, std::int64_t rank,
                                  const machine::Machine& machine);

}  // namespace orrery::collective
