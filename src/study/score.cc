// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "study/validate.h"

namespace orrery::study {
namespace {

/// Line is what the rows of one line of a file come to.
struct Line {
  bool answered = true;
  std::optional<bool> right{};  ///< its verdict on memory
};

/// Counts the lines and their verdicts; rows without a number are lines of their own.
void score_lines(const std::vector<ValidationRow>& rows, ValidationScore& score) {
  std::map<int, Line> lines;
  for (const ValidationRow& row : rows) {
    if (!row.scored) {
      continue;
    }
    const int number = row.line > 0 ? row.line : -1 - static_cast<int>(lines.size());
    Line& line = lines[number];
    line.answered = line.answered && row.problem.empty();
    if (row.ran && row.problem.empty()) {
      line.right = row.oom != *row.ran;
    }
  }
  double right = 0;
  std::size_t verdicts = 0;
  for (const auto& [number, line] : lines) {
    score.answered += line.answered ? 1 : 0;
    verdicts += line.right ? 1 : 0;
    right += line.right.value_or(false) ? 1 : 0;
  }
  score.lines = lines.size();
  if (verdicts > 0) {
    score.oom_right = right / static_cast<double>(verdicts);
  }
}

/// Gives rows with an answer their intervals, unless no error model is shipped.
void add_intervals(std::vector<ValidationRow>& rows) {
  const Result<ErrorModel> model = ErrorModel::load();
  for (ValidationRow& row : rows) {
    if (model && row.problem.empty() && !row.causes.kind.empty() && row.predicted > 0) {
      row.interval80 = interval80(model->trust(row.causes), row.predicted, row.rate);
    }
  }
}

/// Returns the median of sorted values.
double middle_of(const std::vector<double>& values) {
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

/// Counts how many of the measured figures lie inside their intervals: of memory only where there
/// is nothing else.
void score_intervals(const std::vector<ValidationRow>& rows, ValidationScore& score) {
  const bool memory =
      std::ranges::all_of(rows, [](const ValidationRow& row) { return row.memory; });
  std::vector<double> widths;
  double inside = 0;
  for (const ValidationRow& row : rows) {
    if (!row.scored || row.verdict || !row.interval80 || row.memory != memory) {
      continue;
    }
    const auto& [least, most] = *row.interval80;
    inside += least <= row.published && row.published <= most ? 1 : 0;
    widths.push_back((most - least) / 2 / row.predicted);
  }
  if (widths.empty()) {
    return;
  }
  score.covered = inside / static_cast<double>(widths.size());
  std::sort(widths.begin(), widths.end());
  score.width = middle_of(widths);
}

/// Returns the statistics of errors, which become absolute and sorted.
MetricScore metric_score(std::vector<double>& errors) {
  MetricScore score{.rows = errors.size()};
  if (errors.empty()) {
    return score;
  }
  const auto rows = static_cast<double>(errors.size());
  for (double& error : errors) {
    score.bias += error / rows;
    error = std::abs(error);
    score.mape += error / rows;
  }
  std::sort(errors.begin(), errors.end());
  score.median = middle_of(errors);
  return score;
}

}  // namespace

ValidationScore score_of(const std::vector<ValidationRow>& rows) {
  std::vector<double> errors;
  std::vector<double> memory;
  ValidationScore score;
  score_lines(rows, score);
  score_intervals(rows, score);
  std::map<std::string, std::vector<double>> metrics;
  for (const ValidationRow& row : rows) {
    if (!row.scored || !row.problem.empty() || row.verdict) {
      continue;
    }
    if (!row.metric.empty()) {
      metrics[row.metric].push_back(row.error);
    }
    (row.memory && !row.apart ? memory : errors).push_back(row.error);
  }
  for (auto& [metric, its] : metrics) {
    score.metrics[metric] = metric_score(its);
  }
  if (errors.empty()) {
    errors = memory;
  }
  if (!memory.empty()) {
    score.memory_mape = metric_score(memory).mape;
  }
  const MetricScore all = metric_score(errors);
  score.rows = all.rows;
  score.mape = all.mape;
  score.bias = all.bias;
  score.median = all.median;
  if (!errors.empty()) {
    score.p90 = errors[(9 * errors.size() + 9) / 10 - 1];  // nearest rank
    score.worst = errors.back();
  }
  return score;
}

ValidationResult scored(const ValidationProfile& profile, const std::string& csv,
                        const std::string& machine, std::vector<ValidationRow> rows) {
  ValidationResult result{.profile = profile,
                          .csv = csv,
                          .machine = machine,
                          .rows = std::move(rows),
                          .score = {},
                          .groups = {}};
  add_intervals(result.rows);
  std::map<std::string, std::vector<ValidationRow>> groups;
  std::vector<ValidationRow> own;
  for (const ValidationRow& row : result.rows) {
    if (!row.group.empty()) {
      groups[row.group].push_back(row);
    }
    if (!row.apart) {
      own.push_back(row);
    }
  }
  result.score = score_of(own);
  if (!profile.apart.empty()) {  // apart are errors, not whether there is an answer
    const ValidationScore all = score_of(result.rows);
    result.score.lines = all.lines;
    result.score.answered = all.answered;
  }
  for (const auto& [group, its] : groups) {
    result.groups[group] = score_of(its);
  }
  return result;
}

}  // namespace orrery::study
