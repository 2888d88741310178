// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "machine/topology/link_graph.h"

namespace orrery::topology {

class Router;

/// The network of links under the dimensions of a machine, if it states one.
struct Wires {
  std::string spec;  ///< a description or a file (read.h); empty: none
  Routing routing = Routing::automatic;
  std::uint64_t seed = 0;
  std::shared_ptr<const LinkGraph> graph;  ///< what the spec says

  /// One spec is one network.
  friend bool operator==(const Wires& a, const Wires& b) {
    return a.spec == b.spec && a.routing == b.routing && a.seed == b.seed;
  }
};

/// Returns whether host 0 reaches every other host and every other reaches host 0, or, where routes
/// are stated, whether there is one for every pair.
bool all_reachable(const LinkGraph& graph, Routing routing);

}  // namespace orrery::topology
