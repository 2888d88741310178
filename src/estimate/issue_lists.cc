// SPDX-License-Identifier: Apache-2.0
#include "estimate/issue_lists.h"

#include <algorithm>

namespace orrery::estimation {
namespace {

constexpr std::int64_t kLeastRounds = 3;  // fewer are not worth a comparison

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

/// Shortest period of the middle half of the list: its length less its longest border (Knuth,
/// Morris, Pratt 1977). The half itself when it repeats nothing.
std::int64_t middle_period(const std::vector<int>& list) {
  const std::vector<int> half(list.begin() + std::ssize(list) / 4,
                              list.end() - std::ssize(list) / 4);
  std::vector<std::size_t> border(half.size(), 0);
  for (std::size_t i = 1; i < half.size(); ++i) {
    std::size_t length = border[i - 1];
    while (length > 0 && half[i] != half[length]) {
      length = border[length - 1];
    }
    border[i] = length + (half[i] == half[length] ? 1 : 0);
  }
  return half.empty() ? 0 : std::ssize(half) - static_cast<std::int64_t>(border.back());
}

/// Grows from the middle of every list as far as it repeats; length 0 when some list has less than
/// kLeastRounds of it.
Repetition repetition_of(const std::vector<std::vector<int>>& lists, std::int64_t length) {
  Repetition repetition{.length = length, .from = {}, .until = {}};
  for (const std::vector<int>& list : lists) {
    const auto same = [&](std::int64_t i) { return list[at(i)] == list[at(i + length)]; };
    std::int64_t from = std::max<std::int64_t>(0, (std::ssize(list) - length) / 2);
    std::int64_t until = from;
    while (from > 0 && same(from - 1)) {
      --from;
    }
    while (until + length < std::ssize(list) && same(until)) {
      ++until;
    }
    repetition.from.push_back(from);
    repetition.until.push_back(until + length);
    if (length == 0 || until + length - from < kLeastRounds * length) {
      repetition.length = 0;
      break;
    }
  }
  return repetition;
}

}  // namespace

IssueLists issue_lists(const Workload& workload) {
  IssueLists lists;
  for (int role = 0; role < static_cast<int>(workload.programs.size()); ++role) {
    std::vector<int>& list = lists.templates.emplace_back();
    list.reserve(at(workload.source->length(role)));
    for (std::int64_t i = 0; const auto instance = workload.source->issue(role, i); ++i) {
      list.push_back(instance->template_index);
    }
  }
  // The last stage has the shortest warm-up, the first one the longest.
  for (const std::vector<int>* list : {&lists.templates.back(), &lists.templates.front()}) {
    lists.repetition = repetition_of(lists.templates, middle_period(*list));
    if (lists.repetition.length > 0) {
      break;
    }
  }
  return lists;
}

}  // namespace orrery::estimation
