// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/tree_hops.h"

namespace orrery::flit {

TreeHops::TreeHops(const RouterGraph& graph) : graph_(&graph) {
  if (graph.shape == Shape::tree) {
    nearer_ = NearerChannels(graph);
  }
}

std::uint32_t TreeHops::choices(std::uint32_t router, std::uint32_t goal) const {
  if (graph_->shape == Shape::tree) {
    return static_cast<std::uint32_t>(nearer_.of(router, goal).size());
  }
  if (graph_->shape == Shape::switch_clusters) {
    return extent(1);
  }
  return goes_down(router, goal) ? 1U : extent(0);
}

std::uint32_t TreeHops::channel(const RouterPorts& ports, std::uint32_t router, std::uint32_t goal,
                                std::uint32_t choice) const {
  if (graph_->shape == Shape::tree) {
    return nearer_.of(router, goal)[choice];
  }
  if (graph_->shape == Shape::switch_clusters) {
    return ports.channel(router, goal * extent(1) + choice);
  }
  const std::uint32_t k = extent(0);
  return goes_down(router, goal)
             ? ports.channel(router, goal % width() / (weight_below(router) / k) % k)
             : ports.channel(router, k + choice);
}

/// Returns k to the digits that ways down from a router of a fat tree set.
std::uint32_t TreeHops::weight_below(std::uint32_t router) const {
  std::uint32_t weight = 1;
  for (std::uint32_t i = router / width() + 1; i < stages(); ++i) {
    weight *= extent(0);
  }
  return weight;
}

bool TreeHops::goes_down(std::uint32_t router, std::uint32_t goal) const {
  const std::uint32_t weight = weight_below(router);
  return router % width() / weight == goal % width() / weight;
}

}  // namespace orrery::flit
