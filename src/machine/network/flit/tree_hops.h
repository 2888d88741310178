// SPDX-License-Identifier: Apache-2.0
/// Finds hops up to the nearest common ancestor and down: of fat trees, trees and clusters of
/// switches.
#pragma once

#include <cstdint>

#include "machine/network/flit/hop_table.h"
#include "machine/network/flit/router_graph.h"
#include "machine/network/flit/router_ports.h"

namespace orrery::flit {

/// TreeHops reads the graph that it is made for.
class TreeHops {
 public:
  explicit TreeHops(const RouterGraph& graph);

  /// Returns how many channels lead from a router towards a goal.
  std::uint32_t choices(std::uint32_t router, std::uint32_t goal) const;
  /// Returns one of them.
  std::uint32_t channel(const RouterPorts& ports, std::uint32_t router, std::uint32_t goal,
                        std::uint32_t choice) const;

 private:
  std::uint32_t extent(std::size_t d) const {
    return static_cast<std::uint32_t>(graph_->extents[d]);
  }
  std::uint32_t stages() const { return static_cast<std::uint32_t>(graph_->extents.size()); }
  /// Returns the number of routers of a stage of a fat tree.
  std::uint32_t width() const { return static_cast<std::uint32_t>(graph_->routers) / stages(); }
  std::uint32_t weight_below(std::uint32_t router) const;
  bool goes_down(std::uint32_t router, std::uint32_t goal) const;

  const RouterGraph* graph_;
  NearerChannels nearer_;  ///< of trees
};

}  // namespace orrery::flit
