// SPDX-License-Identifier: Apache-2.0
#include "report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>

#include "report/json_writer.h"
#include "simulate/network_model.h"

namespace orrery::report {
namespace {

constexpr int kNameWidth = 28;
constexpr int kUnitWidth = 9;
constexpr int kValueWidth = 14;

enum class Better : std::uint8_t { less, more, neither };

/// How figures are shown whose names end like this: divided by `scale`, and which run is best.
struct Unit {
  std::string_view group;  ///< "" of any
  std::string_view ending;
  std::string_view name;
  double scale = 1;
  Better better = Better::less;
};
/// The first that fits counts.
constexpr double kGibibyte = 1 << 30;
constexpr double kTera = 1e12;
constexpr double kPercent = 0.01;
constexpr std::array kUnits{
    Unit{"step", "tokens_per_s", "tokens/s", 1, Better::more},
    Unit{"step", "step_time_s", "s", 1, Better::less},
    Unit{"step", "flops_per_device", "TFLOP/s", kTera, Better::more},
    Unit{"step", "", "%", kPercent, Better::more},
    Unit{"breakdown_s", "", "s", 1, Better::less},
    Unit{"hidden_s", "", "s", 1, Better::neither},
    Unit{"memory_bytes", "microbatches_in_flight", "", 1, Better::neither},
    Unit{"memory_bytes", "rank", "", 1, Better::neither},
    Unit{"memory_bytes", "moment_s", "s", 1, Better::neither},
    Unit{"memory_bytes", "capacity", "GiB", kGibibyte, Better::neither},
    Unit{"memory_bytes", "", "GiB", kGibibyte, Better::less},
    Unit{"energy", "per_step_kwh", "kWh", 1, Better::less},
    Unit{"energy", "average_device_power_w", "W", 1, Better::neither},
    Unit{"energy", "tokens_per_j", "tokens/J", 1, Better::more},
    Unit{"energy", "", "J", 1, Better::less},
    Unit{"cost", "price_per_hour", "USD", 1, Better::neither},
    Unit{"cost", "", "USD", 1, Better::less},
    Unit{"", "", "", 1, Better::neither},
};

const Unit& unit_of(std::string_view group, std::string_view figure) {
  return *std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& unit) {
    return (unit.group.empty() || unit.group == group) && figure.ends_with(unit.ending);
  });
}

/// The best value; nothing where the runs do not differ.
std::optional<double> best_of(const study::ComparedFigure& figure, Better better) {
  std::vector<double> values;
  for (const std::optional<double>& value : figure.values) {
    if (value) {
      values.push_back(*value);
    }
  }
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (better == Better::neither || values.empty() || *least == *most) {
    return std::nullopt;
  }
  return better == Better::less ? *least : *most;
}

/// A, B, ... Z, A1, B1 ...
std::string letter_of(std::size_t run) {
  constexpr std::size_t kLetters = 26;
  std::string letter(1, static_cast<char>('A' + run % kLetters));
  return run < kLetters ? letter : letter + std::to_string(run / kLetters);
}

std::string trimmed(const std::string& text) {
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

std::string cell(const std::optional<double>& value, const Unit& unit) {
  return value ? fmt::format("{:.6g}", *value / unit.scale) : "-";
}

class ComparisonText {
 public:
  explicit ComparisonText(const study::Comparison& comparison)
      : all_(comparison), runs_(comparison.runs.size()) {}

  std::string write() {
    for (std::size_t i = 0; i < runs_; ++i) {
      const study::RunFigures& run = all_.runs[i];
      line("{}  {}: {} on {} devices of {}, network {}", letter_of(i), run.source, run.model,
           run.devices, run.machine, run.network);
    }
    networks();
    plan();
    for (const study::ComparedGroup& group : all_.groups) {
      write_group(group);
    }
    if (marked_) {
      line("\n* the best run of the figure");
    }
    rankings();
    return std::move(text_);
  }

 private:
  template <class... Values>
  void line(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    text_ += '\n';
  }

  void header(const std::string& title, bool compared) {
    std::string text = fmt::format("\n{:<{}}", title, kNameWidth + kUnitWidth + 2);
    for (std::size_t i = 0; i < runs_; ++i) {
      text += fmt::format("{:>{}} ", letter_of(i), kValueWidth - 1);
    }
    if (compared && runs_ == 2) {
      text += fmt::format("{:>{}} ", "B - A", kValueWidth - 1);
    }
    for (std::size_t i = 1; compared && i < runs_; ++i) {
      text += fmt::format("{:>10}", letter_of(i) + " / A");
    }
    line("{}", trimmed(text));
  }

  /// Writes what the networks of the runs do otherwise, where they are not all the same.
  void networks() {
    const auto on = [&](const auto& network) {
      return std::count_if(all_.runs.begin(), all_.runs.end(), [&](const study::RunFigures& run) {
        return run.network == network.name;
      });
    };
    const bool differ = std::ranges::none_of(
        kNames<simulate::NetworkModel>,
        [&](const auto& network) { return on(network) == std::ssize(all_.runs); });
    for (const auto& network : kNames<simulate::NetworkModel>) {
      if (differ && on(network) > 0) {
        line("   {}: {}", network.name, network.meaning);
      }
    }
  }

  /// Says which order of step times the errors of such predictions leave open.
  void rankings() {
    for (std::size_t i = 1; i < runs_; ++i) {
      const std::optional<study::StepRanking> ranking = study::ranking(all_, i);
      if (!ranking) {
        continue;
      }
      line("{}{} takes {:.3f} times as long as A, 80 %: {:.3f} to {:.3f}{}", i == 1 ? "\n" : "",
           letter_of(i), ranking->ratio, ranking->interval80.least, ranking->interval80.most,
           ranking->open ? "; which is faster is open" : "");
    }
  }

  void plan() {
    if (all_.plan.empty()) {
      line("\nThe plans agree in every field.");
      return;
    }
    header("plan", false);
    for (const study::PlanDifference& difference : all_.plan) {
      std::string text = fmt::format("  {:<{}}", difference.field, kNameWidth + kUnitWidth);
      for (const std::string& value : difference.values) {
        text += fmt::format("{:>{}} ", value.empty() ? "''" : value, kValueWidth - 1);
      }
      line("{}", trimmed(text));
    }
  }

  void write_group(const study::ComparedGroup& group) {
    header(group.name, true);
    for (const study::ComparedFigure& figure : group.figures) {
      const bool nothing = std::all_of(figure.values.begin(), figure.values.end(),
                                       [](const auto& value) { return !value || *value == 0; });
      if (!nothing) {
        write_figure(figure, unit_of(group.name, figure.name));
      }
    }
  }

  void write_figure(const study::ComparedFigure& figure, const Unit& unit) {
    std::string text =
        fmt::format("  {:<{}}{:<{}}", figure.name, kNameWidth, unit.name, kUnitWidth);
    const std::optional<double> best = best_of(figure, unit.better);
    marked_ = marked_ || best;
    for (const std::optional<double>& value : figure.values) {
      const char mark = best && value == best ? '*' : ' ';
      text += fmt::format("{:>{}}{}", cell(value, unit), kValueWidth - 1, mark);
    }
    if (runs_ == 2) {
      text += fmt::format("{:>{}} ", cell(figure.difference(1), unit), kValueWidth - 1);
    }
    for (std::size_t i = 1; i < runs_; ++i) {
      const std::optional<double> ratio = figure.ratio(i);
      text += fmt::format("{:>10}", ratio ? fmt::format("{:.4f}", *ratio) : "-");
    }
    line("{}", trimmed(text));
  }

  const study::Comparison& all_;
  std::size_t runs_;
  std::string text_;
  bool marked_ = false;
};

void write_values(JsonWriter& json, std::string_view key, std::size_t runs,
                  const std::function<std::optional<double>(std::size_t)>& value_of_run) {
  json.key(key).begin_array();
  for (std::size_t i = 0; i < runs; ++i) {
    const std::optional<double> value = value_of_run(i);
    value ? json.value(*value) : json.number_text("null");
  }
  json.end_array();
}

void write_groups(JsonWriter& json, const study::Comparison& comparison) {
  const std::size_t runs = comparison.runs.size();
  json.key("groups").begin_object();
  for (const study::ComparedGroup& group : comparison.groups) {
    json.key(group.name).begin_object();
    for (const study::ComparedFigure& figure : group.figures) {
      json.key(figure.name).begin_object();
      write_values(json, "values", runs, [&](std::size_t i) { return figure.values[i]; });
      write_values(json, "differences", runs, [&](std::size_t i) { return figure.difference(i); });
      write_values(json, "ratios", runs, [&](std::size_t i) { return figure.ratio(i); });
      json.end_object();
    }
    json.end_object();
  }
  json.end_object();
}

}  // namespace

std::string comparison_table(const study::Comparison& comparison) {
  return ComparisonText(comparison).write();
}

std::string comparison_json(const study::Comparison& comparison) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("runs").begin_array();
    for (const study::RunFigures& run : comparison.runs) {
      json.begin_object();
      json.key("source").value(run.source);
      json.key("model").value(run.model);
      json.key("machine").value(run.machine);
      json.key("devices").value(run.devices);
      json.key("network").value(run.network);
      json.end_object();
    }
    json.end_array();
    json.key("plan").begin_array();
    for (const study::PlanDifference& difference : comparison.plan) {
      json.begin_object();
      json.key("field").value(difference.field);
      json.key("values").begin_array();
      for (const std::string& value : difference.values) {
        json.value(value);
      }
      json.end_array().end_object();
    }
    json.end_array();
    write_groups(json, comparison);
    json.key("rankings").begin_array();
    for (std::size_t i = 1; i < comparison.runs.size(); ++i) {
      const std::optional<study::StepRanking> ranking = study::ranking(comparison, i);
      if (!ranking) {
        json.number_text("null");
        continue;
      }
      json.begin_object();
      json.key("ratio").value(ranking->ratio);
      json.key("interval80").begin_array();
      json.value(ranking->interval80.least).value(ranking->interval80.most).end_array();
      json.key("open").value(ranking->open);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  });
}

}  // namespace orrery::report
