// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rank/ranking.h"
#include "report/fields.h"

namespace orrery::report {

/// A RankingReport is a ranking with what it was asked with.
struct RankingReport {
  rank::Ranking ranking;
  rank::Step step;
  rank::RankingOptions options;
  std::string machine{};  ///< "": no prices
};

/// Declares docs/schema/rank.json.
void declare(const RankingReport& report, Fields& fields);
std::string ranking_table(const RankingReport& report);
/// Returns a plot of the mean rank over step time, or over parameters without a machine; names
/// beside the Pareto list.
std::string ranking_plot(const RankingReport& report);

}  // namespace orrery::report
