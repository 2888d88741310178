// SPDX-License-Identifier: Apache-2.0
#include "graph/workload.h"

namespace orrery {

std::int64_t RankLayout::ranks() const {
  std::int64_t product = 1;
  for (const Entry& entry : axes) {
    product *= entry.size;
  }
  return product;
}

std::int64_t RankLayout::size(Axis axis) const {
  if (axis == Axis::embedding) {
    return size(Axis::pp) > 1 ? 2 : 1;
  }
  for (const Entry& entry : axes) {
    if (entry.axis == axis) {
      return entry.size;
    }
  }
  return 1;
}

std::int64_t RankLayout::stride(Axis axis) const {
  if (axis == Axis::embedding) {  // the first and the last stage
    return stride(Axis::pp) * (size(Axis::pp) - 1);
  }
  std::int64_t product = 1;
  for (const Entry& entry : axes) {
    if (entry.axis == axis) {
      break;
    }
    product *= entry.size;
  }
  return product;
}

std::int64_t RankLayout::coordinate(std::int64_t rank, Axis axis) const {
  if (axis == Axis::embedding) {
    return coordinate(rank, Axis::pp) == 0 ? 0 : 1;
  }
  return rank / stride(axis) % size(axis);
}

std::int64_t RankLayout::with(std::int64_t rank, Axis axis, std::int64_t value) const {
  return rank + (value - coordinate(rank, axis)) * stride(axis);
}

std::vector<std::int64_t> RankLayout::group(std::int64_t rank, Axis axis) const {
  std::vector<std::int64_t> members;
  if (axis == Axis::embedding) {
    const std::int64_t last = size(Axis::pp) - 1;
    const std::int64_t stage = coordinate(rank, Axis::pp);
    if (last > 0 && (stage == 0 || stage == last)) {
      members = {with(rank, Axis::pp, 0), with(rank, Axis::pp, last)};
    }
    return members;
  }
  for (std::int64_t i = 0; i < size(axis); ++i) {
    members.push_back(with(rank, axis, i));
  }
  return members;
}

}  // namespace orrery
