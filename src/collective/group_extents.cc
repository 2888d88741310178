// SPDX-License-Identifier: Apache-2.0
#include "collective/group_extents.h"

#include <cstdlib>

namespace orrery {
namespace {

std::vector<Extent> pair_extent(std::int64_t first, std::int64_t last, const Machine& machine) {
  std::vector<Extent> extents;
  std::int64_t inner = 1;
  for (std::size_t d = 0; d < machine.network.size(); ++d) {
    const std::int64_t size = machine.network[d].size;
    const std::int64_t distance = std::abs(last / inner % size - first / inner % size);
    if (distance > 0) {
      extents = {{.dimension = static_cast<int>(d), .count = 2, .stride = distance}};
    }
    inner *= size;
  }
  return extents;
}

}  // namespace

std::vector<Extent> group_extents(const RankLayout& layout, Axis axis, const Machine& machine) {
  if (axis == Axis::embedding) {
    return pair_extent(0, layout.with(0, Axis::pp, layout.size(Axis::pp) - 1), machine);
  }
  std::vector<Extent> extents;
  for (const Digit& digit : layout.digits(axis)) {
    for (const Extent& extent : extents_of(digit.stride, digit.size, machine)) {
      if (!extents.empty() && extents.back().dimension == extent.dimension) {
        extents.back().count *= extent.count;  // members of both digits, as if evenly spread
      } else {
        extents.push_back(extent);
      }
    }
  }
  return extents;
}

}  // namespace orrery
