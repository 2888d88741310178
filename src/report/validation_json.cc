// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/lists.h"
#include "report/fields.h"
#include "report/validation.h"

namespace orrery::report {
namespace {

/// Lists the metrics that shipped profiles name.
constexpr std::array<std::string_view, 6> kMetrics{"tpot",    "ttft",        "tokens_s",
                                                   "power_w", "j_per_token", "kv_tokens"};

void declare_row(const study::ValidationRow& row, Fields& fields) {
  fields.field("key", "the row's columns, by name", row.key);
  fields.field("line", "of the file; 0: each row is a line of its own", row.line);
  fields.field("metric", "what is measured, of tables with several (tpot, ttft ...); else empty",
               row.metric);
  fields.field("predicted", "in the table's unit", row.predicted);
  fields.field("published", "in the table's unit", row.published);
  fields.field("error", "predicted / published - 1", row.error);
  fields.field("oom", "the model does not fit into memory", row.oom);
  fields.field("scored", "counts", row.scored);
  fields.field("origin", "where the figure is from: published-read, recalled, derived ...",
               row.origin);
  fields.field("problem", "why it cannot run; \"\" otherwise", row.problem);
  fields.field("memory", "of memory, scored apart from times", row.memory);
  fields.field("kind", "what is predicted: dense, experts, adapters, memory, a measure of serving",
               row.causes.kind);
  fields.field("framework", "whose run it is; none: no plan says", row.causes.framework);
  fields.field("coefficients", "fitted or inferred, of the machine's kernels", row.causes.origin);
  fields.field("machine", "of the row", row.causes.machine);
  fields.field("rate", "more is faster", row.rate);
  const auto range = row.interval80.value_or(study::Range{});
  fields.perhaps_values(
      "interval80",
      {"what is measured lies in it for 80 % of such rows; missing without an error model or "
       "answer",
       "least, most"},
      row.interval80 ? std::vector<double>{range.least, range.most} : std::vector<double>());
}

void declare_metric(std::string_view name, const study::MetricScore& its, Fields& fields) {
  fields.part(name, "the figures of this metric", std::optional(its),
              [&](const study::MetricScore& score) {
                fields.field("rows", "figures that count", score.rows);
                fields.field("mape", "mean of |error|", score.mape);
                fields.field("median", "of |error|", score.median);
                fields.field("bias", "mean of error", score.bias);
              });
}

void declare_score(const study::ValidationScore& score, Fields& fields) {
  const auto known = [&](double value) {
    return score.rows > 0 ? std::optional(value) : std::nullopt;
  };
  fields.field("rows", "lines of the file with something to predict", score.lines);
  fields.field("answered", "of these, with every prediction", score.answered);
  fields.field("scored_rows", "errors that count", score.rows);
  fields.nullable("mape", "mean of |error|, without memory; null: none", known(score.mape));
  fields.nullable("bias", "mean of error", known(score.bias));
  fields.nullable("median", "median of |error|", known(score.median));
  fields.nullable("p90", "ninth decile of |error|", known(score.p90));
  fields.nullable("worst", "largest |error|", known(score.worst));
  fields.nullable(
      "covered",
      "share of times (else of memory) inside the 80 % interval; null: there are no intervals",
      score.covered);
  fields.nullable("interval80_width", "median half width of these intervals over the prediction",
                  score.width);
  fields.nullable("memory_mape", "mean of |error| of peak memory; null: the table has none",
                  score.memory_mape);
  fields.nullable("oom_right",
                  "share of lines whose verdict on memory is right; null: the table does not say",
                  score.oom_right);
  for (const auto& [metric, its] : score.metrics) {
    declare_metric(metric, its, fields);
  }
  if (fields.declares_all()) {
    for (const std::string_view metric : kMetrics) {
      declare_metric(metric, {}, fields);
    }
  }
}

/// Declares the rows, and apart those without an answer.
void declare_rows(const study::ValidationResult& result, Fields& fields) {
  fields.list("predictions", {"in the file's order", "one published figure"}, result.rows,
              [&](const study::ValidationRow& row) { declare_row(row, fields); });
  std::vector<study::ValidationRow> unanswered;
  std::ranges::copy_if(result.rows, std::back_inserter(unanswered),
                       [](const study::ValidationRow& row) { return !row.problem.empty(); });
  fields.list("unanswered", {"predictions that could not be made", "one of them"}, unanswered,
              [&](const study::ValidationRow& row) {
                fields.field("line", "of the file", row.line);
                fields.field("key", "the row's columns, by name", row.key);
                fields.field("reason", "what was found and what would be right", row.problem);
              });
}

/// Returns a map's entries in its order, with their keys as texts.
template <class Map>
auto entries_of(const Map& map) {
  return mapped(map, [](const auto& entry) {
    return std::pair(fmt::format("{}", entry.first), entry.second);
  });
}

void declare_comparisons(const study::ValidationResult& result, Fields& fields) {
  const auto key = [](const auto& entry) { return entry.first; };
  fields.together(result.profile.ranking.has_value(), [&] {
    fields.objects("ranking", {"pairs of rows, by what differs between them", "one difference"},
                   entries_of(result.ranking), key, [&](const auto& entry) {
                     fields.field("pairs", "of rows", entry.second.pairs);
                     fields.field("right", "of these, predicted in the measured order",
                                  entry.second.right);
                   });
  });
  fields.together(result.profile.regret.has_value(), [&] {
    fields.field("spare", "share of each limit that a choice by prediction leaves free",
                 result.profile.regret ? result.profile.regret->spare : 0);
    fields.objects(
        "regret", {"the fastest row chosen by prediction, by the limit it must keep", "one limit"},
        entries_of(result.regret), key, [&](const auto& entry) {
          fields.field("groups", "of rows in each of which one is chosen", entry.second.groups);
          fields.field("broken", "whose choice breaks the limit as measured", entry.second.broken);
          fields.field("loss", "mean share of the best measured that the others lack",
                       entry.second.loss);
        });
  });
}

void declare_table(const study::ValidationResult& result, bool with_rows, Fields& fields) {
  fields.field("table", "its name; `orrery list tables`", result.profile.table);
  fields.field("title", "its source", result.profile.title);
  fields.field("machine", "that its profile names", result.machine);
  fields.field("csv", "file of the figures", result.csv);
  fields.together(with_rows, [&] { declare_rows(result, fields); });
  declare_score(result.score, fields);
  fields.objects(
      "groups", {"the scores of parts of the rows, by name", "one part"}, entries_of(result.groups),
      [](const auto& entry) { return entry.first; },
      [&](const auto& entry) { declare_score(entry.second, fields); });
  declare_comparisons(result, fields);
  fields.perhaps("goal", "the largest error that is called good", result.profile.goal);
  fields.when(result.profile.goal.has_value(), "goal_met",
              "mape, or median where the profile says so, is not above the goal",
              result.goal_met());
}

}  // namespace

void declare(const std::vector<study::ValidationResult>& results, Fields& fields) {
  const bool one = results.size() == 1;
  fields.together(
      one, [&] { declare_table(one ? results.front() : study::ValidationResult(), true, fields); });
  fields.list("tables", {"of several tables, each with its rows; of one, its score", "one table"},
              results,
              [&](const study::ValidationResult& result) { declare_table(result, !one, fields); });
}

}  // namespace orrery::report
