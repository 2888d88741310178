// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/router_ports.h"

#include <algorithm>

namespace orrery::flit {
namespace {

// The port that each channel leaves by, in the order in which the makers list channels.

std::vector<std::size_t> grid_ports(const RouterGraph& graph) {
  std::vector<std::size_t> ports;
  const bool all = graph.shape == Shape::cmesh &&  // express channels
                   graph.channels.size() == 4 * static_cast<std::size_t>(graph.routers);
  for (std::int32_t router = 0; router < graph.routers; ++router) {
    std::int32_t weight = 1;
    for (std::size_t d = 0; d < graph.extents.size(); ++d) {
      const std::int32_t extent = graph.extents[d];
      const std::int32_t x = router / weight % extent;
      const bool ring = (graph.shape == Shape::torus && extent > 1) || all;
      if (ring || x + 1 < extent) {
        ports.push_back(2 * d);
      }
      if (ring || x > 0) {
        ports.push_back(2 * d + 1);
      }
      weight *= extent;
    }
  }
  return ports;
}

/// Returns a port for every place of each dimension, its own left out.
std::vector<std::size_t> butterfly_ports(const RouterGraph& graph) {
  std::vector<std::size_t> ports;
  const auto add_line = [&](std::int32_t at, std::int32_t extent, std::size_t first) {
    for (std::int32_t other = 0; other < extent; ++other) {
      if (other != at) {
        ports.push_back(first + static_cast<std::size_t>(other));
      }
    }
  };
  for (std::int32_t router = 0; router < graph.routers; ++router) {
    std::int32_t weight = 1;
    std::size_t first = 0;
    for (const std::int32_t extent : graph.extents) {
      add_line(router / weight % extent, extent, first);
      first += static_cast<std::size_t>(extent);
      weight *= extent;
    }
  }
  return ports;
}

/// k ports up (or on), k down.
std::vector<std::size_t> staged_ports(const RouterGraph& graph) {
  const auto k = static_cast<std::size_t>(graph.extents[0]);
  const auto wide =
      static_cast<std::size_t>(graph.routers) / std::max<std::size_t>(1, graph.extents.size());
  std::vector<std::size_t> ports;
  ports.reserve(graph.channels.size());
  for (std::size_t i = 0; i < graph.channels.size(); ++i) {
    const auto source = static_cast<std::size_t>(graph.channels[i].source);
    const auto target = static_cast<std::size_t>(graph.channels[i].target);
    ports.push_back(i % k + (source / wide < target / wide ? 0 : k));
  }
  return ports;
}

/// Returns a port for every router of the group, its own left out, then those to other groups.
std::vector<std::size_t> dragonfly_ports(const RouterGraph& graph, std::size_t radix) {
  const auto group = static_cast<std::size_t>(graph.extents[0]);
  std::vector<std::size_t> ports;
  for (std::size_t router = 0; router < static_cast<std::size_t>(graph.routers); ++router) {
    for (std::size_t port = 0; port < radix; ++port) {
      if (port != router % group) {
        ports.push_back(port);
      }
    }
  }
  return ports;
}

std::vector<std::size_t> cluster_ports(const RouterGraph& graph) {
  const auto links = static_cast<std::size_t>(graph.extents[1]);
  std::vector<std::size_t> ports;
  ports.reserve(graph.channels.size());
  for (std::size_t i = 0; i < graph.channels.size(); ++i) {
    ports.push_back(static_cast<std::size_t>(graph.channels[i].target) * links + i % links);
  }
  return ports;
}

std::vector<std::size_t> port_numbers(const RouterGraph& graph, std::size_t& radix) {
  const auto extent = [&](std::size_t d) { return static_cast<std::size_t>(graph.extents[d]); };
  switch (graph.shape) {
    case Shape::mesh:
    case Shape::torus:
    case Shape::cmesh:
      radix = 2 * graph.extents.size();
      return grid_ports(graph);
    case Shape::flattened_butterfly:
      radix = 0;
      for (std::size_t d = 0; d < graph.extents.size(); ++d) {
        radix += extent(d);
      }
      return butterfly_ports(graph);
    case Shape::fat_tree:
    case Shape::fly:
      radix = 2 * extent(0);
      return staged_ports(graph);
    case Shape::dragonfly:
      radix = extent(0) + extent(1);
      return dragonfly_ports(graph, radix);
    case Shape::switch_clusters:
      radix = extent(0) * extent(1);
      return cluster_ports(graph);
    case Shape::tree:
    case Shape::graph:
      break;
  }
  return {};
}

}  // namespace

RouterPorts::RouterPorts(const RouterGraph& graph) {
  const std::vector<std::size_t> ports = port_numbers(graph, radix_);
  channels_.assign(static_cast<std::size_t>(graph.routers) * radix_, kNoChannel);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    channels_[static_cast<std::size_t>(graph.channels[i].source) * radix_ + ports[i]] =
        static_cast<std::uint32_t>(i);
  }
  if (!is_grid(graph.shape) && graph.shape != Shape::flattened_butterfly) {
    return;
  }
  dimensions_ = graph.extents.size();
  for (std::int32_t router = 0; router < graph.routers; ++router) {
    std::int32_t rest = router;
    for (const std::int32_t extent : graph.extents) {
      coordinates_.push_back(rest % extent);
      rest /= extent;
    }
  }
}

}  // namespace orrery::flit
