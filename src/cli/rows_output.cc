// SPDX-License-Identifier: Apache-2.0
#include "cli/rows_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/csv.h"
#include "base/file.h"
#include "base/lists.h"
#include "base/one_of.h"
#include "base/printable.h"
#include "base/reader.h"
#include "report/cell.h"
#include "report/json_writer.h"
#include "report/plot.h"

namespace orrery::cli {
namespace {

constexpr std::size_t kWidest = 40;  // bytes of a cell in a table

std::string shown(const sweep::Cell& cell) {
  if (const auto* number = std::get_if<double>(&cell)) {
    return fmt::format("{:.6g}", *number);
  }
  return std::holds_alternative<std::monostate>(cell)
             ? "-"
             : printable(shortened(sweep::to_string(cell), kWidest));
}

/// Two columns as a table of texts, rows without either left out.
CsvTable two_columns(const sweep::Rows& rows, std::size_t x, std::size_t y) {
  CsvTable table{.file = "--plot", .header = {rows.columns[x], rows.columns[y]}, .rows = {}};
  for (const std::vector<sweep::Cell>& row : rows.rows) {
    CsvRow cells{.line = static_cast<int>(table.rows.size()) + 1,
                 .cells = {sweep::to_string(row[x]), sweep::to_string(row[y])}};
    if (!cells.cells[0].empty() && !cells.cells[1].empty()) {
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

/// Takes the unit off the first column if all its cells have the same one, and tells it in the
/// header. True when what is left are numbers.
bool is_numeric(CsvTable& table) {
  std::optional<std::string> unit;
  std::vector<std::string> numbers;
  for (const CsvRow& row : table.rows) {
    const std::string text(row.cells[0]);
    const std::size_t end = std::min(text.find(' '), text.size());
    if (!parse_number(text.substr(0, end)) || unit.value_or(text.substr(end)) != text.substr(end)) {
      return false;
    }
    unit = text.substr(end);
    numbers.push_back(text.substr(0, end));
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    table.rows[i].cells = {numbers[i], table.rows[i].cells[1]};
  }
  if (unit && !unit->empty()) {
    table.header[0] += " (" + unit->substr(1) + ")";
  }
  return true;
}

}  // namespace

std::string rows_table(const sweep::Rows& rows) {
  const std::size_t columns = rows.columns.size();
  std::vector<std::vector<std::string>> texts;
  std::vector<std::size_t> widths;
  for (const std::string& name : rows.columns) {
    texts.emplace_back().push_back(name);
    widths.push_back(name.size());
  }
  for (const std::vector<sweep::Cell>& row : rows.rows) {
    for (std::size_t i = 0; i < columns; ++i) {
      widths[i] = std::max(widths[i], texts[i].emplace_back(shown(row[i])).size());
    }
  }
  std::string text;
  for (std::size_t line = 0; line <= rows.rows.size(); ++line) {
    for (std::size_t i = 0; i < columns; ++i) {
      const bool is_text = line > 0 && std::holds_alternative<std::string>(rows.rows[line - 1][i]);
      text += is_text ? fmt::format("{:<{}}", texts[i][line], widths[i])
                      : fmt::format("{:>{}}", texts[i][line], widths[i]);
      text += i + 1 < columns ? "  " : "\n";
    }
  }
  return text;
}

std::string rows_csv(const sweep::Rows& rows) {
  std::string text = csv_line(rows.columns);
  for (const std::vector<sweep::Cell>& row : rows.rows) {
    const std::vector<std::string> cells =
        mapped(row, [&](const sweep::Cell& cell) { return sweep::to_string(cell); });
    text += csv_line(cells);
  }
  return text;
}

std::string rows_json(const sweep::Rows& rows) {
  return report::json_text([&](report::JsonWriter& json) {
    json.begin_object();
    json.key("columns").values(rows.columns);
    json.key("rows").objects(rows.rows, [&](const std::vector<sweep::Cell>& row) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        json.key(rows.columns[i]);
        report::write_cell(json, row[i]);
      }
    });
    json.end_object();
  });
}

void RowsPlot::declare(Options& options) {
  options.value("--plot", columns_, "X,Y", "draw column Y over column X into --out");
  options.output("--out", file_, "FILE.svg", "file of --plot");
}

void RowsPlot::check(Error& mistakes) const {
  if (columns_ && (!file_ || file_->empty())) {
    mistakes.add({"--out", {}, {}, "missing; expected the file that --plot writes"});
  }
  if (file_ && !columns_) {
    mistakes.add({"--out", {}, {}, "goes with --plot X,Y"});
  }
  if (columns_ && std::count(columns_->begin(), columns_->end(), ',') != 1) {
    mistakes.add(wrong_value("--plot", *columns_, "two columns, as in plan.tp,step_time_s"));
  }
}

Result<void> RowsPlot::write(const sweep::Rows& rows) const {
  Error mistakes;
  const std::size_t comma = columns_->find(',');
  std::vector<std::size_t> places;
  for (const std::string& name : {columns_->substr(0, comma), columns_->substr(comma + 1)}) {
    const auto found = std::find(rows.columns.begin(), rows.columns.end(), name);
    if (found == rows.columns.end()) {
      mistakes.add(wrong_value("--plot", name, one_of(name, rows.columns)));
    }
    places.push_back(static_cast<std::size_t>(found - rows.columns.begin()));
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  CsvTable table = two_columns(rows, places[0], places[1]);
  report::Plot plot;
  plot.dots = is_numeric(table);
  plot.kind = plot.dots ? report::PlotKind::lines : report::PlotKind::bars;
  plot.y_label = table.header[1];
  return report::fill(std::move(plot), table).and_then([&](const report::Plot& filled) {
    return write_file(*file_, report::to_svg(filled));
  });
}

}  // namespace orrery::cli
