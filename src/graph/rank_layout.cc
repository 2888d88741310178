// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "graph/workload.h"

namespace orrery {

std::int64_t RankLayout::ranks() const {
  std::int64_t product = 1;
  for (const Entry& entry : axes) {
    product *= entry.size;
  }
  return product;
}

std::vector<Digit> RankLayout::digits(Axis axis) const {
  for (const Communicator& communicator : communicators) {
    if (communicator.axis == axis) {
      return communicator.digits;
    }
  }
  if (axis == Axis::embedding) {  // the first and the last stage
    const std::int64_t stages = size(Axis::pp);
    return stages > 1 ? std::vector<Digit>{{2, stride(Axis::pp) * (stages - 1)}}
                      : std::vector<Digit>{};
  }
  std::int64_t stride = 1;
  for (const Entry& entry : axes) {
    if (entry.axis == axis) {
      return entry.size > 1 ? std::vector<Digit>{{entry.size, stride}} : std::vector<Digit>{};
    }
    stride *= entry.size;
  }
  return {};
}

std::int64_t RankLayout::size(Axis axis) const {
  std::int64_t product = 1;
  for (const Digit& digit : digits(axis)) {
    product *= digit.size;
  }
  return product;
}

std::int64_t RankLayout::stride(Axis axis) const {
  const std::vector<Digit> parts = digits(axis);
  return parts.empty() ? 1 : parts.front().stride;
}

std::int64_t RankLayout::coordinate(std::int64_t rank, Axis axis) const {
  if (axis == Axis::embedding) {
    return coordinate(rank, Axis::pp) == 0 ? 0 : 1;
  }
  std::int64_t number = 0;
  std::int64_t weight = 1;
  for (const Digit& digit : digits(axis)) {
    number += rank / digit.stride % digit.size * weight;
    weight *= digit.size;
  }
  return number;
}

std::int64_t RankLayout::with(std::int64_t rank, Axis axis, std::int64_t value) const {
  for (const Digit& digit : digits(axis)) {
    rank += (value % digit.size - rank / digit.stride % digit.size) * digit.stride;
    value /= digit.size;
  }
  return rank;
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
  const std::int64_t count = size(axis);
  for (std::int64_t i = 0; i < count; ++i) {
    members.push_back(with(rank, axis, i));
  }
  return members;
}

std::optional<std::vector<Digit>> RankLayout::atoms() const {
  std::vector<Digit> parts;
  for (const Entry& entry : axes) {
    const std::vector<Digit> own = digits(entry.axis);
    parts.insert(parts.end(), own.begin(), own.end());
  }
  for (const Communicator& communicator : communicators) {
    parts.insert(parts.end(), communicator.digits.begin(), communicator.digits.end());
  }
  std::vector<std::int64_t> cuts{1, ranks()};
  for (const Digit& part : parts) {
    cuts.push_back(part.stride);
    cuts.push_back(part.stride * part.size);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  const std::int64_t stages = size(Axis::pp);
  const std::int64_t first_stage = stages > 1 ? stride(Axis::pp) : 0;
  std::vector<Digit> atoms;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    if (cuts[i + 1] % cuts[i] != 0) {
      return std::nullopt;
    }
    const bool of_stages = cuts[i] >= first_stage && cuts[i + 1] <= first_stage * stages;
    if (!of_stages) {
      atoms.push_back({cuts[i + 1] / cuts[i], cuts[i]});
    }
  }
  return atoms;
}

}  // namespace orrery
