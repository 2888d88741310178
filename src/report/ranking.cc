// SPDX-License-Identifier: Apache-2.0
#include "report/ranking.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"
#include "base/lists.h"
#include "report/plot.h"

namespace orrery::report {
namespace {

using rank::Mean;
using rank::Proxy;
using rank::Ranked;

/// Declares a mean over the seeds and half of its 95 % interval.
void declare_mean(Fields& fields, std::string_view name, std::string_view sentence,
                  const std::optional<Mean>& mean) {
  fields.nullable(name, sentence, mean ? std::optional(mean->value) : std::nullopt);
  fields.nullable(fmt::format("{}_95", name),
                  "half of its 95 % interval over the seeds; null for one seed",
                  mean ? mean->half_width : std::nullopt);
}

void declare_network(Fields& fields, const Ranked& one) {
  fields.field("name", "of the network", one.name);
  for (const auto& [proxy, name, meaning] : kNames<Proxy>) {
    const auto i = static_cast<std::size_t>(proxy);
    const std::optional<Mean> score = i < one.scores.size() ? one.scores[i] : std::nullopt;
    if (proxy == Proxy::parameters || proxy == Proxy::flops) {
      fields.nullable(name, meaning, score ? std::optional(score->value) : std::nullopt);
    } else {
      declare_mean(fields, name,
                   fmt::format("{}; mean over the seeds; null where undefined", meaning), score);
    }
  }
  const std::optional<rank::Price>& price = one.price;
  fields.field("mean_rank", "over the five proxies of samples; 1: the best", one.mean_rank);
  fields.nullable("accuracy", "stated, or after training; null if neither", one.accuracy);
  fields.field("trained", "the accuracy is of --train", one.trained);
  fields.nullable("step_time_s", "simulated; null without a machine",
                  price ? std::optional(price->step_time) : std::nullopt);
  fields.nullable("memory_bytes", "of a device",
                  price ? std::optional(price->memory) : std::nullopt);
  fields.nullable("energy_j", "of a step, all devices; null where the machine states no power",
                  price ? price->energy : std::nullopt);
  fields.field("pareto", "no other network beats it", one.pareto);
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

/// Returns a series of dots of the networks on the Pareto list, or of the others.
PlotSeries series_of(const rank::Ranking& ranking, std::string name, bool pareto) {
  PlotSeries series{std::move(name), {}};
  for (const Ranked& one : ranking.networks) {
    series.values.push_back(one.pareto == pareto ? std::optional(one.mean_rank) : std::nullopt);
  }
  return series;
}

}  // namespace

void declare(const RankingReport& report, Fields& fields) {
  const rank::Ranking& ranking = report.ranking;
  fields.field("seeds", "draws of weights and minibatch", report.options.seeds);
  fields.field("samples", "of the minibatch", report.options.samples);
  fields.nullable("machine", "that the step is simulated on",
                  report.machine.empty() ? std::nullopt : std::optional(report.machine));
  fields.field("batch", "samples of a step", report.step.batch);
  fields.field("devices", "data-parallel", report.step.devices);
  fields.list("architectures", {"in the order of files", "one"}, ranking.networks,
              [&](const Ranked& one) { declare_network(fields, one); });
  fields.list(
      "correlations",
      {"of every proxy with the accuracy, if there is one, and with the number of parameters",
       "of a proxy"},
      ranking.correlations, [&](const rank::Correlation& row) {
        fields.choice("proxy", "whose order", row.proxy);
        fields.choice("with", "the other order", {"accuracy", "parameters"}, row.with);
        fields.field("networks", "in which both are defined", row.networks);
        declare_mean(fields, "spearman",
                     "Spearman's rho, mean over the seeds; null where undefined", row.spearman);
        declare_mean(fields, "kendall", "Kendall's tau-b; null where undefined", row.kendall);
        declare_mean(fields, "partial_spearman",
                     "Spearman's rho given the number of parameters; null where undefined",
                     row.partial);
      });
  const std::vector<std::string> pareto =
      mapped(ranking.pareto, [&](const std::size_t i) { return ranking.networks[i].name; });
  fields.values("pareto", {"names, the best mean rank first", "of a network"}, pareto);
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
