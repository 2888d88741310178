// SPDX-License-Identifier: Apache-2.0
#include "study/ranking.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/lists.h"
#include "base/reader.h"
#include "base/table_reader.h"

namespace orrery::study {
namespace {

constexpr double kAlike = 0.05;  // published figures that differ by less are in no order

/// Returns the figures of a metric by the line of the file that they are of.
std::map<int, const ValidationRow*> figures_of(const ValidationResult& result,
                                               const std::string& metric) {
  std::map<int, const ValidationRow*> figures;
  for (const ValidationRow& row : result.rows) {
    if (row.metric == metric && row.scored && row.problem.empty()) {
      figures.emplace(row.line, &row);
    }
  }
  return figures;
}

std::string joined(const CsvTable& table, const CsvRow& row,
                   const std::vector<std::string>& columns) {
  const TableReader cells(table);
  return orrery::joined(columns, "\n",
                        [&](const std::string& column) { return cells.text(row, column); });
}

/// A row as a ranking sees it.
struct Ranked {
  std::vector<std::string> respects;
  double published = 0;
  double predicted = 0;
};

/// Returns the one respect in which two rows differ; nothing where they differ in none or several.
std::optional<std::size_t> difference(const Ranked& a, const Ranked& b) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < a.respects.size(); ++i) {
    if (a.respects[i] != b.respects[i]) {
      if (found) {
        return std::nullopt;
      }
      found = i;
    }
  }
  return found;
}

void count_pairs(const std::vector<Ranked>& rows, const Ranking& ranking,
                 ValidationResult& result) {
  for (auto a = rows.begin(); a != rows.end(); ++a) {
    for (auto b = std::next(a); b != rows.end(); ++b) {
      const auto respect = difference(*a, *b);
      const double more = std::max(a->published, b->published);
      if (!respect || more < (1 + kAlike) * std::min(a->published, b->published)) {
        continue;
      }
      RankingScore& score = result.ranking[ranking.by[*respect].name];
      ++score.pairs;
      score.right += (a->published < b->published) == (a->predicted < b->predicted) ? 1 : 0;
    }
  }
}

void rank_rows(const CsvTable& table, const Ranking& ranking, ValidationResult& result) {
  for (const Respect& respect : ranking.by) {
    result.ranking[respect.name] = {};
  }
  const auto figures = figures_of(result, ranking.metric);
  std::map<std::string, std::vector<Ranked>> groups;
  for (const CsvRow& row : table.rows) {
    const auto found = figures.find(row.line);
    if (found == figures.end()) {
      continue;
    }
    Ranked& ranked = groups[joined(table, row, ranking.same)].emplace_back();
    for (const Respect& respect : ranking.by) {
      ranked.respects.push_back(joined(table, row, respect.columns));
    }
    ranked.published = found->second->published;
    ranked.predicted = found->second->predicted;
  }
  for (const auto& [key, rows] : groups) {
    count_pairs(rows, ranking, result);
  }
}

/// A row as a choice sees it, once as published and once as predicted.
struct Choice {
  double published = 0;
  double predicted = 0;
  double published_rate = 0;
  double predicted_rate = 0;
};

/// Adds what is chosen of a group under a limit, of which a share is left free.
void choose(const std::vector<Choice>& options, double limit, double spare, RegretScore& score) {
  const Choice* chosen = nullptr;
  double best = 0;
  for (const Choice& option : options) {
    if (option.predicted <= limit * (1 - spare) &&
        (chosen == nullptr || option.predicted_rate > chosen->predicted_rate)) {
      chosen = &option;
    }
    best = option.published <= limit ? std::max(best, option.published_rate) : best;
  }
  if (options.size() < 2 || chosen == nullptr || best == 0) {
    return;
  }
  ++score.groups;
  if (chosen->published > limit) {
    ++score.broken;
  } else {
    score.loss += 1 - chosen->published_rate / best;
  }
}

void measure_regret(const CsvTable& table, const Regret& regret, ValidationResult& result) {
  const auto limited = figures_of(result, regret.metric);
  const auto first = figures_of(result, regret.ttft);
  const TableReader cells(table);
  std::map<std::string, std::vector<Choice>> groups;
  for (const CsvRow& row : table.rows) {
    const auto its = limited.find(row.line);
    const auto ttft = first.find(row.line);
    const auto seats = parse_number(cells.text(row, regret.seats));
    const auto tokens = parse_number(cells.text(row, regret.tokens));
    if (its == limited.end() || ttft == first.end() || !seats || !tokens) {
      continue;
    }
    const auto rate = [&](double per_token, double until_first) {
      return *seats * *tokens / (until_first + (*tokens - 1) * per_token) /
             static_cast<double>(std::max<std::int64_t>(1, its->second->devices));
    };
    groups[joined(table, row, regret.within)].push_back(
        {.published = its->second->published,
         .predicted = its->second->predicted,
         .published_rate = rate(its->second->published, ttft->second->published),
         .predicted_rate = rate(its->second->predicted, ttft->second->predicted)});
  }
  for (const double limit : regret.limits) {
    RegretScore& score = result.regret[limit];
    for (const auto& [key, options] : groups) {
      choose(options, limit, regret.spare, score);
    }
    const std::size_t kept = score.groups - score.broken;
    score.loss = kept > 0 ? score.loss / static_cast<double>(kept) : 0;
  }
}

}  // namespace

void compare_rows(const CsvTable& table, ValidationResult& result) {
  if (const auto ranking = result.profile.ranking) {
    rank_rows(table, *ranking, result);
  }
  if (const auto regret = result.profile.regret) {
    measure_regret(table, *regret, result);
  }
}

}  // namespace orrery::study
