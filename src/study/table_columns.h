// SPDX-License-Identifier: Apache-2.0
/// Columns of a table that a profile names.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/csv.h"
#include "base/reader.h"

namespace orrery::study {

class TableColumns {
 public:
  explicit TableColumns(const CsvTable& table) : table_(table) {}

  /// A mistake, once, if there is no such column.
  void need(const std::string& column, Error& error) {
    if (!table_.column(column) && missing_.insert(column).second) {
      error.add(
          {table_.file + ":1", column, "", "column missing" + did_you_mean(column, table_.header)});
    }
  }
  /// The cell's text; empty when the table has no such column.
  std::string_view cell(const CsvRow& row, const std::string& column) const {
    const auto index = table_.column(column);
    return index ? std::string_view(row.cells[*index]) : std::string_view();
  }

 private:
  const CsvTable& table_;
  std::set<std::string> missing_;
};

}  // namespace orrery::study
