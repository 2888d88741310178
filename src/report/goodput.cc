// SPDX-License-Identifier: Apache-2.0
#include "report/goodput.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/format.h"
#include "report/json_writer.h"
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

void write_band(JsonWriter& json, std::string_view key, const goodput::Band& band) {
  json.key(key).begin_array().value(band.low).value(band.high).end_array();
}

void write_components(JsonWriter& json, const GoodputReport& report) {
  const goodput::Scenario& scenario = report.asked.scenario;
  const auto kinds = scenario.stops();
  json.key("components").begin_array();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const goodput::Component& each = scenario.components[i];
    json.begin_object();
    json.key("name").value(each.name);
    json.key("mtbf_s").value(each.mtbf.value());
    json.key("per").value(name_of(each.per));
    json.key("mtbf_job_s").value(kinds[i].mtbf.value());
    json.key("down_s").value(each.down().value());
    json.key("failures").value(report.lives.stops_by_component[i]);
    if (i < report.asked.fitted.size()) {
      const goodput::FittedRate& fit = report.asked.fitted[i];
      json.key("log_stops").value(fit.stops);
      json.key("mtbf80_s").begin_array();
      json.value(fit.mtbf_low.value()).value(fit.mtbf_high.value()).end_array();
    }
    json.end_object();
  }
  json.end_array();
}

void write_answer(JsonWriter& json, const GoodputReport& report) {
  const goodput::Scenario& scenario = report.asked.scenario;
  const Duration mtbf = mtbf_of_job(report);
  const Duration holds = scenario.checkpoint.cost.holds;
  json.key("mtbf_job_s").value(mtbf.value());
  json.key("goodput").value(goodput_of(report));
  json.key("expected_goodput")
      .value(goodput::expected_goodput(scenario.stops(), scenario.checkpoint.cost,
                                       scenario.interval()));
  json.key("simulated_goodput").value(report.lives.goodput.mean);
  write_band(json, "interval80", report.lives.goodput);
  json.key("best_interval_s").value(goodput::best_interval(mtbf, scenario.checkpoint.cost).value());
  json.key("young_interval_s").value(goodput::young_interval(mtbf, holds).value());
  json.key("daly_interval_s").value(goodput::daly_interval(mtbf, holds).value());
  json.key("interval_s").value(scenario.interval().value());
  json.key("failures").value(report.length / mtbf);
  write_band(json, "failures80", report.lives.stops);
  json.key("checkpoints").value(report.lives.checkpoints.mean);
  json.key("time_s").begin_object();
  goodput::JobTime::fields([&](std::string_view name, auto member, std::string_view) {
    json.key(name).value((report.lives.time.*member).value() / static_cast<double>(report.seeds));
  });
  json.end_object();
  write_components(json, report);
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

std::string goodput_json(const GoodputReport& report) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("devices").value(report.asked.scenario.devices);
    json.key("days").value(report.length.value() / 86400);
    json.key("seeds").value(report.seeds);
    if (has_rates(report)) {
      write_answer(json, report);
    } else {
      for (const char* key : {"goodput", "interval80", "best_interval_s", "failures"}) {
        json.key(key).number_text("null");
      }
    }
    json.key("break_even").begin_array();
    for (const double share : kBreakEvenShares) {
      json.begin_object();
      json.key("goodput").value(share);
      json.key("mtbf_device_s").value(break_even(report, share).value());
      json.end_object();
    }
    json.end_array();
    json.key("assumed").begin_array();
    for (const std::string& sentence : report.asked.assumed) {
      json.value(sentence);
    }
    json.end_array().end_object();
  });
}

}  // namespace orrery::report
