// SPDX-License-Identifier: Apache-2.0
#include "graph/regular.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace orrery::graph {
namespace {

/// Returns whether equal ranks but for `digit` have equal values.
bool matters_not(const Digit& digit, const std::vector<std::int32_t>& value_of) {
  for (std::int64_t rank = 0; rank < std::ssize(value_of); ++rank) {
    const std::int64_t first = rank - digit.of(rank) * digit.stride;
    if (value_of[static_cast<std::size_t>(rank)] != value_of[static_cast<std::size_t>(first)]) {
      return false;
    }
  }
  return true;
}

/// Divisors of a number above 1, ascending.
std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> found;
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d == 0) {
      found.push_back(d);
      found.push_back(number / d);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  found.erase(found.begin());
  return found;
}

/// Size of the longest digit of that stride that does not matter; 1 when there is none.
std::int64_t longest_free(std::int64_t stride, const std::vector<std::int32_t>& value_of) {
  const std::vector<std::int64_t> sizes = divisors(std::ssize(value_of) / stride);
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    if (matters_not({*size, stride}, value_of)) {
      return *size;
    }
  }
  return 1;
}

/// Size of the shortest digit of that stride behind which there is one that does not matter.
std::int64_t shortest_telling(std::int64_t stride, const std::vector<std::int32_t>& value_of) {
  const std::int64_t rest = std::ssize(value_of) / stride;
  for (const std::int64_t size : divisors(rest)) {
    if (size == rest || longest_free(stride * size, value_of) > 1) {
      return size;
    }
  }
  return rest;
}

/// Returns the digits in which the ranks of an ascending list differ, if it is all numbers that
/// they make.
std::optional<std::vector<Digit>> digits_of_list(const std::vector<std::int64_t>& list,
                                                 std::int64_t ranks) {
  std::vector<Digit> digits;
  std::int64_t span = 1;  // rank numbers that the digits so far fill
  for (std::size_t count = 1; count < list.size();) {
    const std::int64_t stride = list[count] - list[0];
    std::size_t size = 1;
    while (count * (size + 1) <= list.size() &&
           list[count * size] - list[0] == stride * static_cast<std::int64_t>(size)) {
      ++size;
    }
    if (size == 1 || stride % span != 0) {
      return std::nullopt;
    }
    digits.push_back({static_cast<std::int64_t>(size), stride});
    span = stride * static_cast<std::int64_t>(size);
    count *= size;
  }
  return ranks % span == 0 ? std::optional(digits) : std::nullopt;
}

bool says(const Members& members, const std::vector<std::vector<std::int64_t>>& lists) {
  return std::all_of(lists.begin(), lists.end(), [&](const std::vector<std::int64_t>& list) {
    return std::ssize(list) == members.size() && members.holds(list.front()) &&
           members.group(list.front()) == list;
  });
}

}  // namespace

std::vector<Digit> telling_digits(const std::vector<std::int32_t>& value_of) {
  std::vector<Digit> digits;
  for (std::int64_t stride = 1; stride < std::ssize(value_of);) {
    const std::int64_t free = longest_free(stride, value_of);
    if (free > 1) {
      stride *= free;
      continue;
    }
    digits.push_back({shortest_telling(stride, value_of), stride});
    stride *= digits.back().size;
  }
  return digits;
}

std::optional<Members> members_by_digits(const std::vector<std::vector<std::int64_t>>& lists,
                                         const std::vector<Digit>& roles, std::int64_t ranks) {
  Members members;
  if (auto digits = digits_of_list(lists.front(), ranks)) {
    members.digits = std::move(*digits);
    if (says(members, lists)) {
      return members;
    }
  }
  members.digits = roles;
  for (const std::int64_t rank : lists.front()) {
    members.only.push_back(coordinate_of(roles, rank));
  }
  const bool ascending = std::adjacent_find(members.only.begin(), members.only.end(),
                                            std::greater_equal<>()) == members.only.end();
  return ascending && says(members, lists) ? std::optional(std::move(members)) : std::nullopt;
}

}  // namespace orrery::graph
