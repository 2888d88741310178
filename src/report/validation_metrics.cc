// SPDX-License-Identifier: Apache-2.0
#include "report/validation_metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::report {
namespace {

std::string share(double value) {
  return fmt::format("{:.1f} %", 100 * value);
}

/// The goals of a metric and whether they are met.
std::string goals_of(const study::ValidationProfile& profile, const std::string& metric,
                     const study::MetricScore& score) {
  const auto measured = std::find_if(
      profile.measured.begin(), profile.measured.end(), [&](const study::MeasuredColumn& column) {
        return column.metric == metric && (column.goal || column.median_goal);
      });
  if (measured == profile.measured.end()) {
    return "";
  }
  const auto said = [](const char* what, double goal, double found) {
    return fmt::format("{} {:g} %, {}", what, 100 * goal, found <= goal ? "met" : "missed");
  };
  std::string text;
  if (measured->goal) {
    text = said("MAPE", *measured->goal, score.mape);
  }
  if (measured->median_goal) {
    text += (text.empty() ? "" : "; ") + said("median", *measured->median_goal, score.median);
  }
  return text;
}

void add_metric_rows(std::string& page, const study::ValidationResult& result,
                     const std::string& name, const study::ValidationScore& score, bool goals) {
  for (const auto& [metric, its] : score.metrics) {
    page += fmt::format("| {} | {} | {} | {} | {:+.1f} % | {} | {} |\n", name, metric, its.rows,
                        share(its.mape), 100 * its.bias, share(its.median),
                        goals ? goals_of(result.profile, metric, its) : "");
  }
}

/// Returns what a choice by prediction leaves of its limit; empty where it leaves nothing free.
std::string left_free(const study::ValidationResult& result) {
  const double spare = result.profile.regret ? result.profile.regret->spare : 0;
  return spare > 0 ? fmt::format(", {:g} % of it left free", 100 * spare) : std::string();
}

}  // namespace

std::string metrics_as_text(const study::ValidationResult& result) {
  std::string text;
  for (const auto& [metric, its] : result.score.metrics) {
    text += fmt::format("  {:<12} {:>5} rows, MAPE {}, bias {:+.1f} %, median {}  {}\n", metric,
                        its.rows, share(its.mape), 100 * its.bias, share(its.median),
                        goals_of(result.profile, metric, its));
  }
  if (!text.empty()) {
    text += fmt::format("  answered {} of {} rows\n", result.score.answered, result.score.lines);
  }
  for (const auto& [name, score] : result.ranking) {
    text += fmt::format("  pairs of another {}: {} of {} right\n", name, score.right, score.pairs);
  }
  for (const auto& [limit, score] : result.regret) {
    text +=
        fmt::format("  chosen under {:g}{}: breaks it in {} of {} groups, else {} below the best\n",
                    limit, left_free(result), score.broken, score.groups, share(score.loss));
  }
  return text;
}

std::string metrics_as_page(const study::ValidationResult& result) {
  std::string page;
  if (!result.score.metrics.empty()) {
    page += fmt::format("Answered: {} of {} rows.\n\n", result.score.answered, result.score.lines);
    page += "| rows | metric | figures | MAPE | bias | median | goal |\n";
    page += "|---|---|---:|---:|---:|---:|---|\n";
    add_metric_rows(page, result, "all that are not scored apart", result.score, true);
    for (const auto& [group, score] : result.groups) {
      add_metric_rows(page, result, group, score, false);
    }
    page += "\n";
  }
  for (const auto& [name, score] : result.ranking) {
    page += fmt::format("Pairs of another {}: {} of {} in the measured order.\n", name, score.right,
                        score.pairs);
  }
  for (const auto& [limit, score] : result.regret) {
    page += fmt::format(
        "Chosen by prediction under {:g}{}: breaks the limit in {} of {} groups, else {} below the "
        "best measured.\n",
        limit, left_free(result), score.broken, score.groups, share(score.loss));
  }
  return page;
}

}  // namespace orrery::report
