// SPDX-License-Identifier: Apache-2.0
/// Published tables of serving against what they should be predicted within. Nothing is fitted to
/// them (configs/validation).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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

/// Absolute errors of the rows whose names contain all of these.
std::vector<double> errors_of(const study::ValidationResult& result,
                              std::initializer_list<std::string_view> parts) {
  std::vector<double> errors;
  for (const study::ValidationRow& row : result.rows) {
    const bool named = std::all_of(parts.begin(), parts.end(), [&](std::string_view part) {
      return row.key.find(part) != std::string::npos;
    });
    if (named) {
      EXPECT_EQ(row.problem, "");
      errors.push_back(std::abs(row.error));
    }
  }
  std::sort(errors.begin(), errors.end());
  return errors;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return sum / static_cast<double>(values.size());
}

TEST(ServedGoals, SlowThroughputOfTensorRtLlm) {
  const study::ValidationResult result = table_of("trtllm_v1_throughput");
  const auto dense8 = errors_of(result, {"model=Llama-3.", "precision=FP8"});
  const auto dense4 = errors_of(result, {"model=Llama-3.", "precision=FP4"});
  auto experts = errors_of(result, {"model=Qwen3-"});
  const auto maverick = errors_of(result, {"model=Llama-4-"});
  experts.insert(experts.end(), maverick.begin(), maverick.end());
  std::sort(experts.begin(), experts.end());
  ASSERT_EQ(dense8.size() + dense4.size() + experts.size(), result.rows.size());
  fmt::print("dense fp8 {:.1f} %, fp4 {:.1f} %, experts' median {:.1f} %\n", 100 * mean(dense8),
             100 * mean(dense4), 100 * experts[experts.size() / 2]);
  EXPECT_LE(mean(dense8), 0.12);
  EXPECT_LE(mean(dense4), 0.20);
  EXPECT_LE(experts[experts.size() / 2], 0.30);
}

}  // namespace
}  // namespace orrery::served
