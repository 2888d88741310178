// SPDX-License-Identifier: Apache-2.0
#include "report/plan_design.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/reader.h"
#include "report/cell.h"
#include "report/json_writer.h"
#include "report/plot.h"
#include "study/sweep/kind.h"

namespace orrery::report {
namespace {

bool is_best(const sweep::Design& design, std::size_t point) {
  return std::find(design.best.begin(), design.best.end(), point) != design.best.end();
}

std::string shown(const sweep::Cell& cell) {
  return std::holds_alternative<std::monostate>(cell) ? "-" : sweep::to_string(cell);
}

double number(const sweep::DesignPoint& point, std::string_view figure) {
  return std::get<double>(point.figure(figure));
}

/// Splits "400 Gbit/s" into 400 and " Gbit/s".
std::optional<std::pair<double, std::string>> measured(const sweep::Cell& cell) {
  const std::string text = sweep::to_string(cell);
  const std::size_t end = std::min(text.find(' '), text.size());
  const auto value = parse_number(text.substr(0, end));
  return value ? std::optional(std::pair(*value, text.substr(end))) : std::nullopt;
}

/// Returns the first axis whose values are numbers of one unit.
std::optional<std::size_t> numeric_axis(const sweep::Design& design) {
  for (std::size_t axis = 0; axis < design.varied.size(); ++axis) {
    std::set<std::string> units;
    bool numbers = true;
    for (const sweep::DesignPoint& point : design.points) {
      const auto value = measured(point.varied[axis]);
      numbers = numbers && value.has_value();
      units.insert(value ? value->second : "");
    }
    if (numbers && units.size() == 1) {
      return axis;
    }
  }
  return std::nullopt;
}

void write_point(JsonWriter& json, const sweep::Design& design, std::size_t i) {
  const sweep::DesignPoint& point = design.points[i];
  json.begin_object();
  json.key("varied").array(point.varied, [&](const sweep::Cell& cell) { write_cell(json, cell); });
  json.key("model").value(point.model);
  json.key("devices").value(point.devices);
  json.key("price_per_hour").value(point.price);
  json.key("affordable").value(point.affordable);
  json.key("is_best").value(is_best(design, i));
  json.key("error").value(point.outcome.error);
  json.key("cost_per_million_tokens").value(point.cost_per_million_tokens);
  for (const std::string_view figure : sweep::kPlanFigures) {
    if (figure != "cost_per_million_tokens") {  // at the machine's own price
      json.key(figure);
      write_cell(json, point.has_plan() ? point.figure(figure) : sweep::Cell());
    }
  }
  json.end_object();
}

}  // namespace

std::string design_table(const sweep::Design& design) {
  std::string text;
  std::vector<std::size_t> widths;
  for (std::size_t axis = 0; axis < design.varied.size(); ++axis) {
    std::size_t widest = design.varied[axis].size();
    for (const sweep::DesignPoint& point : design.points) {
      widest = std::max(widest, shown(point.varied[axis]).size());
    }
    widths.push_back(widest);
  }
  text += "  ";
  for (std::size_t axis = 0; axis < design.varied.size(); ++axis) {
    text += fmt::format("{:<{}}  ", design.varied[axis], widths[axis]);
  }
  text += fmt::format("{:>12}{:>14}{:>12}{:>8}{:>11}  plan\n", "USD/hour", "tokens/s", "step s",
                      "MFU", "USD/M tok");
  for (std::size_t i = 0; i < design.points.size(); ++i) {
    const sweep::DesignPoint& point = design.points[i];
    text += is_best(design, i) ? "* " : "  ";
    for (std::size_t axis = 0; axis < point.varied.size(); ++axis) {
      text += fmt::format("{:<{}}  ", shown(point.varied[axis]), widths[axis]);
    }
    text += fmt::format("{:>12}", point.price ? fmt::format("{:.2f}", point.price->value()) : "-");
    if (!point.affordable) {
      text += "  above the budget\n";
    } else if (!point.has_plan()) {
      text += "  " + point.outcome.error.substr(0, point.outcome.error.find('\n')) + "\n";
    } else {
      text += fmt::format("{:>14.0f}{:>12.6f}{:>8}{:>11}  {}\n", number(point, "tokens_per_s"),
                          number(point, "step_time_s"), percent(number(point, "mfu")),
                          point.cost_per_million_tokens
                              ? fmt::format("{:.4f}", point.cost_per_million_tokens->value())
                              : "-",
                          sweep::to_string(point.figure("best")));
    }
  }
  return text;
}

std::string design_json(const sweep::Design& design) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("varied").values(design.varied);
    json.key("points").begin_array();
    for (std::size_t i = 0; i < design.points.size(); ++i) {
      write_point(json, design, i);
    }
    json.end_array().end_object();
  });
}

Result<std::string> design_plot(const std::string& title, const sweep::Design& design) {
  const auto axis = numeric_axis(design);
  if (!axis) {
    return fail(Error(Mistake{"--plot", {}, {}, "needs a varied field with numbers of one unit"}));
  }
  std::map<double, std::map<std::string, double>> rows;
  std::vector<std::string> lines;
  std::string unit;
  for (const sweep::DesignPoint& point : design.points) {
    std::string line;
    for (std::size_t other = 0; other < point.varied.size(); ++other) {
      if (other != *axis) {
        line += (line.empty() ? "" : ", ") + shown(point.varied[other]);
      }
    }
    line = line.empty() ? "tokens/s" : line;
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) {
      lines.push_back(line);
    }
    if (point.has_plan()) {
      const auto value = measured(point.varied[*axis]);
      unit = value->second;
      rows[value->first][line] = number(point, "tokens_per_s");
    }
  }
  const std::string label =
      design.varied[*axis] + (unit.empty() ? "" : " (" + unit.substr(1) + ")");
  CsvTable table{.file = "--plot", .header = {label}, .rows = {}};
  table.header.insert(table.header.end(), lines.begin(), lines.end());
  for (const auto& [x, values] : rows) {
    CsvRow row{.line = static_cast<int>(table.rows.size()) + 1, .cells = {exact_text(x)}};
    for (const std::string& line : lines) {
      const auto found = values.find(line);
      row.cells.push_back(found == values.end() ? "" : exact_text(found->second));
    }
    table.rows.push_back(std::move(row));
  }
  Plot plot;
  plot.title = title;
  plot.y_label = "tokens/s";
  return fill(std::move(plot), table).map([](const Plot& filled) { return to_svg(filled); });
}

}  // namespace orrery::report
