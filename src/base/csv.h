// SPDX-License-Identifier: Apache-2.0
/// A table of text cells from a CSV file (RFC 4180), every row with its line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace orrery {

struct CsvRow {
  int line = 0;                    ///< from 1
  std::vector<std::string> cells;  ///< as many as the header has
};

struct CsvTable {
  std::string file;
  std::vector<std::string> header;
  std::vector<CsvRow> rows;

  std::optional<std::size_t> column(std::string_view name) const;
  /// Returns "file:line".
  std::string where(const CsvRow& row) const;
};

/// Parses comma-separated text whose first row is the header. Cells in double quotes may hold
/// commas, line breaks and doubled quotes. Mistakes: no header, an empty or repeated column name, a
/// row with another number of cells than the header, a quote that does not end, bytes that are not
/// text. Empty lines are skipped. With `uneven` rows of another length are told there where some
/// are right, and the table has these.
Result<CsvTable> parse_csv(std::string_view text, std::string file, Error* uneven = nullptr);

/// Returns a mistake for each column that is none of `known`, with the one that may have been
/// meant.
Error unknown_columns(const CsvTable& table, const std::vector<std::string>& known);

Result<CsvTable> load_csv(const std::string& file);

/// Returns what `read` makes of the rows of a file's text. Rows of another length are mistakes
/// before those that it finds.
template <class Read>
std::invoke_result_t<Read, const CsvTable&> read_csv(std::string_view text, const std::string& file,
                                                     Read read) {
  Error uneven;
  const Result<CsvTable> table = parse_csv(text, file, &uneven);
  if (!table) {
    return fail(table.error());
  }
  auto answer = read(*table);
  if (uneven.empty()) {
    return answer;
  }
  uneven.add(answer ? Error() : std::move(answer.error()));
  return fail(std::move(uneven));
}
/// Reads the text of a file so.
template <class Read>
std::invoke_result_t<Read, const CsvTable&> load_csv(const std::string& file, Read read) {
  return read_file(file).and_then(
      [&](const std::string& text) { return read_csv(text, file, std::move(read)); });
}

/// Returns a cell as it stands in a file: in quotes if it would break the line (RFC 4180, section
/// 2).
std::string csv_cell(const std::string& text);
/// A row of cells with its line end.
std::string csv_line(const std::vector<std::string>& cells);

}  // namespace orrery
