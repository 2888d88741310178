// SPDX-License-Identifier: Apache-2.0
#include "study/table_join.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/lists.h"
#include "base/reader.h"
#include "base/table_reader.h"

namespace orrery::study {
namespace {

/// "theirs=ours", or the same name twice.
std::pair<std::string, std::string> names_of_pair(const std::string& text) {
  const std::size_t at = text.find('=');
  return at == std::string::npos ? std::pair(text, text)
                                 : std::pair(text.substr(0, at), text.substr(at + 1));
}

/// Returns the first row of `other` that agrees with `row`, by the first list of columns that has
/// one.
const CsvRow* partner_of(const CsvTable& table, const CsvRow& row, const CsvTable& other,
                         const Join& join) {
  const TableReader ours(table);
  const TableReader theirs(other);
  for (const std::vector<std::string>& columns : join.on) {
    for (const CsvRow& candidate : other.rows) {
      const bool agrees = std::ranges::all_of(columns, [&](const std::string& pair) {
        const auto [theirs_name, ours_name] = names_of_pair(pair);
        return theirs.text(candidate, theirs_name) == ours.text(row, ours_name);
      });
      if (agrees) {
        return &candidate;
      }
    }
  }
  return nullptr;
}

/// Returns the partner's cell, grown as its row and ours differ in the column that it follows.
std::string joined_cell(const CsvTable& table, const CsvRow& row, const CsvTable& other,
                        const CsvRow& partner, const std::string& column, const Join& join) {
  std::string text(TableReader(other).text(partner, column));
  for (const auto& [grows, by] : join.scale) {
    const auto value = parse_integer(text);
    const auto ours = parse_integer(TableReader(table).text(row, by));
    const auto theirs = parse_integer(TableReader(other).text(partner, by));
    if (grows == column && value && ours && theirs && *theirs > 0 &&
        *value * *ours % *theirs == 0) {
      text = std::to_string(*value * *ours / *theirs);
    }
  }
  return text;
}

}  // namespace

Result<CsvTable> joined(CsvTable table, const Join& join) {
  Result<CsvTable> other = load_csv(join.file);
  if (!other) {
    return fail(std::move(other.error()));
  }
  const CsvTable own = table;
  const std::vector<const CsvRow*> partners =
      mapped(own.rows, [&](const CsvRow& row) { return partner_of(own, row, *other, join); });
  for (const std::string& column : other->header) {
    if (own.column(column)) {
      continue;
    }
    table.header.push_back(column);
    for (std::size_t i = 0; i < own.rows.size(); ++i) {
      table.rows[i].cells.push_back(
          partners[i] == nullptr
              ? ""
              : joined_cell(own, own.rows[i], *other, *partners[i], column, join));
    }
  }
  return table;
}

}  // namespace orrery::study
