// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "graph/workload.h"

namespace orrery::graph {

/// Returns the mistakes in the tables of a workload, a sentence each (verify() goes on to nodes and
/// roles only when there is none): rows that name rows that are not there; ranks without a role or
/// roles without a rank; digits and lists of ranks that are no family of disjoint communicators
/// (members.h) or that hold ranks beyond the workload's.
std::vector<std::string> table_mistakes(const Workload& workload);

}  // namespace orrery::graph
