// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <optional>

#include "collective/cost.h"

namespace orrery::collective {
namespace {

/// Devices of a dimension; an open one (size 0) is as large as any group needs.
std::int64_t size_of(const topology::NetworkDimension& dimension, std::int64_t needed) {
  return dimension.size > 0 ? dimension.size : needed;
}

/// Returns the group as a product of extents, or nothing when some member leaves the grid.
std::optional<std::vector<Extent>> product_of(std::int64_t stride, std::int64_t count,
                                              const machine::Machine& machine) {
  std::vector<Extent> extents;
  for (std::size_t d = 0; d < machine.network.size() && count > 1; ++d) {
    const std::int64_t size = size_of(machine.network[d], stride * count);
    if (stride >= size) {  // all members share this coordinate
      if (stride % size != 0) {
        return std::nullopt;
      }
      stride /= size;
      continue;
    }
    if (size % stride != 0) {
      return std::nullopt;
    }
    const std::int64_t here = std::min(count, size / stride);
    const bool blocks_fit = here < count ? count % here == 0 : (size / stride) % count == 0;
    if (!blocks_fit) {
      return std::nullopt;
    }
    if (here > 1) {
      extents.push_back({static_cast<int>(d), here, stride});
    }
    count /= here;
    stride = 1;
  }
  const bool fits = count == 1 && std::ssize(extents) <= topology::kMaxDimensions;
  return fits ? std::optional(extents) : std::nullopt;
}

/// Returns the outermost dimension in which two members of some group differ: blocks of stride *
/// count ranks cross the boundaries of everything inside it.
int outermost_touched(std::int64_t stride, std::int64_t count, const machine::Machine& machine) {
  int touched = 0;
  std::int64_t inside = 1;
  for (std::size_t d = 0; d < machine.network.size(); ++d) {
    if (inside % (stride * count) != 0) {
      touched = static_cast<int>(d);
    }
    inside *= size_of(machine.network[d], stride * count);
  }
  return touched;
}

}  // namespace

std::vector<Extent> extents_of(std::int64_t stride, std::int64_t count,
                               const machine::Machine& machine) {
  if (count <= 1 || machine.network.empty()) {
    return {};
  }
  if (auto product = product_of(stride, count, machine)) {
    return *product;
  }
  return {{outermost_touched(stride, count, machine), count, 1}};
}

}  // namespace orrery::collective
