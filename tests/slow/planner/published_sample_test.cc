// SPDX-License-Identifier: Apache-2.0
// Published recipes are never faster than the best plan found for their work: of each table some
// rows, spread over it. `orrery plan --table NAME` lists all.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/csv.h"
#include "planner/full/published.h"

namespace orrery::full {
namespace {

constexpr std::size_t kRowsOfTable = 3;

class PublishedSample : public ::testing::TestWithParam<const char*> {};

TEST_P(PublishedSample, IsNotFasterThanTheBestFound) {
  const auto profile = study::load_profile(GetParam());
  ASSERT_TRUE(profile) << profile.error().to_string();
  const auto rows = load_csv(profile->csv);
  ASSERT_TRUE(rows) << rows.error().to_string();
  const auto runs = study::published_runs(*profile, *rows);
  ASSERT_TRUE(runs) << runs.error().to_string();
  PublishedPlans plans({.most_estimates = 60, .most_simulations = 8});
  const std::size_t step = std::max<std::size_t>(1, runs->size() / kRowsOfTable);
  for (std::size_t i = step / 2; i < runs->size(); i += step) {
    const PublishedComparison row = plans.compare((*runs)[i]);
    SCOPED_TRACE(row.key);
    EXPECT_EQ(row.refused, "");
    if (row.compared() && row.fits) {
      fmt::print("{} {}: {:.3f} times as fast\n", GetParam(), row.key, row.gain());
      EXPECT_GE(row.gain(), 1) << plan::to_yaml(row.plan);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, PublishedSample,
                         ::testing::Values("training_mlperf", "training_frameworks",
                                           "training_megatron_bridge_releases"));

}  // namespace
}  // namespace orrery::full
