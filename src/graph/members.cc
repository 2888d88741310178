// SPDX-License-Identifier: Apache-2.0
#include "graph/members.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace orrery::graph {

std::int64_t coordinate_of(const std::vector<Digit>& digits, std::int64_t rank) {
  std::int64_t number = 0;
  std::int64_t weight = 1;
  for (const Digit& digit : digits) {
    number += digit.of(rank) * weight;
    weight *= digit.size;
  }
  return number;
}

std::int64_t replaced(const std::vector<Digit>& digits, std::int64_t rank,
                      std::int64_t coordinate) {
  for (const Digit& digit : digits) {
    rank += (coordinate % digit.size - digit.of(rank)) * digit.stride;
    coordinate /= digit.size;
  }
  return rank;
}

std::int64_t product_of(const std::vector<Digit>& digits) {
  std::int64_t product = 1;
  for (const Digit& digit : digits) {
    product *= digit.size;
  }
  return product;
}

Members Members::listed(std::vector<std::vector<std::int64_t>> lists, std::int64_t ranks) {
  Members members{.digits = {}, .only = {}, .lists = std::move(lists), .list_of = {}};
  members.list_of.assign(static_cast<std::size_t>(ranks), -1);
  for (std::size_t i = 0; i < members.lists.size(); ++i) {
    for (const std::int64_t rank : members.lists[i]) {
      members.list_of[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(i);
    }
  }
  return members;
}

std::int64_t Members::size() const {
  if (by_digits()) {
    return only.empty() ? product_of(digits) : static_cast<std::int64_t>(only.size());
  }
  std::size_t largest = 1;
  for (const std::vector<std::int64_t>& list : lists) {
    largest = std::max(largest, list.size());
  }
  return static_cast<std::int64_t>(largest);
}

bool Members::holds(std::int64_t rank) const {
  if (!by_digits()) {
    return list_of[static_cast<std::size_t>(rank)] >= 0;
  }
  return only.empty() || std::binary_search(only.begin(), only.end(), coordinate_of(digits, rank));
}

std::vector<std::int64_t> Members::group(std::int64_t rank) const {
  if (!holds(rank)) {
    return {};
  }
  if (!by_digits()) {
    return lists[static_cast<std::size_t>(list_of[static_cast<std::size_t>(rank)])];
  }
  std::vector<std::int64_t> members;
  const std::int64_t count = size();
  members.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    members.push_back(member(rank, i));
  }
  return members;
}

std::int64_t Members::coordinate(std::int64_t rank) const {
  assert(holds(rank) && "the rank is in a communicator");
  if (!by_digits()) {
    const auto& list = lists[static_cast<std::size_t>(list_of[static_cast<std::size_t>(rank)])];
    return std::find(list.begin(), list.end(), rank) - list.begin();
  }
  const std::int64_t number = coordinate_of(digits, rank);
  return only.empty() ? number : std::lower_bound(only.begin(), only.end(), number) - only.begin();
}

std::int64_t Members::member(std::int64_t rank, std::int64_t number) const {
  assert(holds(rank) && "the rank is in a communicator");
  const auto i = static_cast<std::size_t>(number);
  if (!by_digits()) {
    return lists[static_cast<std::size_t>(list_of[static_cast<std::size_t>(rank)])][i];
  }
  return replaced(digits, rank, only.empty() ? number : only[i]);
}

std::optional<std::vector<Digit>> refine(const std::vector<Digit>& parts,
                                         const std::vector<Digit>& whole, std::int64_t ranks) {
  std::vector<std::int64_t> cuts{1, ranks};
  const auto cut = [&](const Digit& part) {
    cuts.push_back(part.stride);
    cuts.push_back(part.stride * part.size);
  };
  std::for_each(parts.begin(), parts.end(), cut);
  std::for_each(whole.begin(), whole.end(), cut);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<Digit> atoms;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    if (cuts[i + 1] % cuts[i] != 0) {
      return std::nullopt;
    }
    const bool outside = std::none_of(whole.begin(), whole.end(), [&](const Digit& digit) {
      return cuts[i] >= digit.stride && cuts[i + 1] <= digit.stride * digit.size;
    });
    if (outside) {
      atoms.push_back({cuts[i + 1] / cuts[i], cuts[i]});
    }
  }
  return atoms;
}

}  // namespace orrery::graph
