// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <vector>

#include "base/names.h"

namespace orrery {

/// The names (names.h) of an enumeration that is open: they stand in the rows of a list that is
/// linked, not in a header. Its named_values() returns this, and beside it stands
///
///   const std::vector<Named<E>>& listed_values(E);
template <class E>
class ListedNames {
 public:
  const Named<E>* begin() const { return listed_values(E{}).data(); }
  const Named<E>* end() const { return begin() + size(); }
  std::size_t size() const { return listed_values(E{}).size(); }
  const Named<E>& operator[](std::size_t i) const { return begin()[i]; }
};

/// Returns the rows of such a list in the order of their values, those without one (the highest)
/// after them by name; each gets its place as its value.
template <class Row>
std::vector<Row> in_listed_order(std::vector<Row> rows) {
  std::ranges::sort(rows, {}, [](const Row& row) { return std::tuple(row.value, row.name); });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].value = static_cast<decltype(rows[i].value)>(i);
  }
  return rows;
}

template <class Row>
auto names_of_rows(const std::vector<Row>& rows) {
  std::vector<Named<decltype(Row::value)>> names;
  names.reserve(rows.size());
  for (const Row& row : rows) {
    names.push_back({row.value, row.name, row.sentence});
  }
  return names;
}

}  // namespace orrery
