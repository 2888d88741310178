// SPDX-License-Identifier: Apache-2.0
/// A TableReader reads the cells of a table by the names of their columns, and collects what is
/// wrong with them:
///
///   file.csv:1: header: column 'bytes' is missing
///   file.csv:3: bytes: found '1e3', expected a whole number from 1 to 1048576
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/collect.h"
#include "base/csv.h"

namespace orrery {

class TableReader {
 public:
  /// The table outlives the reader.
  explicit TableReader(const CsvTable& table) : table_(table), mistakes_(table.file) {}

  bool has(std::string_view column) const { return table_.column(column).has_value(); }
  /// Adds a mistake, once, if there is no such column.
  void need(std::string_view column);
  template <class Names>
  void need_all(const Names& columns) {
    for (const std::string_view column : columns) {
      need(column);
    }
  }
  /// Adds a mistake for each column that is none of `columns`.
  void know(const std::vector<std::string>& columns) { add(unknown_columns(table_, columns)); }

  /// Adds a mistake where what is made of the rows, `each` bytes of one, takes more than the file
  /// may (too_many_rows); then no row is read.
  void limit(std::size_t each) {
    if (auto mistake = too_many_rows(table_, each)) {
      add(std::move(*mistake));
      too_many_ = true;
    }
  }

  /// Returns the cell's text; empty where the table has no such column.
  std::string_view text(const CsvRow& row, std::string_view column) const;
  /// Returns the cell's whole number in [least, most]; `least` after a mistake.
  std::int64_t whole(const CsvRow& row, std::string_view column, std::int64_t least,
                     std::int64_t most);
  /// Returns the cell's number in [least, most]; `least` after a mistake, which expects `expected`.
  double number(const CsvRow& row, std::string_view column, double least, double most,
                const std::string& expected);
  /// Adds that the cell is not what is expected.
  void mistake(const CsvRow& row, std::string_view column, const std::string& expected);
  template <class Found>
  void add(Found found) {
    mistakes_.add(std::move(found));
  }
  bool ok() const { return mistakes_.empty(); }
  /// Returns the rows of a table that has the columns it needs and is not too long, else none.
  std::span<const CsvRow> rows() const {
    return missing_.empty() && !too_many_ ? std::span(table_.rows) : std::span<const CsvRow>();
  }
  /// Returns the mistakes; one of them is `no_rows` where the table has none and is right.
  Error finish(const std::string& no_rows = {}) {
    if (ok() && table_.rows.empty() && !no_rows.empty()) {
      add(Mistake{table_.file, {}, {}, no_rows});
    }
    return mistakes_.take();
  }

 private:
  const CsvTable& table_;
  std::set<std::string, std::less<>> missing_;
  FileMistakes mistakes_;
  bool too_many_ = false;
};

}  // namespace orrery
