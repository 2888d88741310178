// SPDX-License-Identifier: Apache-2.0
// The mini-benchmark: 70 cells in the style of NAS-Bench-201, scored untrained and then trained.
#include <gtest/gtest.h>

#include "neural/read_network.h"
#include "rank/ranking.h"

namespace orrery::rank {
namespace {

TEST(SlowRank, SeventyCellsAreTrainedAndTheProxiesJudged) {
  const auto networks = parse_config(
                            "{name: cells, input: [3, 8, 8], classes: 10, stages: [8, 16], "
                            "count: 70, seed: 1}",
                            "cells.yaml", ConfigSyntax::yaml)
                            .and_then(neural::read_networks)
                            .value();
  const Ranking ranking =
      rank_networks(networks, {}, nullptr, {}, {.samples = 64, .seeds = 3, .train = 5}).value();
  double least = 1;
  double most = 0;
  for (const Ranked& one : ranking.networks) {
    least = std::min(least, *one.accuracy);
    most = std::max(most, *one.accuracy);
  }
  EXPECT_LT(least, 0.25);  // cut cells guess: 1 of 10
  EXPECT_GT(most, 0.7);
  for (const Correlation& row : ranking.correlations) {
    if (row.with == "accuracy") {
      printf("%-20s Spearman %.2f  Kendall %.2f  given parameters %.2f\n",
             std::string(name_of(row.proxy)).c_str(), row.spearman->value, row.kendall->value,
             row.partial ? row.partial->value : 0);
    }
    // Published for another set of such cells: GradSign sum .40. A proxy that works is positive.
    if (row.with == "accuracy" && row.proxy == Proxy::gradsign_sum) {
      EXPECT_GT(row.spearman->value, 0.1);
      EXPECT_GT(row.partial->value, 0.3);
    }
  }
}

}  // namespace
}  // namespace orrery::rank
