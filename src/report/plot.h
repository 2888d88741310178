// SPDX-License-Identifier: Apache-2.0
/// A table as a chart: lines over numbers or groups of bars over names, as one SVG file that needs
/// no script, font or style from elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/csv.h"
#include "base/names.h"
#include "base/result.h"

namespace orrery::report {

enum class PlotKind : std::uint8_t { lines, bars };
constexpr auto named_values(PlotKind) {
  return std::to_array<Named<PlotKind>>({
      {PlotKind::lines, "lines", "a line per column over the numbers of the first column"},
      {PlotKind::bars, "bars", "a group of bars per row, named by the first column"},
  });
}

struct PlotSeries {
  std::string name;
  std::vector<std::optional<double>> values;  ///< by row; nothing: not drawn
};

struct Plot {
  PlotKind kind = PlotKind::lines;
  std::string title{};
  std::string x_label{};
  std::string y_label{};
  bool log_x = false;  ///< of lines
  bool log_y = false;
  std::vector<std::string> names{};   ///< of bars: the first column
  std::vector<double> x{};            ///< of lines: the first column
  std::vector<PlotSeries> series{};   ///< the other columns
  bool dots = false;                  ///< of lines: the rows alone, without lines between them
  bool diagonal = false;              ///< of lines: y = x is drawn, on axes of one range
  std::vector<std::string> labels{};  ///< of lines: beside the rows' first dots; "" or none: not
};

/// Fills names or x, series and, if it is empty, x_label from the table. Empty cells of the other
/// columns are not drawn. Mistakes: a cell that is no number, a number that is not above 0 on a
/// logarithmic axis, a table without rows or with one column.
Result<Plot> fill(Plot plot, const CsvTable& table);

/// Returns the chart. The y axis begins at 0, at the smallest number where that is below 0, or, if
/// logarithmic, at a power of ten; bars of a logarithmic axis stand on its beginning. Requires a
/// plot that fill() has made.
std::string to_svg(const Plot& plot);

}  // namespace orrery::report
