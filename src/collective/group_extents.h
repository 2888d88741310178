// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "collective/cost.h"
#include "graph/workload.h"
#include "machine/machine.h"

namespace orrery {

/// Where the communicator of `axis` lies in the network, for any of its groups. The embedding
/// communicator is first and last stage alone: two members in the outermost dimension in which they
/// differ. Empty for groups of one.
std::vector<Extent> group_extents(const RankLayout& layout, Axis axis, const Machine& machine);

}  // namespace orrery
