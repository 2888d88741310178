// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "collective/cost.h"
#include "graph/members.h"
#include "machine/machine.h"

namespace orrery::collective {

/// Returns where a communicator lies in the network; empty for groups of one. Communicators by
/// digits lie alike in all of the family. One that is a list of ranks (`only`, `lists`: that of
/// `rank`) has in each dimension as many members as there are coordinates, if the members are all
/// combinations of them; else all are in the outermost dimension in which two differ, as far apart
/// there as the first two.
std::vector<Extent> group_extents(const graph::Members& members, std::int64_t rank,
                                  const machine::Machine& machine);

}  // namespace orrery::collective
