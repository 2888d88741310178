// SPDX-License-Identifier: Apache-2.0
/// A table of typed cells: what a store holds and a query returns.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace orrery::sweep {

/// A cell is nothing, a whole number, a number or a text, as SQLite has them.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string>;

struct Rows {
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;  ///< each as wide as columns
};

/// Returns numbers as the shortest text that reads back equal; "" for nothing.
std::string to_string(const Cell& cell);

/// Returns a number where the text is one, else the text: what a value of a study is in a store.
Cell cell_of(const std::string& text);

}  // namespace orrery::sweep
