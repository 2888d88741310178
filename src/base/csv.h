// SPDX-License-Identifier: Apache-2.0
/// A table of text cells from a CSV file (RFC 4180), every row with its line.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace orrery {

/// The texts of a row in one block, which a narrow table's rows take little beside.
class CsvCells {
 public:
  CsvCells() = default;
  explicit CsvCells(std::span<const std::string_view> cells);
  CsvCells(std::initializer_list<std::string_view> cells)
      : CsvCells(std::span(cells.begin(), cells.size())) {}
  CsvCells(const CsvCells& other) : CsvCells(std::span<const std::string_view>(other.all())) {}
  CsvCells(CsvCells&& other) noexcept = default;
  CsvCells& operator=(const CsvCells& other) { return *this = CsvCells(other); }
  CsvCells& operator=(CsvCells&& other) noexcept = default;
  ~CsvCells() = default;

  std::size_t size() const;
  /// Requires i < size().
  std::string_view operator[](std::size_t i) const;
  std::string_view front() const { return (*this)[0]; }
  std::vector<std::string_view> all() const;
  /// Adds a cell at the end, which copies the others.
  void push_back(std::string_view cell);

 private:
  std::unique_ptr<char[]> block_;  ///< how many, where each ends, then their characters
};

struct CsvRow {
  int line = 0;      ///< from 1
  CsvCells cells{};  ///< as many as the header has
};

struct CsvTable {
  std::string file;
  std::vector<std::string> header;
  std::vector<CsvRow> rows;
  std::size_t bytes = 0;  ///< of the text

  std::optional<std::size_t> column(std::string_view name) const;
  /// Returns "file:line".
  std::string where(const CsvRow& row) const;
};

/// Parses comma-separated text whose first row is the header. Cells in double quotes may hold
/// commas, line breaks and doubled quotes. Mistakes: no header, an empty or repeated column name, a
/// row with another number of cells than the header, a quote that does not end, bytes that are not
/// text, 4 GiB. Empty lines are skipped. With `uneven` rows of another length are told there where
/// some are right, and the table has these.
Result<CsvTable> parse_csv(std::string_view text, std::string file, Error* uneven = nullptr);

/// Returns a mistake for each column that is none of `known`, with the one that may have been
/// meant.
Error unknown_columns(const CsvTable& table, const std::vector<std::string>& known);

Result<CsvTable> load_csv(const std::string& file);

/// Returns the mistake that what a reader makes of the rows, `each` bytes of one, takes more than
/// 20 times the file and 64 MiB; nothing where it does not, or --big lifts the limit.
std::optional<Mistake> too_many_rows(const CsvTable& table, std::size_t each);

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
