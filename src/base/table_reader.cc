// SPDX-License-Identifier: Apache-2.0
#include "base/table_reader.h"

#include <fmt/format.h>

#include "base/misread.h"
#include "base/names.h"
#include "base/reader.h"

namespace orrery {

void TableReader::need(std::string_view column) {
  if (!has(column) && missing_.emplace(column).second) {
    add(Mistake{
        table_.file + ":1",
        "header",
        {},
        fmt::format("column '{}' is missing{}", column, did_you_mean(column, table_.header))});
  }
}

std::string_view TableReader::text(const CsvRow& row, std::string_view column) const {
  const auto place = table_.column(column);
  return place ? row.cells[*place] : std::string_view();
}

std::int64_t TableReader::whole(const CsvRow& row, std::string_view column, std::int64_t least,
                                std::int64_t most) {
  const auto value = parse_integer(text(row, column));
  if (value && *value >= least && *value <= most) {
    return *value;
  }
  mistake(row, column, fmt::format("a whole number from {} to {}", least, most));
  return least;
}

double TableReader::number(const CsvRow& row, std::string_view column, double least, double most,
                           const std::string& expected) {
  const auto value = parse_number(text(row, column));
  if (value && *value >= least && *value <= most) {
    return *value;
  }
  mistake(row, column, expected);
  return least;
}

void TableReader::mistake(const CsvRow& row, std::string_view column, const std::string& expected) {
  add(misread(table_.where(row), std::string(column), text(row, column), expected));
}

}  // namespace orrery
