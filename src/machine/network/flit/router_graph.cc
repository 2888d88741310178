// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/router_graph.h"

#include <fmt/format.h>

#include <array>
#include <numeric>
#include <utility>

#include "base/lists.h"

namespace orrery::flit {
namespace {

std::int32_t power(std::int32_t base, std::int32_t exponent) {
  std::int32_t result = 1;
  for (std::int32_t i = 0; i < exponent; ++i) {
    result *= base;
  }
  return result;
}

std::int32_t product(const std::vector<std::int32_t>& extents) {
  return std::accumulate(extents.begin(), extents.end(), 1, std::multiplies<>());
}

void add_nodes(RouterGraph& graph, std::int32_t first_router, std::int32_t routers,
               std::int32_t per_router) {
  for (std::int32_t router = 0; router < routers; ++router) {
    for (std::int32_t i = 0; i < per_router; ++i) {
      graph.nodes.push_back({first_router + router, first_router + router, 1});
    }
  }
}

/// Nodes of router (x, y) as a tile of a grid of nodes.
void add_tiles(RouterGraph& graph, std::int32_t side) {
  const std::int32_t width = graph.extents[0] * side;
  for (std::int32_t node = 0; node < graph.routers * side * side; ++node) {
    const std::int32_t x = node % width / side;
    const std::int32_t y = node / width / side;
    const std::int32_t router = y * graph.extents[0] + x;
    graph.nodes.push_back({router, router, 1});
  }
}

/// Links `router`, at place `at` of a line, to all others of the line.
void link_line(RouterGraph& graph, std::int32_t router, std::int32_t at, std::int32_t extent,
               std::int32_t weight) {
  for (std::int32_t other = 0; other < extent; ++other) {
    if (other != at) {
      graph.channels.push_back({router, router + (other - at) * weight, 1});
    }
  }
}

/// Links `router` to the k places of another level or stage that differ from its own in one digit.
void link_digit(RouterGraph& graph, std::int32_t router, std::int32_t other_level, std::int32_t k,
                std::int32_t weight) {
  const std::int32_t wide = power(k, static_cast<std::int32_t>(graph.extents.size()) - 1);
  const std::int32_t at_target = other_level > router / wide ? 1 : 0;  // what comes from above last
  const std::int32_t place = router % wide;
  const std::int32_t base = place - place / weight % k * weight;
  for (std::int32_t digit = 0; digit < k; ++digit) {
    graph.channels.push_back({router, other_level * wide + base + digit * weight, 1, at_target});
  }
}

}  // namespace

RouterGraph make_grid(Shape shape, std::vector<std::int32_t> extents) {
  RouterGraph graph;
  graph.name = std::string(name_of(shape)) + ":" + joined(extents, "x");
  graph.shape = shape;
  graph.nodes_first = false;
  graph.routers = product(extents);
  for (std::int32_t router = 0; router < graph.routers; ++router) {
    std::int32_t weight = 1;
    std::int32_t place = 0;
    for (const std::int32_t extent : extents) {
      const std::int32_t x = router / weight % extent;
      const std::int32_t base = router - x * weight;
      if (x + 1 < extent || (shape == Shape::torus && extent > 1)) {
        graph.channels.push_back({router, base + (x + 1) % extent * weight, 1, place + 1});
      }
      if (x > 0 || (shape == Shape::torus && extent > 1)) {
        graph.channels.push_back({router, base + (x + extent - 1) % extent * weight, 1, place});
      }
      weight *= extent;
      place += 2;
    }
  }
  graph.extents = std::move(extents);
  add_nodes(graph, 0, graph.routers, 1);
  return graph;
}

RouterGraph make_concentrated_mesh(std::vector<std::int32_t> extents, std::int32_t per_router,
                                   bool express) {
  RouterGraph graph = make_grid(Shape::mesh, std::move(extents));
  graph.name = fmt::format("cmesh:{},c={}{}", joined(graph.extents, "x"), per_router,
                           express ? ",express=1" : "");
  graph.shape = Shape::cmesh;
  graph.nodes_first = true;
  graph.nodes.clear();
  std::int32_t side = 1;
  while (side * side < per_router) {
    ++side;
  }
  add_tiles(graph, side);
  if (!express) {
    return graph;
  }
  graph.channels.clear();
  const std::int32_t k = graph.extents[0];
  for (std::int32_t router = 0; router < graph.routers; ++router) {
    const std::array<std::int32_t, 2> at{router % k, router / k};
    for (std::size_t d = 0; d < 2; ++d) {
      const std::int32_t weight = d == 0 ? 1 : k;
      // Along the edge: to the other half of it.
      const std::int32_t along = at[1 - d];
      const std::int32_t across = (along < k / 2 ? k / 2 : -(k / 2)) * (d == 0 ? k : 1);
      const auto place = static_cast<std::int32_t>(2 * d);  // across an edge: of the same side
      const bool up = at[d] + 1 < k;
      const bool down = at[d] > 0;
      graph.channels.push_back({router, router + (up ? weight : across), 1, place + (up ? 1 : 0)});
      graph.channels.push_back(
          {router, router + (down ? -weight : across), 1, place + (down ? 0 : 1)});
    }
  }
  return graph;
}

RouterGraph make_qtree(std::int32_t k, std::int32_t n) {
  RouterGraph graph;
  graph.name = fmt::format("qtree:k={},n={}", k, n);
  graph.shape = Shape::tree;
  graph.routers = 1;
  std::int32_t first = 0;  // router of the level above
  for (std::int32_t level = 1; level < n; ++level) {
    const std::int32_t wide = power(k, level);
    for (std::int32_t j = 0; j < wide; ++j) {
      graph.channels.push_back({first + j / k, graph.routers + j, 1});
      graph.channels.push_back({graph.routers + j, first + j / k, 1});
    }
    first = graph.routers;
    graph.routers += wide;
  }
  add_nodes(graph, first, graph.routers - first, k);
  return graph;
}

RouterGraph make_tree4(std::int32_t k) {
  RouterGraph graph;
  graph.name = fmt::format("tree4:k={}", k);
  graph.shape = Shape::tree;
  const std::int32_t middle = k * (k / 2);
  const std::int32_t leaves = k + middle;  // the first of them
  graph.routers = leaves + k * k;
  const auto join = [&](std::int32_t upper, std::int32_t lower) {
    graph.channels.push_back({upper, lower, 1});
    graph.channels.push_back({lower, upper, 1});
  };
  for (std::int32_t i = 0; i < middle; ++i) {
    for (std::int32_t j = 0; j < k; ++j) {
      join(j, k + i);
      join(k + i, leaves + i / (k / 2) * k + j);
    }
  }
  add_nodes(graph, leaves, k * k, k);
  return graph;
}

RouterGraph make_fat_tree(std::int32_t k, std::int32_t n) {
  RouterGraph graph;
  graph.name = fmt::format("fat_tree:k={},n={}", k, n);
  graph.shape = Shape::fat_tree;
  graph.extents.assign(static_cast<std::size_t>(n), k);
  const std::int32_t wide = power(k, n - 1);
  graph.routers = n * wide;
  for (std::int32_t router = 0; router < graph.routers; ++router) {
    const std::int32_t level = router / wide;
    if (level + 1 < n) {
      link_digit(graph, router, level + 1, k, power(k, n - 2 - level));  // down
    }
    if (level > 0) {
      link_digit(graph, router, level - 1, k, power(k, n - 1 - level));  // up
    }
  }
  add_nodes(graph, (n - 1) * wide, wide, k);
  return graph;
}

RouterGraph make_fly(std::int32_t k, std::int32_t n) {
  RouterGraph graph;
  graph.name = fmt::format("fly:k={},n={}", k, n);
  graph.shape = Shape::fly;
  graph.nodes_first = false;
  graph.extents.assign(static_cast<std::size_t>(n), k);
  const std::int32_t wide = power(k, n - 1);
  graph.routers = n * wide;
  for (std::int32_t router = 0; router < graph.routers - wide; ++router) {
    const std::int32_t stage = router / wide;
    link_digit(graph, router, stage + 1, k, power(k, n - 2 - stage));
  }
  for (std::int32_t node = 0; node < wide * k; ++node) {
    graph.nodes.push_back({node / k, (n - 1) * wide + node / k, 1});
  }
  return graph;
}

RouterGraph make_flattened_butterfly(std::vector<std::int32_t> extents, std::int32_t per_router) {
  RouterGraph graph;
  graph.name = fmt::format("flattened_butterfly:{},c={}", joined(extents, "x"), per_router);
  graph.shape = Shape::flattened_butterfly;
  graph.routers = product(extents);
  graph.extents = std::move(extents);
  for (std::int32_t router = 0; router < graph.routers; ++router) {
    std::int32_t weight = 1;
    for (const std::int32_t extent : graph.extents) {
      link_line(graph, router, router / weight % extent, extent, weight);
      weight *= extent;
    }
  }
  std::int32_t side = 1;
  while (side * side < per_router) {
    ++side;
  }
  if (graph.extents.size() == 2 && side * side == per_router) {
    add_tiles(graph, side);
  } else {
    add_nodes(graph, 0, graph.routers, per_router);
  }
  return graph;
}

RouterGraph make_dragonfly(std::int32_t p, std::int32_t a, std::int32_t h) {
  RouterGraph graph;
  graph.name = fmt::format("dragonfly:p={},a={},h={}", p, a, h);
  graph.shape = Shape::dragonfly;
  graph.extents = {a, h};
  graph.routers = (a * h + 1) * a;
  for (std::int32_t router = 0; router < graph.routers; ++router) {
    const std::int32_t group = router / a;
    const std::int32_t i = router % a;
    link_line(graph, router, i, a, 1);
    for (std::int32_t link = i * h; link < (i + 1) * h; ++link) {
      const std::int32_t target = link + (link < group ? 0 : 1);
      const std::int32_t back = group - (group < target ? 0 : 1);       // link of the other group
      graph.channels.push_back({router, target * a + back / h, 1, 1});  // behind those of the group
    }
  }
  add_nodes(graph, 0, graph.routers, p);
  return graph;
}

RouterGraph make_switch_clusters(std::int32_t switches, std::int32_t per_switch,
                                 std::int32_t links) {
  RouterGraph graph;
  graph.name = fmt::format("switch_clusters:n={},p={},links={}", switches, per_switch, links);
  graph.shape = Shape::switch_clusters;
  graph.extents = {switches, links};
  graph.routers = switches;
  for (std::int32_t source = 0; source < switches; ++source) {
    for (std::int32_t target = 0; target < switches; ++target) {
      for (std::int32_t link = 0; link < (source == target ? 0 : links); ++link) {
        graph.channels.push_back({source, target, 1});
      }
    }
  }
  add_nodes(graph, 0, switches, per_switch);
  return graph;
}

}  // namespace orrery::flit
