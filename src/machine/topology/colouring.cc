// SPDX-License-Identifier: Apache-2.0
#include "machine/topology/colouring.h"

#include <algorithm>

namespace orrery::topology {
namespace {

constexpr std::int32_t kFree = -1;

/// Holds the edge that has a colour at a leaf side. Sides are the sources first, then the targets.
class ColourTable {
 public:
  ColourTable(std::size_t sides, std::size_t colours)
      : colours_(colours), edge_(sides * colours, kFree), first_free_(sides) {}

  std::int32_t& edge(std::size_t side, std::int32_t colour) {
    return edge_[side * colours_ + static_cast<std::size_t>(colour)];
  }
  /// The first colour that no edge of the side has. There is one while an edge of it has none.
  std::int32_t first_free(std::size_t side) {
    std::int32_t& colour = first_free_[side];
    while (edge(side, colour) != kFree) {
      ++colour;
    }
    return colour;
  }
  /// An edge no longer has a colour at a side, if it is the one that has it.
  void take_back(std::size_t side, std::int32_t colour, std::int32_t from) {
    if (edge(side, colour) == from) {
      edge(side, colour) = kFree;
    }
  }
  void freed(std::size_t side, std::int32_t colour) {
    first_free_[side] = std::min(first_free_[side], colour);
  }

 private:
  std::size_t colours_;
  std::vector<std::int32_t> edge_;
  std::vector<std::int32_t> first_free_;
};

}  // namespace

std::int32_t largest_degree(std::span<const LeafPair> edges, std::int32_t leaves) {
  std::vector<std::int32_t> degree(static_cast<std::size_t>(leaves) * 2);
  for (const LeafPair& edge : edges) {
    ++degree[static_cast<std::size_t>(edge.source)];
    ++degree[static_cast<std::size_t>(leaves) + static_cast<std::size_t>(edge.target)];
  }
  return degree.empty() ? 0 : *std::ranges::max_element(degree);
}

std::vector<std::int32_t> edge_colours(std::span<const LeafPair> edges, std::int32_t leaves) {
  ColourTable table(static_cast<std::size_t>(leaves) * 2,
                    static_cast<std::size_t>(largest_degree(edges, leaves)));
  std::vector<std::int32_t> colours(edges.size(), kFree);
  const auto side_of = [&](std::int32_t edge, bool target) {
    const LeafPair& pair = edges[static_cast<std::size_t>(edge)];
    return static_cast<std::size_t>(target ? leaves + pair.target : pair.source);
  };
  std::vector<std::int32_t> path;
  for (std::int32_t e = 0; e < static_cast<std::int32_t>(edges.size()); ++e) {
    const std::size_t source = side_of(e, false);
    const std::size_t target = side_of(e, true);
    const std::int32_t a = table.first_free(source);
    const std::int32_t b = table.first_free(target);
    // The path from the target that alternates a, b: it never comes to the source, which has no a.
    path.clear();
    bool at_target = true;
    std::int32_t colour = a;
    for (std::int32_t next = table.edge(target, a); next != kFree && a != b;) {
      path.push_back(next);
      at_target = !at_target;
      colour = colour == a ? b : a;
      next = table.edge(side_of(next, at_target), colour);
    }
    for (const std::int32_t flipped : path) {
      const std::int32_t old = colours[static_cast<std::size_t>(flipped)];
      table.take_back(side_of(flipped, false), old, flipped);
      table.take_back(side_of(flipped, true), old, flipped);
    }
    for (const std::int32_t flipped : path) {
      std::int32_t& its = colours[static_cast<std::size_t>(flipped)];
      its = its == a ? b : a;
      table.edge(side_of(flipped, false), its) = flipped;
      table.edge(side_of(flipped, true), its) = flipped;
    }
    if (!path.empty()) {  // its last edge has freed a colour at its far end
      table.freed(side_of(path.back(), false), std::min(a, b));
      table.freed(side_of(path.back(), true), std::min(a, b));
    }
    colours[static_cast<std::size_t>(e)] = a;
    table.edge(source, a) = e;
    table.edge(target, a) = e;
  }
  return colours;
}

}  // namespace orrery::topology
