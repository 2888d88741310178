// SPDX-License-Identifier: Apache-2.0
/// Published results: every shipped table keeps its bound, at or near the goal of its profile
/// (configs/validation/*.yaml).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "study/validate.h"

namespace orrery {
namespace {

Result<study::ValidationResult> shipped(const std::string& name) {
  return study::load_profile(name).and_then([](const study::ValidationProfile& profile) {
    return load_csv(profile.csv).and_then([&](const CsvTable& table) {
      return study::validate(profile, table);
    });
  });
}

struct Goal {
  const char* table;
  std::size_t rows;  ///< scored
  double goal;
};

class PublishedTable : public testing::TestWithParam<Goal> {};

TEST_P(PublishedTable, MeanAbsoluteErrorIsWithinItsGoal) {
  const auto result = shipped(GetParam().table);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->score.rows, GetParam().rows);
  EXPECT_LE(result->profile.goal.value_or(1), GetParam().goal);
  EXPECT_LE(result->score.mape, GetParam().goal);
  for (const study::ValidationRow& row : result->rows) {
    EXPECT_EQ(row.problem, "") << row.key;
  }
}

// 576 rows of one node, 95 of which have tp = pp = 1 and serve the fit of the host's time.
INSTANTIATE_TEST_SUITE_P(
    All, PublishedTable,
    testing::Values(Goal{"megatron_sc21_table1", 10, 0.04}, Goal{"korthikanti2022_table5", 8, 0.03},
                    Goal{"korthikanti2022_memory", 36, 0.08}, Goal{"vtrain_a100_multi", 56, 0.08},
                    Goal{"vtrain_a100_single", 481, 0.08}, Goal{"nemo_2407_h100_fp8", 9, 0.08},
                    Goal{"megatron_core_h100_2024", 4, 0.08}));

TEST(MtNlg, IsReportedWithoutAGoal) {
  const auto result = shipped("mt_nlg_530b");
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_FALSE(result->profile.goal.has_value());
  EXPECT_EQ(result->score.rows, 3U);
}

TEST(AllTables, StateThePublishedHostDispatchOrTheOneOfKernelTablesAndOneIsFitted) {
  // H100: published. A100: eager calls of 44.8 us where H100's take 21.3, 2.1 times the 13.48 us
  // published, 28. One table has a figure fitted to rows that leave its score.
  EXPECT_EQ(std::lround(13.48 * 44.8 / 21.3), 28);
  std::string fitted;
  for (const std::string& name : list_configs("validation")) {
    const auto profile = study::load_profile(name);
    ASSERT_TRUE(profile);
    for (const study::Setting& setting : profile->plan) {
      if (setting.field != "host_dispatch") {
        continue;
      }
      const auto why =
          std::find_if(profile->why.begin(), profile->why.end(),
                       [](const auto& reason) { return reason.field == "host_dispatch"; });
      ASSERT_NE(why, profile->why.end()) << name;
      if (why->text.find("fitted to the rows of vtrain_a100_single") != std::string::npos) {
        EXPECT_EQ(name, "vtrain_a100_single");
        fitted = setting.value;
      } else if (why->text.find("derived: an eager call") != std::string::npos) {
        EXPECT_EQ(setting.value, "28 us") << name;
        EXPECT_NE(why->text.find("44.8 us on the A100 machine"), std::string::npos) << name;
      } else {
        EXPECT_EQ(setting.value, "13.5 us") << name;  // NVIDIA/TransformerEngine issue 2053: 13.48
        EXPECT_NE(why->text.find("13.48 us (NVIDIA/TransformerEngine issue 2053)"),
                  std::string::npos)
            << name;
      }
    }
  }
  EXPECT_FALSE(fitted.empty());
}

}  // namespace
}  // namespace orrery
