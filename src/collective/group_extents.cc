// SPDX-License-Identifier: Apache-2.0
#include "collective/group_extents.h"

#include <algorithm>
#include <cstdlib>

#include "base/lists.h"

namespace orrery::collective {
namespace {

/// Distinct coordinates of the ranks in one dimension, ascending.
std::vector<std::int64_t> coordinates(const std::vector<std::int64_t>& ranks, std::int64_t inner,
                                      std::int64_t size) {
  std::vector<std::int64_t> found =
      mapped(ranks, [&](const std::int64_t rank) { return rank / inner % size; });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<Extent> extents_of_list(const std::vector<std::int64_t>& ranks,
                                    const machine::Machine& machine) {
  std::vector<Extent> extents;
  std::int64_t inner = 1;
  std::int64_t product = 1;
  for (std::size_t d = 0; d < machine.network.size(); ++d) {
    const std::int64_t size = machine.network[d].size;
    const auto found = coordinates(ranks, inner, size);
    if (found.size() > 1) {
      extents.push_back({.dimension = static_cast<int>(d),
                         .count = std::ssize(found),
                         .stride = found[1] - found[0]});
      product *= std::ssize(found);
    }
    inner *= size;
  }
  if (product != std::ssize(ranks) && !extents.empty()) {
    extents = {extents.back()};
    extents.front().count = std::ssize(ranks);
  }
  return extents;
}

}  // namespace

std::vector<Extent> group_extents(const graph::Members& members, std::int64_t rank,
                                  const machine::Machine& machine) {
  if (!members.by_digits() || !members.only.empty()) {
    return extents_of_list(members.group(rank), machine);
  }
  std::vector<Extent> extents;
  for (const graph::Digit& digit : members.digits) {
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

}  // namespace orrery::collective
