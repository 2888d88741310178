// SPDX-License-Identifier: Apache-2.0
#include "base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <set>

#include "base/big.h"
#include "base/collect.h"
#include "base/names.h"

namespace orrery {
namespace {

using CellEnd = std::uint32_t;
constexpr std::size_t kMostText = std::size_t{1} << 32;  // what a CellEnd counts

/// Returns a number of the block: how many cells there are, then where each ends.
CellEnd number_at(const char* block, std::size_t i) {
  CellEnd number = 0;
  std::memcpy(&number, block + i * sizeof(CellEnd), sizeof(CellEnd));
  return number;
}

/// Cuts text into rows of cells.
class CsvScanner {
 public:
  explicit CsvScanner(std::string_view text) : text_(text) {}

  bool at_end() const { return at_ >= text_.size(); }
  bool unterminated() const { return open_line_ > 0; }
  int open_line() const { return open_line_; }  ///< of a quote that does not end; 0: all end

  CsvRow row() {
    const int line = line_;
    cells_.clear();
    unquoted_.clear();
    do {
      cells_.push_back(cell());
    } while (take(','));
    take('\r');
    if (take('\n')) {
      ++line_;
    }
    return {.line = line, .cells = CsvCells(cells_)};
  }

 private:
  bool take(char c) {
    if (at_end() || text_[at_] != c) {
      return false;
    }
    ++at_;
    return true;
  }

  std::string_view cell() { return take('"') ? unquoted_.emplace_back(quoted()) : plain(); }

  std::string_view plain() {
    const std::size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    const std::string_view value = text_.substr(at_, end - at_);
    at_ = end;
    return value;
  }

  std::string quoted() {
    const int line = line_;
    std::string value;
    while (!at_end()) {
      const char c = text_[at_++];
      if (c == '"' && !take('"')) {
        return value.append(plain());
      }
      line_ += c == '\n' ? 1 : 0;
      value += c;
    }
    open_line_ = line;
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  int open_line_ = 0;
  std::vector<std::string_view> cells_;  ///< of the row
  std::deque<std::string> unquoted_;     ///< texts of its quoted cells
};

bool is_blank(const CsvRow& row) {
  return row.cells.size() == 1 && row.cells.front().empty();
}

/// Returns how many lines hold something.
std::size_t full_lines(std::string_view text) {
  std::size_t lines = 1;
  for (std::size_t i = 1; i < text.size(); ++i) {
    lines += text[i] == '\n' && text[i - 1] != '\n' ? 1 : 0;
  }
  return lines;
}

void check_header(const CsvTable& table, Error& error) {
  const std::string where = table.file + ":1";
  std::set<std::string> seen;
  for (const std::string& name : table.header) {
    if (name.empty()) {
      error.add({where, "header", "", "a name for every column"});
    } else if (!seen.insert(name).second) {
      error.add({where, "header", name, "every column once"});
    }
  }
}

}  // namespace

CsvCells::CsvCells(std::span<const std::string_view> cells) {
  std::size_t end = 0;
  for (const std::string_view cell : cells) {
    end += cell.size();
  }
  const std::size_t head = (1 + cells.size()) * sizeof(CellEnd);
  block_ = std::make_unique_for_overwrite<char[]>(head + end);
  const auto put = [&](std::size_t i, std::size_t number) {
    const auto kept = static_cast<CellEnd>(number);
    std::memcpy(block_.get() + i * sizeof(CellEnd), &kept, sizeof(CellEnd));
  };
  put(0, cells.size());
  end = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::ranges::copy(cells[i], block_.get() + head + end);
    put(1 + i, end += cells[i].size());
  }
}

std::size_t CsvCells::size() const {
  return block_ == nullptr ? 0 : number_at(block_.get(), 0);
}

std::string_view CsvCells::operator[](std::size_t i) const {
  const std::size_t begin = i == 0 ? 0 : number_at(block_.get(), i);
  const char* characters = block_.get() + (1 + size()) * sizeof(CellEnd);
  return {characters + begin, number_at(block_.get(), 1 + i) - begin};
}

std::vector<std::string_view> CsvCells::all() const {
  std::vector<std::string_view> cells;
  cells.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) {
    cells.push_back((*this)[i]);
  }
  return cells;
}

void CsvCells::push_back(std::string_view cell) {
  std::vector<std::string_view> cells = all();
  cells.push_back(cell);
  *this = CsvCells(std::span<const std::string_view>(cells));
}

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(found - header.begin());
}

std::string CsvTable::where(const CsvRow& row) const {
  return fmt::format("{}:{}", file, row.line);
}

Result<CsvTable> parse_csv(std::string_view text, std::string file, Error* uneven) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  CsvTable table{.file = std::move(file), .header = {}, .rows = {}, .bytes = text.size()};
  if (text.size() >= kMostText || text.find('\0') != std::string_view::npos) {
    return fail(Error(Mistake{table.file, "", "",
                              text.size() >= kMostText
                                  ? "a table of less than 4 GiB"
                                  : "not a text file: expected comma-separated text"}));
  }
  Error error;
  FileMistakes lengths(table.file);
  table.rows.reserve(full_lines(text));
  CsvScanner scanner(text);
  while (!scanner.at_end()) {
    CsvRow row = scanner.row();
    if (is_blank(row)) {
      continue;
    }
    if (table.header.empty()) {
      const std::vector<std::string_view> names = row.cells.all();
      table.header.assign(names.begin(), names.end());
      check_header(table, error);
    } else if (row.cells.size() != table.header.size()) {
      lengths.add({table.where(row), "", fmt::format("{} cells", row.cells.size()),
                   fmt::format("{} as in the header", table.header.size())});
    } else {
      table.rows.push_back(std::move(row));
    }
  }
  if (uneven != nullptr && error.empty() && !scanner.unterminated() && !table.rows.empty()) {
    *uneven = lengths.take();
  } else {
    error.add(lengths.take());
  }
  if (scanner.unterminated()) {
    error.add({fmt::format("{}:{}", table.file, scanner.open_line()), "", "",
               "a quoted cell does not end"});
  }
  if (table.header.size() == 1 && table.header[0].find_first_of(";\t|") != std::string::npos) {
    error = Error(Mistake{table.file + ":1", "header", table.header[0],
                          "names of columns with commas between them"});
  }
  if (table.header.empty()) {
    error.add({table.file, "", "", "empty: expected a header row with column names"});
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  return table;
}

Error unknown_columns(const CsvTable& table, const std::vector<std::string>& known) {
  Error error;
  for (const std::string& name : table.header) {
    if (std::ranges::find(known, name) == known.end()) {
      error.add({table.file + ":1", name, {}, "unknown column" + did_you_mean(name, known)});
    }
  }
  return error;
}

Result<CsvTable> load_csv(const std::string& file) {
  return read_file(file).and_then([&](const std::string& text) { return parse_csv(text, file); });
}

std::optional<Mistake> too_many_rows(const CsvTable& table, std::size_t each) {
  constexpr std::size_t kFactor = 20;
  constexpr std::size_t kAlways = std::size_t{64} << 20;
  const std::size_t most = std::max(kFactor * table.bytes, kAlways) / each;
  if (limits_lifted() || table.rows.size() <= most) {
    return std::nullopt;
  }
  return Mistake{
      table.file,
      {},
      fmt::format("{} rows", table.rows.size()),
      fmt::format(
          "at most {} in a file of {} bytes, since each takes {} bytes of memory (--big: any)",
          most, table.bytes, each)};
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') {
      quoted += c;
    }
  }
  return quoted += '"';
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += (i == 0 ? "" : ",") + csv_cell(cells[i]);
  }
  return line += '\n';
}

}  // namespace orrery
