// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rank/ranking.h"

namespace orrery::report {

/// A RankingReport is a ranking with what it was asked with.
struct RankingReport {
  rank::Ranking ranking;
  rank::Step step;
  rank::RankingOptions options;
  std::string machine{};  ///< "": no prices
};

/// Members seeds, samples, machine, batch, devices; `architectures`: name, each proxy and its
/// half_width over the seeds (gradsign_sum, gradsign_sum_95 ...), mean_rank, accuracy, trained,
/// step_time_s, memory_bytes, energy_j, pareto; `correlations`: proxy, with, networks, and
/// spearman, kendall, partial_spearman, each with _95; `pareto`: names, the best mean rank first.
std::string ranking_json(const RankingReport& report);
std::string ranking_table(const RankingReport& report);
/// Mean rank over step time, or over parameters without a machine; names beside the Pareto list.
std::string ranking_plot(const RankingReport& report);

}  // namespace orrery::report
