// SPDX-License-Identifier: Apache-2.0
/// Published tables of serving against what they should be predicted within. Nothing is fitted to
/// them (configs/validation).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "study/served/table.h"

namespace orrery::served {
namespace {

study::ValidationResult table_of(const char* name) {
  const study::ValidationProfile profile = study::load_profile(name).value();
  return validate_serving(profile, load_csv(profile.csv).value(), {}).value();
}

TEST(ServedGoals, StagesOfVllmOnH100) {
  const study::ValidationResult result = table_of("vllm_h100_inference_perf");
  for (const auto& [metric, goal] :
       {std::pair{"tpot_ms", 0.07}, {"latency_s", 0.07}, {"ttft_s", 0.20}}) {
    const study::ValidationScore& score = result.groups.at(metric);
    fmt::print("{:<10} {:5.1f} %\n", metric, 100 * score.mape);
    EXPECT_EQ(score.rows, 16U);
    EXPECT_LE(score.mape, goal) << metric;
  }
}

/// Returns the absolute errors, sorted, of a table's rows of dense models or of experts, in one
/// precision or, where it is empty, in all.
std::vector<double> errors_of(const char* name, bool dense, std::string_view precision) {
  const study::ValidationProfile profile = study::load_profile(name).value();
  CsvTable table = load_csv(profile.csv).value();
  std::erase_if(table.rows, [&](const CsvRow& row) {
    const std::string_view model = row.cells[*table.column("model")];
    const std::string_view format = row.cells[*table.column("precision")];
    return model.starts_with("Llama-3.") != dense || (!precision.empty() && format != precision);
  });
  std::vector<double> errors;
  for (const study::ValidationRow& row : validate_serving(profile, table, {}).value().rows) {
    EXPECT_EQ(row.problem, "");
    errors.push_back(std::abs(row.error));
  }
  std::sort(errors.begin(), errors.end());
  fmt::print("{} rows, median {:.1f} %\n", errors.size(),
             errors.empty() ? 0 : 100 * errors[errors.size() / 2]);
  return errors;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
double median(const std::vector<double>& sorted) {
  return sorted[sorted.size() / 2];
}

TEST(ServedGoals, SlowDenseModelsInEightBitsOfTensorRtLlm) {
  const auto errors = errors_of("trtllm_v1_throughput", true, "FP8");
  EXPECT_EQ(errors.size(), 30U);
  EXPECT_LE(mean(errors), 0.12);
}

TEST(ServedGoals, SlowDenseModelsInFourBitsOfTensorRtLlm) {
  const auto errors = errors_of("trtllm_v1_throughput", true, "FP4");
  EXPECT_EQ(errors.size(), 20U);
  EXPECT_LE(mean(errors), 0.20);
}

TEST(ServedGoals, SlowExpertsOfTensorRtLlm) {
  const auto errors = errors_of("trtllm_v1_throughput", false, "");
  EXPECT_EQ(errors.size(), 36U);
  EXPECT_LE(median(errors), 0.30);
}

/// A later table, with whose rows nothing was chosen but the memory of experts' rows
/// (docs/models/serving.md).
TEST(ServedGoals, SlowDenseModelsOfALaterTensorRtLlm) {
  const auto errors = errors_of("trtllm_v1_1_throughput", true, "");
  EXPECT_EQ(errors.size(), 17U);
  EXPECT_LE(mean(errors), 0.12);
}

TEST(ServedGoals, SlowExpertsOfALaterTensorRtLlm) {
  const auto errors = errors_of("trtllm_v1_1_throughput", false, "");
  EXPECT_EQ(errors.size(), 62U);
  EXPECT_LE(median(errors), 0.12);
}

}  // namespace
}  // namespace orrery::served
