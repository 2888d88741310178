// SPDX-License-Identifier: Apache-2.0
#include "report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>

#include "report/json_writer.h"
#include "simulate/network_model.h"

namespace orrery::report {
namespace {

constexpr int kNameWidth = 28;
constexpr int kValueWidth = 15;

/// A, B, ... Z, A1, B1 ...
std::string letter_of(std::size_t run) {
  constexpr std::size_t kLetters = 26;
  std::string letter(1, static_cast<char>('A' + run % kLetters));
  return run < kLetters ? letter : letter + std::to_string(run / kLetters);
}

std::string cell(const std::optional<double>& value) {
  return value ? fmt::format("{:.6g}", *value) : "-";
}

class Text {
 public:
  explicit Text(const study::Comparison& comparison)
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
    return std::move(text_);
  }

 private:
  template <class... Values>
  void line(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    text_ += '\n';
  }

  void header(const std::string& title, bool compared) {
    std::string text = fmt::format("\n{:<{}}", title, kNameWidth + 2);
    for (std::size_t i = 0; i < runs_; ++i) {
      text += fmt::format("{:>{}}", letter_of(i), kValueWidth);
    }
    if (compared && runs_ == 2) {
      text += fmt::format("{:>{}}", "B - A", kValueWidth);
    }
    for (std::size_t i = 1; compared && i < runs_; ++i) {
      text += fmt::format("{:>10}", letter_of(i) + " / A");
    }
    line("{}", text);
  }

  /// What the networks of the runs do otherwise, where they are not all the same.
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

  void plan() {
    if (all_.plan.empty()) {
      line("\nThe plans agree in every field.");
      return;
    }
    header("plan", false);
    for (const study::PlanDifference& difference : all_.plan) {
      std::string text = fmt::format("  {:<{}}", difference.field, kNameWidth);
      for (const std::string& value : difference.values) {
        text += fmt::format("{:>{}}", value.empty() ? "''" : value, kValueWidth);
      }
      line("{}", text);
    }
  }

  void write_group(const study::ComparedGroup& group) {
    header(group.name, true);
    for (const study::ComparedFigure& figure : group.figures) {
      const bool nothing = std::all_of(figure.values.begin(), figure.values.end(),
                                       [](const auto& value) { return !value || *value == 0; });
      if (!nothing) {
        write_figure(figure);
      }
    }
  }

  void write_figure(const study::ComparedFigure& figure) {
    std::string text = fmt::format("  {:<{}}", figure.name, kNameWidth);
    for (const std::optional<double>& value : figure.values) {
      text += fmt::format("{:>{}}", cell(value), kValueWidth);
    }
    if (runs_ == 2) {
      text += fmt::format("{:>{}}", cell(figure.difference(1)), kValueWidth);
    }
    for (std::size_t i = 1; i < runs_; ++i) {
      const std::optional<double> ratio = figure.ratio(i);
      text += fmt::format("{:>10}", ratio ? fmt::format("{:.4f}", *ratio) : "-");
    }
    line("{}", text);
  }

  const study::Comparison& all_;
  std::size_t runs_;
  std::string text_;
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
  return Text(comparison).write();
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
    json.end_object();
  });
}

}  // namespace orrery::report
