// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "machine/topology/link_map.h"

namespace orrery::topology {

/// Visits the routes from every device to its neighbours in each dimension, which pass all links
/// that there are: visit(from, to, dimension, forward, hops). Requires a map without a graph.
template <class Visit>
void for_each_step(const LinkMap& map, Visit visit) {
  std::vector<Hop> hops;
  const auto step = [&](std::int64_t from, std::int64_t to, int dimension, bool forward) {
    hops.clear();
    map.route(from, to, hops);
    visit(from, to, dimension, forward, hops);
  };
  const auto steps_along = [&](std::int64_t device, int d) {
    const NetworkDimension& shape = map.dimensions()[static_cast<std::size_t>(d)];
    const std::int64_t x = map.coordinate(device, d);
    const auto to = [&](std::int64_t y) { return device + (y - x) * map.stride(d); };
    if (shape.kind == DimensionKind::fully_connected) {
      for (std::int64_t other = 1; other < shape.size; ++other) {
        step(device, to((x + other) % shape.size), d, true);
      }
      return;
    }
    const bool open = shape.kind == DimensionKind::mesh;
    if (!open || x + 1 < shape.size) {
      step(device, to((x + 1) % shape.size), d, true);
    }
    if (!open || x > 0) {
      step(device, to((x + shape.size - 1) % shape.size), d, false);
    }
  };
  for (std::int64_t device = 0; device < map.devices(); ++device) {
    for (int d = 0; d < static_cast<int>(map.dimensions().size()); ++d) {
      if (map.dimensions()[static_cast<std::size_t>(d)].size > 1) {
        steps_along(device, d);
      }
    }
  }
}

}  // namespace orrery::topology
