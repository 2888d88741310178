// SPDX-License-Identifier: Apache-2.0
#include "report/validation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/format.h"
#include "base/lists.h"
#include "report/plot.h"
#include "report/validation_metrics.h"

namespace orrery::report {
namespace {

constexpr std::size_t kShownWorst = 5;  // rows named under a table that is not listed in full

std::string signed_percent(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

/// A dash for what a failed row has not.
std::string number(double value) {
  return value == 0 ? "-" : fmt::format("{:.5g}", value);
}

/// Returns a row's error, or a dash where nothing was published that it could be off from.
std::string error_of(const study::ValidationRow& row) {
  return row.published == 0 ? "-" : signed_percent(row.error);
}

std::string goal_text(const study::ValidationResult& result) {
  if (!result.profile.goal) {
    return "none";
  }
  return fmt::format("{:g} %, {}", 100 * *result.profile.goal,
                     result.goal_met() ? "met" : "missed");
}

/// Returns the text of a row's remark column. Files beside `csv` are named without their folder,
/// which differs between machines.
std::string remark_of(const study::ValidationRow& row, const std::string& csv) {
  std::string remark = row.problem;
  const std::string folder = csv.substr(0, csv.rfind('/') + 1);
  for (std::size_t at = 0; !folder.empty() && (at = remark.find(folder)) != std::string::npos;) {
    remark.erase(at, folder.size());
  }
  const auto add = [&](bool applies, const char* text) {
    if (applies) {
      remark += (remark.empty() ? "" : "; ") + std::string(text);
    }
  };
  add(row.oom, "does not fit in memory");
  add(!row.scored, "not scored: fitted");
  for (std::size_t at = 0; (at = remark.find('\n', at)) != std::string::npos;) {
    remark.replace(at, 1, "; ");
  }
  return remark;
}

std::size_t widest_key(const std::vector<study::ValidationRow>& rows) {
  std::size_t width = 0;
  for (const study::ValidationRow& row : rows) {
    width = std::max(width, row.key.size());
  }
  return width;
}

template <class... Values>
void line(std::string& text, fmt::format_string<Values...> format, Values&&... values) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Values>(values)...);
  text += '\n';
}

void rows_as_text(std::string& text, const study::ValidationResult& result) {
  const std::size_t width = widest_key(result.rows);
  line(text, "  {:<{}} {:>10} {:>10} {:>9}  {}", "row", width, "predicted", "published", "error",
       "origin");
  for (const study::ValidationRow& row : result.rows) {
    const std::string remark = remark_of(row, result.csv);
    line(text, "  {:<{}} {:>10} {:>10} {:>9}  {}{}{}", row.key, width, number(row.predicted),
         number(row.published), error_of(row), row.origin,
         remark.empty() || row.origin.empty() ? "" : "; ", remark);
  }
}

/// Returns whether logarithmic axes can show the row.
bool is_drawn(const study::ValidationRow& row) {
  return row.predicted > 0 && row.published > 0;
}

/// "a=1 b=2 3" -> "1 2 3".
std::string values_of_key(std::string_view key) {
  std::string values;
  while (!key.empty()) {
    const std::size_t end = std::min(key.find(' '), key.size());
    const std::string_view word = key.substr(0, end);
    const std::string_view value = word.substr(word.find('=') + 1);  // npos + 1: the word
    values += (values.empty() || value.empty() ? "" : " ") + std::string(value);
    key.remove_prefix(std::min(end + 1, key.size()));
  }
  return values;
}

/// Returns the scored rows with the largest errors, largest first.
std::vector<const study::ValidationRow*> worst_rows(const study::ValidationResult& result) {
  std::vector<const study::ValidationRow*> rows;
  for (const study::ValidationRow& row : result.rows) {
    if (row.scored) {
      rows.push_back(&row);
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const study::ValidationRow* a, const study::ValidationRow* b) {
                     return std::abs(a->error) > std::abs(b->error);
                   });
  rows.resize(std::min(rows.size(), kShownWorst));
  return rows;
}

/// Returns MAPE, bias, median, p90 and worst as people read them; dashes where no error counts.
std::array<std::string, 5> shown(const study::ValidationScore& score) {
  if (score.rows == 0) {
    return {"-", "-", "-", "-", "-"};
  }
  return {percent(score.mape), signed_percent(score.bias), percent(score.median),
          percent(score.p90), percent(score.worst)};
}

/// Returns how many verdicts on memory are right, of rows that say nothing else; else nothing.
std::string verdicts_of(const study::ValidationScore& score) {
  return score.rows == 0 && score.oom_right
             ? "verdicts on memory alone: " + percent(*score.oom_right) + " right"
             : "";
}

constexpr const char* kPageHead = R"(# Validation

Written by `orrery validate --output docs/validation.md`; do not edit. Each table of published results has a profile in
`configs/validation/`: the machine and one set of software settings for all its rows. Kernel and
collective coefficients are fitted to measurements of single kernels and collectives only
(`tools/fit_*.py`, `orrery calibrate`), the clocks of a running job follow from the power of its kernels
under the cap ([power](models/power.md); `--clocks boost` runs the tables without); the one figure fitted to whole training steps is
`host_dispatch` of vtrain_a100_single, to rows that then leave the score; Mamba-2's `scan_backward_share` of A100 and Blackwell
is inferred from published steps of a model in no table. [fidelity](fidelity.md) has the tables without both. Frontier's share of peak, for which no kernels are
published, is declared fitted and judged on scaling only. No constant belongs to a model or a row.

MAPE is the mean absolute error of the scored rows, bias the mean signed error. A row that cannot be
run has no error; its table misses its goal. What the largest errors have in common is in [fidelity](fidelity.md).
Tables of thousands of served runs (serving_silicon, serving_ml_energy, serving_mlperf_v5_1, serving_logs) run by name alone:
`orrery validate --table serving_logs`.

)";

std::string in_cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.insert(at, 1, '\\');
  }
  return text;
}

void scores_as_page(std::string& page, const std::vector<study::ValidationResult>& results) {
  line(page, "| table | rows | MAPE | bias | median | p90 | worst | goal |");
  line(page, "|---|---:|---:|---:|---:|---:|---:|---|");
  for (const study::ValidationResult& result : results) {
    line(page, "| [{0}](#{0}) | {1} | {2} | {3} |", result.profile.table, result.score.rows,
         fmt::join(shown(result.score), " | "), goal_text(result));
  }
}

const std::string* reason_of(const study::ValidationProfile& profile, const std::string& field) {
  const auto found =
      std::find_if(profile.why.begin(), profile.why.end(),
                   [&](const study::Reason& reason) { return reason.field == field; });
  return found == profile.why.end() ? nullptr : &found->text;
}

void profile_as_page(std::string& page, const study::ValidationResult& result) {
  const auto entry = [&](const std::string& field, const std::string& value) {
    const std::string* reason = reason_of(result.profile, field);
    line(page, "| {} | {} | {} |", field, in_cell(value), reason ? in_cell(*reason) : "");
  };
  line(page, "| setting | value | source or reason |\n|---|---|---|");
  entry("machine", result.machine);
  for (const study::Setting& setting : result.profile.plan) {
    entry(setting.field, setting.value);
  }
  for (const study::MeasuredColumn& measured : result.profile.measured) {
    line(page, "| `{}`{} | {} | {} |", measured.column,
         measured.label.empty() ? "" : " (" + measured.label + ")", name_of(measured.measure),
         in_cell(std::string(
             kNames<study::Measure>[static_cast<std::size_t>(measured.measure)].meaning)));
  }
}

void table_as_page(std::string& page, const study::ValidationResult& result) {
  line(page, "\n## {}\n\n{}. {}.\n", result.profile.table, result.profile.title,
       result.profile.source);
  profile_as_page(page, result);
  const auto [mape, bias, median, p90, worst] = shown(result.score);
  line(page, "\nMAPE {} over {} rows, bias {}, median {}, p90 {}, worst {}; goal {}.\n", mape,
       result.score.rows, bias, median, p90, worst, goal_text(result));
  if (!result.profile.notes.empty()) {
    line(page, "{}\n", result.profile.notes);
  }
  if (has_chart(result)) {
    line(page, "![predicted over published](validation/{}.svg)\n", result.profile.table);
  }
  if (!result.groups.empty()) {
    line(page, "| {} | rows | MAPE | bias | median |", fmt::join(result.profile.group, ", "));
    line(page, "|---|---:|---:|---:|---:|");
  }
  for (const auto& [group, score] : result.groups) {
    const auto [its_mape, its_bias, its_median, its_p90, its_worst] = shown(score);
    const std::string verdicts = verdicts_of(score);
    line(page, "| {} | {} | {} | {} | {} |", in_cell(group), score.rows,
         verdicts.empty() ? its_mape : verdicts, its_bias, its_median);
  }
  const std::string metrics = metrics_as_page(result);
  page += metrics.empty() ? "" : "\n" + metrics;
  if (result.profile.is_long) {
    line(page, "\nIts rows: `orrery validate --table {}`.", result.profile.table);
    return;
  }
  line(page, "{}| row | predicted | published | error | origin | remark |",
       result.groups.empty() ? "" : "\n");
  line(page, "|---|---:|---:|---:|---|---|");
  for (const study::ValidationRow& row : result.rows) {
    line(page, "| {} | {} | {} | {} | {} | {} |", in_cell(row.key), number(row.predicted),
         number(row.published), error_of(row), in_cell(row.origin),
         in_cell(remark_of(row, result.csv)));
  }
}

std::string scores_as_text(std::string_view name, std::size_t width,
                           const study::ValidationScore& score) {
  std::string text = fmt::format("{:<{}} {:>5}", name, width, score.rows);
  for (const std::string& figure : shown(score)) {
    text += fmt::format(" {:>8}", figure);
  }
  return text;
}

}  // namespace

std::string validation_table(const std::vector<study::ValidationResult>& results, bool all_rows) {
  std::string text;
  std::size_t width = 5;
  for (const study::ValidationResult& result : results) {
    width = std::max(width, result.profile.table.size());
    for (const auto& [group, score] : result.groups) {
      width = std::max(width, 2 + group.size());
    }
    if (all_rows) {
      line(text, "{}: {} ({})", result.profile.table, result.profile.title, result.csv);
      rows_as_text(text, result);
      text += '\n';
    }
  }
  line(text, "{:<{}} {:>5} {:>8} {:>8} {:>8} {:>8} {:>8}  {}", "table", width, "rows", "MAPE",
       "bias", "median", "p90", "worst", "goal");
  for (const study::ValidationResult& result : results) {
    line(text, "{}  {}", scores_as_text(result.profile.table, width, result.score),
         goal_text(result));
    for (const auto& [group, score] : result.groups) {
      const std::string verdicts = verdicts_of(score);
      line(text, "{}{}{}", scores_as_text("  " + group, width, score), verdicts.empty() ? "" : "  ",
           verdicts);
    }
    text += metrics_as_text(result);
  }
  for (const study::ValidationResult& result : results) {
    if (all_rows) {
      continue;
    }
    line(text, "\nworst of {}:", result.profile.table);
    for (const study::ValidationRow* row : worst_rows(result)) {
      line(text, "  {:>9}  {}  {}", signed_percent(row->error), row->key,
           remark_of(*row, result.csv));
    }
  }
  return text;
}

bool has_chart(const study::ValidationResult& result) {
  return std::any_of(result.rows.begin(), result.rows.end(), is_drawn);
}

std::string validation_plot(const study::ValidationResult& result) {
  constexpr double kOutlier = 0.2;
  constexpr std::size_t kMostNamed = 8;
  Plot plot{
      .title = result.profile.title,
      .x_label = fmt::format("published, {}", name_of(result.profile.measured.front().measure)),
      .y_label = "predicted",
      .log_x = true,
      .log_y = true,
      .series = {{"predicted", {}}},
      .dots = true,
      .diagonal = true};
  std::vector<double> errors = mapped(result.rows, [&](const study::ValidationRow& row) {
    return row.problem.empty() ? std::abs(row.error) : 0;
  });
  std::sort(errors.rbegin(), errors.rend());
  const double named =
      std::max(kOutlier, errors.size() > kMostNamed ? errors[kMostNamed] : kOutlier);
  for (const study::ValidationRow& row : result.rows) {
    if (is_drawn(row)) {
      plot.x.push_back(row.published);
      plot.series.front().values.emplace_back(row.predicted);
      plot.labels.push_back(std::abs(row.error) > named ? values_of_key(row.key) : "");
    }
  }
  return to_svg(plot);
}

std::string validation_page(const std::vector<study::ValidationResult>& results) {
  std::string page = kPageHead;
  scores_as_page(page, results);
  for (const study::ValidationResult& result : results) {
    table_as_page(page, result);
  }
  return page;
}

}  // namespace orrery::report
