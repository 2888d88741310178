// SPDX-License-Identifier: Apache-2.0
#include "report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/misread.h"
#include "base/printable.h"
#include "base/reader.h"
#include "report/plot_axis.h"

namespace orrery::report {
namespace {

// The page and the drawing's edges on it.
constexpr double kWidth = 760;
constexpr double kHeight = 440;
constexpr double kLeft = 78;
constexpr double kRight = 560;
constexpr double kTop = 44;
constexpr double kBottom = 370;

// Sizes of numbers whose differences and shares an axis can tell.
constexpr double kSmallest = 1e-300;
constexpr double kLargest = 1e300;
constexpr std::size_t kMostBytes = 200;  // of a name

constexpr double kGroupShare = 0.8;  // of a row's width that its bars take
constexpr std::size_t kSlanted = 8;  // more names than this are written at an angle

/// Colours that the colour-blind tell apart (Okabe and Ito 2008).
constexpr std::array<std::string_view, 8> kColours{"#0072b2", "#e69f00", "#009e73", "#d55e00",
                                                   "#cc79a7", "#56b4e9", "#f0e442", "#000000"};

std::string_view colour(std::size_t series) {
  return kColours[series % kColours.size()];
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : printable(shortened(text, kMostBytes))) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

struct Range {
  double low = 0;
  double high = 0;
};

Range values_of(const Plot& plot) {
  bool first = true;
  Range range;
  for (const PlotSeries& series : plot.series) {
    for (const std::optional<double>& value : series.values) {
      if (value) {
        range.low = first ? *value : std::min(range.low, *value);
        range.high = first ? *value : std::max(range.high, *value);
        first = false;
      }
    }
  }
  for (const double x : plot.diagonal ? plot.x : std::vector<double>()) {
    range = {std::min(range.low, x), std::max(range.high, x)};
  }
  if (plot.log_y) {
    return first ? Range{1, 10} : range;
  }
  return {std::min(0.0, range.low), std::max(0.0, range.high)};
}

class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot), y_(y_axis(plot)) {}

  std::string run() {
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
        "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
        kWidth, kHeight);
    write((kLeft + kRight) / 2, kTop - 20, "middle", plot_.title, " font-size=\"15\"");
    draw_y_axis();
    if (plot_.kind == PlotKind::bars) {
      draw_bars();
    } else {
      draw_lines();
    }
    write((kLeft + kRight) / 2, kHeight - 12, "middle", plot_.x_label);
    draw_legend();
    return text_ + "</svg>\n";
  }

 private:
  static PlotAxis y_axis(const Plot& plot) {
    const Range range = values_of(plot);
    return {range.low, range.high, plot.log_y, kBottom, kTop};
  }

  void write(double x, double y, std::string_view anchor, std::string_view words,
             std::string_view more = "") {
    if (!words.empty()) {
      text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                           anchor, more, escaped(words));
    }
  }

  void line(double x1, double y1, double x2, double y2, std::string_view stroke) {
    text_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1,
        x2, y2, stroke);
  }

  void draw_y_axis() {
    for (const double mark : y_.marks()) {
      line(kLeft, y_.place(mark), kRight, y_.place(mark), "#dddddd");
      write(kLeft - 6, y_.place(mark) + 4, "end", fmt::format("{:.6g}", mark));
    }
    line(kLeft, kTop, kLeft, kBottom, "black");
    line(kLeft, kBottom, kRight, kBottom, "black");
    const double middle = (kTop + kBottom) / 2;
    write(18, middle, "middle", plot_.y_label,
          fmt::format(" transform=\"rotate(-90 18 {:.1f})\"", middle));
  }

  void draw_bars() {
    const double group = (kRight - kLeft) / static_cast<double>(plot_.names.size());
    const double width = group * kGroupShare / static_cast<double>(plot_.series.size());
    const double base = y_.place(plot_.log_y ? y_.low() : 0);
    for (std::size_t row = 0; row < plot_.names.size(); ++row) {
      const double left = kLeft + group * (static_cast<double>(row) + (1 - kGroupShare) / 2);
      for (std::size_t s = 0; s < plot_.series.size(); ++s) {
        if (const std::optional<double>& value = plot_.series[s].values[row]) {
          bar(left + width * static_cast<double>(s), width, base, y_.place(*value), s, *value);
        }
      }
      name_row(kLeft + group * (static_cast<double>(row) + 0.5), plot_.names[row]);
    }
  }

  void bar(double x, double width, double base, double end, std::size_t series, double value) {
    text_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\">"
        "<title>{}: {:.6g}</title></rect>\n",
        x, std::min(base, end), width, std::abs(base - end), colour(series),
        escaped(plot_.series[series].name), value);
  }

  void name_row(double x, const std::string& name) {
    if (plot_.names.size() > kSlanted) {
      write(x, kBottom + 14, "end", name,
            fmt::format(" transform=\"rotate(-30 {:.1f} {:.1f})\"", x, kBottom + 14));
    } else {
      write(x, kBottom + 18, "middle", name);
    }
  }

  void draw_lines() {
    const auto [least, most] = std::minmax_element(plot_.x.begin(), plot_.x.end());
    const Range range = plot_.diagonal ? values_of(plot_) : Range{*least, *most};
    const PlotAxis axis(range.low, range.high, plot_.log_x, kLeft, kRight);
    if (plot_.diagonal) {
      line(kLeft, kBottom, kRight, kTop, "#888888");
    }
    for (const double mark : axis.marks()) {
      line(axis.place(mark), kBottom, axis.place(mark), kBottom + 5, "black");
      write(axis.place(mark), kBottom + 18, "middle", fmt::format("{:.6g}", mark));
    }
    for (std::size_t s = 0; s < plot_.series.size(); ++s) {
      draw_line(axis, s);
    }
  }

  void draw_line(const PlotAxis& axis, std::size_t s) {
    std::string points;
    std::string dots;
    for (std::size_t row = 0; row < plot_.x.size(); ++row) {
      if (const std::optional<double>& value = plot_.series[s].values[row]) {
        const double x = axis.place(plot_.x[row]);
        const double y = y_.place(*value);
        points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x, y);
        dots += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\">"
            "<title>{}: {:.6g}, {:.6g}</title></circle>\n",
            x, y, colour(s), escaped(plot_.series[s].name), plot_.x[row], *value);
        label(x, y, s == 0 && row < plot_.labels.size() ? plot_.labels[row] : "");
      }
    }
    if (plot_.dots) {
      text_ += dots;
      return;
    }
    text_ +=
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n{}",
                    points, colour(s), dots);
  }

  /// Writes a label to the side on which there is room, below labels that would lie under it.
  void label(double x, double y, const std::string& words) {
    constexpr double kLine = 10;
    constexpr double kLength = 200;
    if (words.empty()) {
      return;
    }
    const bool left = x > (kLeft + kRight) / 2;
    y += 4;
    while (std::any_of(labels_.begin(), labels_.end(), [&](const auto& other) {
      return std::abs(other.first - x) < kLength && std::abs(other.second - y) < kLine;
    })) {
      y += 1;
    }
    labels_.emplace_back(x, y);
    write(x + (left ? -6 : 6), y, left ? "end" : "start", words, " font-size=\"9\"");
  }

  void draw_legend() {
    double y = kTop + 8;
    for (std::size_t s = 0; plot_.series.size() > 1 && s < plot_.series.size(); ++s, y += 20) {
      text_ +=
          fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n",
                      kRight + 18, y - 10, colour(s));
      write(kRight + 36, y, "start", plot_.series[s].name);
    }
  }

  const Plot& plot_;
  PlotAxis y_;
  std::string text_;
  std::vector<std::pair<double, double>> labels_;
};

class Filler {
 public:
  Filler(Plot plot, const CsvTable& table) : plot_(std::move(plot)), table_(table) {}

  Result<Plot> run() {
    if (table_.header.size() < 2 || table_.rows.empty()) {
      return fail(Error(Mistake{table_.file, "", "", "expected two columns and a row at least"}));
    }
    plot_.x_label = plot_.x_label.empty() ? table_.header.front() : plot_.x_label;
    for (std::size_t c = 1; c < table_.header.size(); ++c) {
      plot_.series.push_back({table_.header[c], {}});
    }
    for (const CsvRow& row : table_.rows) {
      take(row);
    }
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    return std::move(plot_);
  }

 private:
  void take(const CsvRow& row) {
    if (plot_.kind == PlotKind::bars) {
      plot_.names.emplace_back(row.cells.front());
    } else {
      plot_.x.push_back(number(row, 0, plot_.log_x).value_or(1));
    }
    for (std::size_t c = 1; c < row.cells.size(); ++c) {
      plot_.series[c - 1].values.push_back(row.cells[c].empty() ? std::nullopt
                                                                : number(row, c, plot_.log_y));
    }
  }

  std::optional<double> number(const CsvRow& row, std::size_t column, bool logarithmic) {
    const auto value = parse_number(row.cells[column]);
    const double size = value ? std::abs(*value) : 0;
    const bool drawn = size == 0 || (size >= kSmallest && size <= kLargest);
    if (value && drawn && (*value > 0 || !logarithmic)) {
      return *value;
    }
    error_.add(misread(table_.where(row), table_.header[column], row.cells[column],
                       !value   ? value.error()
                       : !drawn ? fmt::format("0 or a size from {} to {}", kSmallest, kLargest)
                                : "a number above 0 on a logarithmic axis"));
    return std::nullopt;
  }

  Plot plot_;
  const CsvTable& table_;
  Error error_;
};

}  // namespace

Result<Plot> fill(Plot plot, const CsvTable& table) {
  return Filler(std::move(plot), table).run();
}

std::string to_svg(const Plot& plot) {
  return Drawing(plot).run();
}

}  // namespace orrery::report
