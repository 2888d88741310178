// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "collective/chimera/training.h"

namespace orrery::chimera {
namespace {

/// Blocks of so many ranks, the most compact first, then those longest in x.
std::vector<Extents> shapes_of(Topology topology, const Extents& extents, std::int32_t ranks) {
  std::vector<Extents> shapes;
  for (std::int32_t x = 1; x <= std::min(ranks, extents[0]); ++x) {
    for (std::int32_t y = 1; x * y <= ranks && y <= extents[1]; ++y) {
      const std::int32_t z = ranks / (x * y);
      const bool in_line = topology != Topology::two_switch || y == 1;
      if (x * y * z == ranks && z <= extents[2] && in_line) {
        shapes.push_back({x, y, z});
      }
    }
  }
  std::sort(shapes.begin(), shapes.end(), [](const Extents& a, const Extents& b) {
    const std::int32_t of_a = a[0] + a[1] + a[2];
    const std::int32_t of_b = b[0] + b[1] + b[2];
    return of_a != of_b ? of_a < of_b : a > b;
  });
  return shapes;
}

class Grid {
 public:
  explicit Grid(const Extents& extents)
      : extents_(extents), taken_(static_cast<std::size_t>(extents[0] * extents[1] * extents[2])) {}

  std::int32_t nodes() const { return static_cast<std::int32_t>(taken_.size()); }
  Extents at(std::int32_t node) const {
    return {node % extents_[0], node / extents_[0] % extents_[1],
            node / (extents_[0] * extents_[1])};
  }

  bool take(const Block& block) {
    for (std::size_t d = 0; d < extents_.size(); ++d) {
      if (block.origin[d] + block.extents[d] > extents_[d]) {
        return false;
      }
    }
    const Grid cells(block.extents);
    std::vector<std::size_t> wanted;
    for (std::int32_t cell = 0; cell < cells.nodes(); ++cell) {
      const Extents place = cells.at(cell);
      wanted.push_back(static_cast<std::size_t>(
          block.origin[0] + place[0] +
          extents_[0] * (block.origin[1] + place[1] + extents_[1] * (block.origin[2] + place[2]))));
    }
    if (std::any_of(wanted.begin(), wanted.end(), [&](std::size_t n) { return taken_[n]; })) {
      return false;
    }
    for (const std::size_t node : wanted) {
      taken_[node] = true;
    }
    return true;
  }

 private:
  Extents extents_;
  std::vector<bool> taken_;
};

/// Twice the distance of the middles.
std::int32_t distance(const Block& a, const Block& b) {
  std::int32_t sum = 0;
  for (std::size_t d = 0; d < a.extents.size(); ++d) {
    sum += std::abs(2 * (a.origin[d] - b.origin[d]) + a.extents[d] - b.extents[d]);
  }
  return sum;
}

}  // namespace

std::vector<Block> place_stages(Topology topology, const Extents& extents, std::int32_t stages) {
  Grid grid(extents);
  const std::int32_t ranks = std::max(1, grid.nodes() / std::max(1, stages));
  std::vector<Block> free;
  const std::vector<Extents> shapes = shapes_of(topology, extents, ranks);
  for (std::int32_t node = 0; node < grid.nodes(); ++node) {
    for (const Extents& shape : shapes) {
      const Block block{grid.at(node), shape};
      if (grid.take(block)) {
        free.push_back(block);
        break;
      }
    }
  }
  std::vector<Block> placed;
  while (!free.empty() && static_cast<std::int32_t>(placed.size()) < stages) {
    auto nearest = free.begin();
    for (auto it = free.begin(); it != free.end() && !placed.empty(); ++it) {
      nearest = distance(placed.back(), *it) < distance(placed.back(), *nearest) ? it : nearest;
    }
    placed.push_back(*nearest);
    free.erase(nearest);
  }
  return placed;
}

}  // namespace orrery::chimera
