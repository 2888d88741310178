// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "machine/topology/link_graph.h"

namespace orrery::report {

/// Returns a drawing of the network: levels above each other, hosts below; networks whose hosts are
/// linked directly as a circle. `load` (bytes by link) colours and widens links by their share of
/// the busiest's time; empty: all alike. A mistake beyond 2,000 hosts and switches or 20,000 links.
Result<std::string> topology_svg(const topology::LinkGraph& graph, const std::vector<double>& load);

}  // namespace orrery::report
