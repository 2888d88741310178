// SPDX-License-Identifier: Apache-2.0
#include "report/goodput.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/format.h"
#include "report/run_table.h"

namespace orrery::report {
namespace {

constexpr std::array kBreakEvenShares = {0.5, 0.8, 0.9, 0.95, 0.99};

bool has_rates(const GoodputReport& report) {
  return !report.asked.scenario.components.empty();
}

Duration mtbf_of_job(const GoodputReport& report) {
  return goodput::mtbf_of(report.asked.scenario.stops());
}

/// The mean restart over the stops of all kinds.
Duration mean_restart(const goodput::Scenario& scenario, const goodput::Component& otherwise) {
  if (scenario.components.empty()) {
    return otherwise.down();
  }
  const Duration mtbf = goodput::mtbf_of(scenario.stops());
  Duration restart{0};
  for (const goodput::StopKind& kind : scenario.stops()) {
    restart += kind.restart * (mtbf / kind.mtbf);
  }
  return restart;
}

/// Mean time between failures of a device that reaches a goodput.
Duration break_even(const GoodputReport& report, double share) {
  const goodput::Scenario& scenario = report.asked.scenario;
  return goodput::break_even_mtbf(mean_restart(scenario, report.asked.otherwise),
                                  scenario.checkpoint.cost, share) *
         static_cast<double>(scenario.devices);
}

/// Whole hours, "50,677".
std::string hours(Duration duration) {
  return grouped(std::llround(duration.value() / 3600));
}

std::string break_even_lines(const GoodputReport& report) {
  std::string text = "Mean time between failures of a device that gives a goodput of\n";
  for (const double share : kBreakEvenShares) {
    text += fmt::format("  {:>5}  {:>12} h\n", percent(share), hours(break_even(report, share)));
  }
  return text;
}

std::string answer_lines(const GoodputReport& report) {
  const goodput::Scenario& scenario = report.asked.scenario;
  const Duration mtbf = mtbf_of_job(report);
  const Duration holds = scenario.checkpoint.cost.holds;
  std::string text = fmt::format("Goodput       {:>8}  {}\n", percent(goodput_of(report)),
                                 is_closed_form(scenario) ? "of the time is work that is kept"
                                                          : "mean of the simulated lives");
  text += fmt::format("80 % of lives {} to {}  of {} lives of {}, mean {}\n",
                      percent(report.lives.goodput.low), percent(report.lives.goodput.high),
                      grouped(report.seeds), to_string(report.length),
                      percent(report.lives.goodput.mean));
  text +=
      fmt::format("Stops         {:>8.1f}  {:.0f} to {:.0f}; one every {}\n", report.length / mtbf,
                  report.lives.stops.low, report.lives.stops.high, to_string(mtbf));
  text += fmt::format("Checkpoints   {:>8.0f}  one every {}; best {}, Young {}, Daly {}\n",
                      report.lives.checkpoints.mean, to_string(scenario.interval()),
                      to_string(goodput::best_interval(mtbf, scenario.checkpoint.cost)),
                      to_string(goodput::young_interval(mtbf, holds)),
                      to_string(goodput::daly_interval(mtbf, holds)));
  return text;
}

std::string time_lines(const GoodputReport& report) {
  std::string text = fmt::format("\nWhere the time goes (mean life of {})\n",
                                 to_string(Duration(report.lives.days.mean * 86400)));
  const Duration total = report.lives.time.total();
  goodput::JobTime::fields([&](std::string_view name, auto member, std::string_view meaning) {
    const Duration part = report.lives.time.*member;
    text += fmt::format("  {:<11}{:>10}  {:>7}  {}\n", name,
                        to_string(part / static_cast<double>(report.seeds)),
                        fmt::format("{:.2f} %", 100 * (part / total)), meaning);
  });
  return text;
}

std::string component_lines(const GoodputReport& report) {
  const goodput::Scenario& scenario = report.asked.scenario;
  if (scenario.components.size() < 2) {
    return "";
  }
  std::string text = "\n  component                 stops  share   of one, every    down for\n";
  const auto kinds = scenario.stops();
  const Duration mtbf = goodput::mtbf_of(kinds);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const goodput::Component& each = scenario.components[i];
    text += fmt::format("  {:<22}{:>9.1f} {:>6} {:>14} h  {:>9}\n", each.name,
                        report.lives.stops_by_component[i], percent(mtbf / kinds[i].mtbf),
                        hours(each.mtbf), to_string(each.down()));
  }
  return text;
}

std::string fit_lines(const GoodputReport& report) {
  std::string text;
  for (const goodput::FittedRate& rate : report.asked.fitted) {
    text += fmt::format("  {}: {} stops in the log, a device every {} h (80 %: {} to {})\n",
                        rate.component.name, rate.stops, hours(rate.component.mtbf),
                        hours(rate.mtbf_low), hours(rate.mtbf_high));
  }
  return text.empty() ? text : "\nRates of the log\n" + text;
}

std::vector<double> ends(const goodput::Band& band) {
  return {band.low, band.high};
}

/// A component with the stops that it brings.
struct ComponentRow {
  goodput::Component component;
  Duration mtbf_of_job{0};
  double failures = 0;
  std::optional<goodput::FittedRate> fit;
};

std::vector<ComponentRow> component_rows(const GoodputReport& report) {
  const goodput::Scenario& scenario = report.asked.scenario;
  const auto kinds = scenario.stops();
  std::vector<ComponentRow> rows;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    rows.push_back(
        {scenario.components[i], kinds[i].mtbf, report.lives.stops_by_component[i], std::nullopt});
    if (i < report.asked.fitted.size()) {
      rows.back().fit = report.asked.fitted[i];
    }
  }
  return rows;
}

void declare_component(const ComponentRow& row, Fields& fields) {
  fields.field("name", "of the component", row.component.name);
  fields.field("mtbf_s", "of one unit", row.component.mtbf);
  fields.field("per", "unit: device, node or job", name_of(row.component.per));
  fields.field("mtbf_job_s", "of the job, by this component", row.mtbf_of_job);
  fields.field("down_s", "detection, diagnosis and restart", row.component.down());
  fields.field("failures", "of a mean life", row.failures);
  const goodput::FittedRate fit = row.fit.value_or(goodput::FittedRate{});
  fields.when(row.fit.has_value(), "log_stops", "in the log", fit.stops);
  fields.perhaps_values(
      "mtbf80_s", {"80 % interval of the fitted rate", "seconds"},
      row.fit ? std::vector{fit.mtbf_low, fit.mtbf_high} : std::vector<Duration>());
}

void declare_break_even(const GoodputReport& report, Fields& fields) {
  std::vector<std::pair<double, Duration>> rows;
  for (const double share : kBreakEvenShares) {
    rows.emplace_back(share, break_even(report, share));
  }
  fields.list("break_even", {"what reaches a goodput", "one goodput"}, rows, [&](const auto& row) {
    fields.field("goodput", "share of time", row.first);
    fields.field("mtbf_device_s", "of a device, with which the job reaches it at the best interval",
                 row.second);
  });
}

}  // namespace

bool is_closed_form(const goodput::Scenario& scenario) {
  bool survives = scenario.checkpoint.storage_every == 1;
  for (const goodput::Component& each : scenario.components) {
    survives = survives || each.survives_in_memory;
  }
  return scenario.spares < 0 && survives;
}

double goodput_of(const GoodputReport& report) {
  const goodput::Scenario& scenario = report.asked.scenario;
  return is_closed_form(scenario)
             ? goodput::expected_goodput(scenario.stops(), scenario.checkpoint.cost,
                                         scenario.interval())
             : report.lives.goodput.mean;
}

std::string goodput_table(const GoodputReport& report) {
  const goodput::Scenario& scenario = report.asked.scenario;
  std::string text = fmt::format("{} devices, {} nodes of {}\n\n", grouped(scenario.devices),
                                 grouped(scenario.nodes()), scenario.node);
  text += has_rates(report)
              ? answer_lines(report) + time_lines(report) + component_lines(report) +
                    fit_lines(report) + "\n"
              : "No rate of failures is known (--mtbf, --job-mtbf, --failures or --log).\n";
  text += break_even_lines(report);
  for (const std::string& sentence : report.asked.assumed) {
    text += "note: " + sentence + "\n";
  }
  return text;
}

void declare(const GoodputReport& report, Fields& fields) {
  const goodput::Scenario& scenario = report.asked.scenario;
  const goodput::CheckpointCost& cost = scenario.checkpoint.cost;
  const bool rated = has_rates(report);
  const Duration mtbf = rated ? mtbf_of_job(report) : Duration(0);
  const auto known = [&](const auto& of) { return rated ? std::optional(of()) : std::nullopt; };
  fields.field("devices", "of the job", scenario.devices);
  fields.field("days", "length of a life", report.length.value() / 86400);
  fields.field("seeds", "simulated lives", report.seeds);
  fields.when(rated, "mtbf_job_s", "mean time between stops of the job", mtbf);
  fields.nullable(
      "goodput",
      "share of time that is work which is kept; the expression where it says all, else "
      "the mean of the lives; null without a rate",
      known([&] { return goodput_of(report); }));
  fields.perhaps("expected_goodput", "the expression, at the interval", known([&] {
                   return goodput::expected_goodput(scenario.stops(), cost, scenario.interval());
                 }));
  fields.when(rated, "simulated_goodput", "mean of the lives", report.lives.goodput.mean);
  fields.nullable_values("interval80", {"80 % of the lives keep between these shares", "a share"},
                         known([&] { return ends(report.lives.goodput); }));
  fields.nullable("best_interval_s",
                  "work between two checkpoints with which the expression is largest",
                  known([&] { return goodput::best_interval(mtbf, cost); }));
  fields.perhaps("young_interval_s", "sqrt(2 delta M)",
                 known([&] { return goodput::young_interval(mtbf, cost.holds); }));
  fields.perhaps("daly_interval_s", "Daly's higher order",
                 known([&] { return goodput::daly_interval(mtbf, cost.holds); }));
  fields.perhaps("interval_s", "the one used", known([&] { return scenario.interval(); }));
  fields.nullable("failures", "stops expected in a life",
                  known([&] { return report.length / mtbf; }));
  fields.perhaps_values("failures80", {"80 % of the lives meet between so many stops", "stops"},
                        rated ? ends(report.lives.stops) : std::vector<double>());
  fields.when(rated, "checkpoints", "of a mean life", report.lives.checkpoints.mean);
  fields.part(
      "time_s", "parts of a mean life, in seconds",
      rated ? std::optional(report.lives.time) : std::nullopt, [&](const goodput::JobTime& time) {
        const auto lives = static_cast<double>(report.seeds);
        goodput::JobTime::fields([&](std::string_view name, auto member, std::string_view meaning) {
          fields.field(name, meaning, (time.*member).value() / lives);
        });
      });
  fields.list(
      "components", {"what fails", "a component"}, component_rows(report),
      [&](const ComponentRow& row) { declare_component(row, fields); }, true);
  declare_break_even(report, fields);
  fields.values("assumed", {"a sentence for each number that nobody stated", "a sentence"},
                report.asked.assumed);
}

}  // namespace orrery::report
