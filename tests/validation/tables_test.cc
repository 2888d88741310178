// SPDX-License-Identifier: Apache-2.0
/// Published results: every shipped table keeps its bound, at or near the goal of its profile
/// (configs/validation/*.yaml).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

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
                    Goal{"korthikanti2022_memory", 36, 0.08}, Goal{"vtrain_a100_multi", 56, 0.06},
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

/// Layers and milliseconds of the rows of vtrain_a100_single that differ in nothing else, dp 1.
std::map<std::string, std::vector<std::pair<double, double>>> single_node_rows_by_layers() {
  const CsvTable table = load_csv(study::load_profile("vtrain_a100_single").value().csv).value();
  const std::size_t layers = *table.column("layers");
  const std::size_t time = *table.column("iteration_ms");
  const std::size_t dp = *table.column("dp");
  std::map<std::string, std::vector<std::pair<double, double>>> groups;
  for (const CsvRow& row : table.rows) {
    if (row.cells[dp] != "1") {
      continue;
    }
    std::string key;
    for (const char* column :
         {"n_gpus", "tp", "pp", "global_batch", "micro_batch", "hidden", "heads", "seq"}) {
      key += std::string(row.cells[*table.column(column)]) + " ";
    }
    groups[key].emplace_back(parse_number(row.cells[layers]).value(),
                             parse_number(row.cells[time]).value());
  }
  return groups;
}

TEST(VtrainSingleNode, RowsAreComposedOfEqualLayersAndNoMeasurements) {
  // Three numbers of layers lie on a line to the last digit published (1e-6 ms), as the profile's
  // notes say; a setting that was measured twice (vtrain_a100_multi) differs by 0.05 %.
  int lines = 0;
  for (auto& [key, rows] : single_node_rows_by_layers()) {
    std::sort(rows.begin(), rows.end());
    const auto [layers, time] = rows.front();
    for (std::size_t i = 2; i < rows.size(); ++i) {
      const double of_second = (rows[1].second - time) * (rows[i].first - layers);
      const double of_third = (rows[i].second - time) * (rows[1].first - layers);
      EXPECT_NEAR(of_second, of_third, 1e-9) << key;
      ++lines;
    }
  }
  EXPECT_EQ(lines, 47);  // of 133 rows
}

}  // namespace
}  // namespace orrery
