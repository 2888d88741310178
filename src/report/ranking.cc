// SPDX-License-Identifier: Apache-2.0
#include "report/ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "report/json_writer.h"
#include "report/plot.h"

namespace orrery::report {
namespace {

using rank::Mean;
using rank::Proxy;
using rank::Ranked;

void write_number(JsonWriter& json, std::string_view key, std::optional<double> value) {
  json.key(key).value(value.value_or(std::nan("")));
}

void write_mean(JsonWriter& json, std::string_view key, const std::optional<Mean>& mean) {
  write_number(json, key, mean ? std::optional(mean->value) : std::nullopt);
  write_number(json, fmt::format("{}_95", key), mean ? mean->half_width : std::nullopt);
}

void write_network(JsonWriter& json, const Ranked& one) {
  json.begin_object();
  json.key("name").value(one.name);
  for (const Named<Proxy>& proxy : kNames<Proxy>) {
    const auto& score = one.scores[static_cast<std::size_t>(proxy.value)];
    if (proxy.value == Proxy::parameters || proxy.value == Proxy::flops) {
      write_number(json, proxy.name, score ? std::optional(score->value) : std::nullopt);
    } else {
      write_mean(json, proxy.name, score);
    }
  }
  json.key("mean_rank").value(one.mean_rank);
  write_number(json, "accuracy", one.accuracy);
  json.key("trained").value(one.trained);
  const auto& price = one.price;
  write_number(json, "step_time_s",
               price ? std::optional(to_seconds(price->step_time)) : std::nullopt);
  write_number(json, "memory_bytes",
               price ? std::optional(static_cast<double>(price->memory.value())) : std::nullopt);
  write_number(json, "energy_j",
               price && price->energy ? std::optional(price->energy->value()) : std::nullopt);
  json.key("pareto").value(one.pareto);
  json.end_object();
}

/// "0.41 +- 0.05", "undefined".
std::string shown_mean(const std::optional<Mean>& mean) {
  if (!mean) {
    return "undefined";
  }
  return mean->half_width ? fmt::format("{:.2f} +- {:.2f}", mean->value, *mean->half_width)
                          : fmt::format("{:.2f}", mean->value);
}

std::string shown_score(const Ranked& one, Proxy proxy) {
  const auto& score = one.scores[static_cast<std::size_t>(proxy)];
  return score ? fmt::format("{:.4g}", score->value) : "undefined";
}

std::string network_row(const Ranked& one) {
  std::string row = fmt::format("  {:<24}{:>8.1f}", one.name, one.mean_rank);
  for (const Named<Proxy>& proxy : kNames<Proxy>) {
    row += fmt::format("{:>12}", shown_score(one, proxy.value));
  }
  row += fmt::format("{:>10}", one.accuracy ? fmt::format("{:.3f}", *one.accuracy) : "-");
  if (one.price) {
    row += fmt::format("{:>12}{:>12}{:>12}", to_string(one.price->step_time),
                       to_string(one.price->memory),
                       one.price->energy ? to_string(*one.price->energy) : "-");
  }
  return row + "\n";
}

std::string correlation_table(const RankingReport& report) {
  std::string text = fmt::format(
      "\nRank correlations over {} seed{}{}\n  {:<22}{:<12}{:>9}{:>18}{:>18}{:>24}\n",
      report.options.seeds, report.options.seeds == 1 ? "" : "s",
      report.options.seeds == 1 ? ": no interval" : ", with 95 % intervals over the seeds", "proxy",
      "with", "networks", "Spearman", "Kendall", "Spearman | parameters");
  for (const rank::Correlation& row : report.ranking.correlations) {
    const bool partial = row.with == "accuracy" && row.proxy != Proxy::parameters;
    text += fmt::format("  {:<22}{:<12}{:>9}{:>18}{:>18}{:>24}\n", name_of(row.proxy), row.with,
                        row.networks, shown_mean(row.spearman), shown_mean(row.kendall),
                        partial ? shown_mean(row.partial) : "-");
  }
  return text;
}

/// A series of dots of the networks on the Pareto list, or of the others.
PlotSeries series_of(const rank::Ranking& ranking, std::string name, bool pareto) {
  PlotSeries series{std::move(name), {}};
  for (const Ranked& one : ranking.networks) {
    series.values.push_back(one.pareto == pareto ? std::optional(one.mean_rank) : std::nullopt);
  }
  return series;
}

}  // namespace

std::string ranking_json(const RankingReport& report) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    json.key("seeds").value(report.options.seeds);
    json.key("samples").value(report.options.samples);
    json.key("machine");
    report.machine.empty() ? json.number_text("null") : json.value(report.machine);
    json.key("batch").value(report.step.batch);
    json.key("devices").value(report.step.devices);
    json.key("architectures").begin_array();
    for (const Ranked& one : report.ranking.networks) {
      write_network(json, one);
    }
    json.end_array();
    json.key("correlations").begin_array();
    for (const rank::Correlation& row : report.ranking.correlations) {
      json.begin_object();
      json.key("proxy").value(name_of(row.proxy));
      json.key("with").value(row.with);
      json.key("networks").value(row.networks);
      write_mean(json, "spearman", row.spearman);
      write_mean(json, "kendall", row.kendall);
      write_mean(json, "partial_spearman", row.partial);
      json.end_object();
    }
    json.end_array();
    json.key("pareto").begin_array();
    for (const std::size_t i : report.ranking.pareto) {
      json.value(report.ranking.networks[i].name);
    }
    json.end_array();
    json.end_object();
  });
}

std::string ranking_table(const RankingReport& report) {
  const rank::Ranking& ranking = report.ranking;
  std::string text = fmt::format(
      "{} of {} architectures are on the Pareto list of mean rank{}\n"
      "Proxies: {} samples, means over {} seed{}; no proxy is the best everywhere, so the mean "
      "rank "
      "is over five\n\n  {:<24}{:>8}",
      ranking.pareto.size(), ranking.networks.size(),
      report.machine.empty() ? " alone; with --machine also of step time, memory and energy"
                             : fmt::format(", step time, memory and energy\nSteps: batch {} on {} "
                                           "x {}, simulated",
                                           report.step.batch, report.step.devices, report.machine),
      report.options.samples, report.options.seeds, report.options.seeds == 1 ? "" : "s", "name",
      "rank");
  for (const char* const title :
       {"GradSign", "mean", "gradient", "synflow", "Jacobian", "parameters", "FLOPs"}) {
    text += fmt::format("{:>12}", title);
  }
  text += fmt::format("{:>10}", "accuracy");
  if (!report.machine.empty()) {
    text += fmt::format("{:>12}{:>12}{:>12}", "step", "memory", "energy");
  }
  text += "\n";
  for (const std::size_t i : ranking.pareto) {
    text += network_row(ranking.networks[i]);
  }
  return text + correlation_table(report);
}

std::string ranking_plot(const RankingReport& report) {
  const bool priced = !report.machine.empty();
  Plot plot{.kind = PlotKind::lines,
            .title = "Architectures: mean rank of the proxies and cost",
            .x_label = priced ? "step time (us)" : "parameters",
            .y_label = "mean rank (1: the best)",
            .dots = true};
  for (const Ranked& one : report.ranking.networks) {
    const auto& size = one.scores[static_cast<std::size_t>(Proxy::parameters)];
    plot.x.push_back(priced ? 1e6 * to_seconds(one.price->step_time) : size->value);
    plot.labels.push_back(one.pareto ? one.name : "");
  }
  plot.series = {series_of(report.ranking, "Pareto list", true),
                 series_of(report.ranking, "others", false)};
  return to_svg(plot);
}

}  // namespace orrery::report
