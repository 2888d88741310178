// SPDX-License-Identifier: Apache-2.0
#include "report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>

#include "report/lines.h"
#include "report/report.h"
#include "simulate/network_model.h"

namespace orrery::report {
namespace {

constexpr int kNameWidth = 28;
constexpr int kUnitWidth = 9;
constexpr int kValueWidth = 14;

enum class Better : std::uint8_t { less, more, neither };

/// Says how figures are shown whose names end like this: divided by `scale`, and which run is best.
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

/// Returns the best value; nothing where the runs do not differ.
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

class ComparisonText : Lines {
 public:
  explicit ComparisonText(const study::Comparison& comparison)
      : all_(comparison), runs_(comparison.runs.size()) {}

  std::string write() {
    for (std::size_t i = 0; i < runs_; ++i) {
      const study::RunFigures& run = all_.runs[i];
      line("{}  {}: {} on {} devices of {}, network {}", letter_of(i), run.source, run.model,
           run.devices, run.machine, run.network);
      if (!run.hypothetical.empty()) {
        line("   {}", run.hypothetical);
      }
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
  bool marked_ = false;
};

void declare_figure(const study::ComparedFigure& figure, Fields& fields) {
  std::vector<std::optional<double>> differences;
  std::vector<std::optional<double>> ratios;
  for (std::size_t i = 0; i < figure.values.size(); ++i) {
    differences.push_back(figure.difference(i));
    ratios.push_back(figure.ratio(i));
  }
  fields.values("values", {"of the runs", "of a run"}, figure.values);
  fields.values("differences", {"minus the first run's", "of a run"}, differences);
  fields.values("ratios", {"over the first run's", "of a run"}, ratios);
}

void declare_rankings(const study::Comparison& comparison, Fields& fields) {
  std::vector<std::optional<study::StepRanking>> rankings;
  for (std::size_t i = 1; i < comparison.runs.size(); ++i) {
    rankings.push_back(study::ranking(comparison, i));
  }
  fields.list("rankings",
              {"of every run but the first: how sure its order is; null where one of them has no "
               "trust",
               "of a run"},
              rankings, [&](const study::StepRanking& ranking) {
                fields.field("ratio", "step time over the first run's", ranking.ratio);
                fields.values(
                    "interval80",
                    {"of that ratio, least and most; what both runs share cancels", "a ratio"},
                    std::vector{ranking.interval80.least, ranking.interval80.most});
                fields.field("open", "1 lies in it: which is faster is open", ranking.open);
              });
}

}  // namespace

std::string comparison_table(const study::Comparison& comparison) {
  return ComparisonText(comparison).write();
}

void declare(const study::Comparison& comparison, Fields& fields) {
  fields.list(
      "runs", {"what is compared", "one run"}, comparison.runs, [&](const study::RunFigures& run) {
        fields.field("source", "file or plan", run.source);
        fields.field("model", "name of the model", run.model);
        fields.field("machine", "name of the machine", run.machine);
        fields.field("devices", "accelerators", run.devices);
        fields.field("network", "model of the network; `orrery list networks`", run.network);
        fields.when(!run.hypothetical.empty(), "hypothetical", kHypothetical, run.hypothetical);
      });
  fields.list("plan", {"fields in which not all plans agree", "one field"}, comparison.plan,
              [&](const study::PlanDifference& difference) {
                fields.field("field", "its name", difference.field);
                fields.values("values",
                              {"as the plans state them; - where one has no such field", "a value"},
                              difference.values);
              });
  fields.objects(
      "groups",
      {"groups of figures by the report's keys: step, breakdown_s, hidden_s, memory_bytes (of the "
       "fullest stage), energy, cost; their units are those of simulate.json",
       "figures of a group"},
      comparison.groups, &study::ComparedGroup::name,
      [&](const study::ComparedGroup& group) {
        fields.entries("one figure; null where a run does not have it", group.figures,
                       &study::ComparedFigure::name, [&](const study::ComparedFigure& figure) {
                         declare_figure(figure, fields);
                       });
      },
      Shape::map);
  declare_rankings(comparison, fields);
}

}  // namespace orrery::report
