// SPDX-License-Identifier: Apache-2.0
#include "report/plot.h"

#include <fmt/format.h>

#include "base/one_of.h"
#include "cli/commands.h"

namespace orrery::cli {
namespace {

constexpr const char* kPlotExamples =
    "Kinds:\n"
    "  lines                           a line per column over the numbers of the first column\n"
    "  bars                            a group of bars per row, named by the first column\n"
    "Examples:\n"
    "  orrery plot bars steps.csv --title 'Step time' --y-label seconds > steps.svg\n"
    "  orrery plot lines sweep.csv --log-x > sweep.svg\n";

class PlotCommand : public Command {
 public:
  void declare(Options& options) override {
    options.positional("KIND", kind_, "lines or bars");
    options.positional("FILE", file_, "comma-separated table with a header; - for a pipe");
    options.value("--title", title_, "TEXT", "above the chart");
    options.value("--x-label", x_label_, "TEXT", "instead of the first column's name");
    options.value("--y-label", y_label_, "TEXT", "beside the vertical axis");
    options.flag("--log-x", plot_.log_x, "logarithmic horizontal axis, of lines");
    options.flag("--log-y", plot_.log_y, "logarithmic vertical axis");
    options.footer(kPlotExamples);
  }

  Result<std::string> run(Error mistakes) override {
    const auto kind = value_of<report::PlotKind>(kind_);
    if (!kind) {
      mistakes.add(wrong_value("plot", kind_, one_of<report::PlotKind>(kind_)));
    }
    plot_.kind = kind.value_or(report::PlotKind::lines);
    plot_.title = title_.value_or("");
    plot_.x_label = x_label_.value_or("");
    plot_.y_label = y_label_.value_or("");
    if (plot_.log_x && plot_.kind == report::PlotKind::bars) {
      mistakes.add({"--log-x", "", "", "bars stand over names: only lines have numbers there"});
    }
    CsvTable table;
    if (file_.empty()) {
      mistakes.add({"FILE", {}, {}, "missing; expected a table with a header, or - for a pipe"});
    } else {
      table = collect(load_csv(file_), mistakes);
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return report::fill(std::move(plot_), table).map([](const report::Plot& plot) {
      return report::to_svg(plot);
    });
  }

 private:
  std::string kind_;
  std::string file_;
  std::optional<std::string> title_;
  std::optional<std::string> x_label_;
  std::optional<std::string> y_label_;
  report::Plot plot_;
};

}  // namespace

std::unique_ptr<Command> make_plot() {
  return std::make_unique<PlotCommand>();
}

}  // namespace orrery::cli
