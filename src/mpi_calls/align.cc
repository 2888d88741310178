// SPDX-License-Identifier: Apache-2.0
#include "mpi_calls/align.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace orrery::mpi_calls {
namespace {

/// A line of one program and the same one of the other, from 0.
using Pair = std::pair<std::size_t, std::size_t>;

std::vector<std::string> trimmed_lines(const Record& record) {
  std::vector<std::string> lines = lines_of(record);
  for (std::string& line : lines) {
    const std::size_t begin = line.find_first_not_of(" \t");
    const std::size_t end = line.find_last_not_of(" \t");
    line = begin == std::string::npos ? "" : line.substr(begin, end + 1 - begin);
  }
  return lines;
}

/// Lines that stand once in each, in the order of the first.
std::vector<Pair> common_lines(const std::vector<std::string>& from,
                               const std::vector<std::string>& to) {
  struct Places {
    std::size_t in_from = 0;
    std::size_t in_to = 0;
    std::size_t at = 0;
  };
  std::map<std::string_view, Places> places;
  for (const std::string& line : from) {
    ++places[line].in_from;
  }
  for (std::size_t i = 0; i < to.size(); ++i) {
    Places& place = places[to[i]];
    ++place.in_to;
    place.at = i;
  }
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Places& place = places[from[i]];
    if (place.in_from == 1 && place.in_to == 1) {
      pairs.emplace_back(i, place.at);
    }
  }
  return pairs;
}

/// Returns the longest part of the pairs whose second members rise (patience sorting).
std::vector<Pair> longest_rising(const std::vector<Pair>& pairs) {
  std::vector<std::size_t> ends;  ///< by length less 1: the pair with the least end
  std::vector<std::size_t> before(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto at = std::ranges::lower_bound(ends, pairs[i].second, {},
                                             [&](std::size_t end) { return pairs[end].second; });
    before[i] = at == ends.begin() ? i : *(at - 1);
    if (at == ends.end()) {
      ends.push_back(i);
    } else {
      *at = i;
    }
  }
  std::vector<Pair> rising(ends.size());
  for (std::size_t k = ends.size(), i = ends.empty() ? 0 : ends.back(); k-- > 0; i = before[i]) {
    rising[k] = pairs[i];
  }
  return rising;
}

/// Returns for every line of `from` the number of the same line of `to`, from 1; 0: none.
std::vector<std::size_t> same_lines(const std::vector<std::string>& from,
                                    const std::vector<std::string>& to) {
  std::vector<std::size_t> same(from.size());
  std::vector<Pair> pairs = longest_rising(common_lines(from, to));
  std::size_t begin_from = 0;
  std::size_t begin_to = 0;
  pairs.emplace_back(from.size(), to.size());
  for (const auto& [end_from, end_to] : pairs) {
    std::size_t i = begin_from;
    std::size_t j = begin_to;
    for (; i < end_from && j < end_to && from[i] == to[j]; ++i, ++j) {
      same[i] = j + 1;
    }
    for (std::size_t a = end_from, b = end_to; a > i && b > j && from[a - 1] == to[b - 1];) {
      same[--a] = b--;
    }
    if (end_from < from.size()) {
      same[end_from] = end_to + 1;
    }
    begin_from = end_from + 1;
    begin_to = end_to + 1;
  }
  return same;
}

}  // namespace

std::vector<Label> complete_like(const Record& whole, const Record& code) {
  const std::vector<std::size_t> same = same_lines(trimmed_lines(whole), trimmed_lines(code));
  std::vector<Label> labels;
  const auto missing = static_cast<std::size_t>(std::ranges::count(same, std::size_t{0}));
  if (2 * missing > same.size()) {
    return labels;
  }
  std::map<std::int64_t, std::int64_t> subs;
  for (Label& label : parse_labels(whole.mpi_labels)) {
    auto line = std::min(static_cast<std::size_t>(label.line), same.size());
    if (label.sub == 0 && (line == 0 || same[line - 1] == 0)) {
      continue;
    }
    while (line > 0 && same[line - 1] == 0) {
      --line;
    }
    label.line = line == 0 ? 0 : static_cast<std::int64_t>(same[line - 1]);
    label.sub = label.sub == 0 ? 0 : ++subs[label.line];
    labels.push_back(std::move(label));
  }
  return labels;
}

}  // namespace orrery::mpi_calls
