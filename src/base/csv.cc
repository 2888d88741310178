// SPDX-License-Identifier: Apache-2.0
#include "base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/names.h"

namespace orrery {
namespace {

/// Cuts text into rows of cells.
class CsvScanner {
 public:
  explicit CsvScanner(std::string_view text) : text_(text) {}

  bool at_end() const { return at_ >= text_.size(); }
  bool unterminated() const { return unterminated_; }

  CsvRow row(std::size_t columns) {
    CsvRow row{.line = line_, .cells = {}};
    row.cells.reserve(columns);
    do {
      row.cells.push_back(cell());
    } while (take(','));
    take('\r');
    if (take('\n')) {
      ++line_;
    }
    return row;
  }

 private:
  bool take(char c) {
    if (at_end() || text_[at_] != c) {
      return false;
    }
    ++at_;
    return true;
  }

  std::string cell() { return take('"') ? quoted() : plain(); }

  std::string plain() {
    const std::size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    std::string value(text_.substr(at_, end - at_));
    at_ = end;
    return value;
  }

  std::string quoted() {
    std::string value;
    while (!at_end()) {
      const char c = text_[at_++];
      if (c == '"' && !take('"')) {
        return value + plain();
      }
      line_ += c == '\n' ? 1 : 0;
      value += c;
    }
    unterminated_ = true;
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool unterminated_ = false;
};

bool is_blank(const CsvRow& row) {
  return row.cells.size() == 1 && row.cells[0].empty();
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
  CsvTable table{.file = std::move(file), .header = {}, .rows = {}};
  if (text.find('\0') != std::string_view::npos) {
    return fail(
        Error(Mistake{table.file, "", "", "not a text file: expected comma-separated text"}));
  }
  Error error;
  Error lengths;
  CsvScanner scanner(text);
  while (!scanner.at_end()) {
    CsvRow row = scanner.row(table.header.size());
    if (is_blank(row)) {
      continue;
    }
    if (table.header.empty()) {
      table.header = std::move(row.cells);
      check_header(table, error);
    } else if (row.cells.size() != table.header.size()) {
      lengths.add({table.where(row), "", fmt::format("{} cells", row.cells.size()),
                   fmt::format("{} as in the header", table.header.size())});
    } else {
      table.rows.push_back(std::move(row));
    }
  }
  if (uneven != nullptr && error.empty() && !scanner.unterminated() && !table.rows.empty()) {
    *uneven = std::move(lengths);
  } else {
    error.add(std::move(lengths));
  }
  if (scanner.unterminated()) {
    error.add({table.file, "", "", "a quoted cell does not end"});
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
