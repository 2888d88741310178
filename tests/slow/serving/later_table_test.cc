// SPDX-License-Identifier: Apache-2.0
/// A later table of TensorRT-LLM, with whose rows nothing was chosen but the memory of experts'
/// rows (docs/models/serving.md).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "study/served/table.h"

namespace orrery::served {
namespace {

TEST(ServedGoals, ThroughputOfALaterTensorRtLlm) {
  const study::ValidationProfile profile = study::load_profile("trtllm_v1_1_throughput").value();
  const study::ValidationResult result =
      validate_serving(profile, load_csv(profile.csv).value(), {}).value();
  std::vector<double> dense;
  std::vector<double> experts;
  for (const study::ValidationRow& row : result.rows) {
    EXPECT_EQ(row.problem, "");
    const bool is_dense = row.key.find("model=Llama-3.") != std::string::npos;
    (is_dense ? dense : experts).push_back(std::abs(row.error));
  }
  ASSERT_EQ(dense.size() + experts.size(), 79U);
  std::sort(experts.begin(), experts.end());
  const double mean =
      std::accumulate(dense.begin(), dense.end(), 0.0) / static_cast<double>(dense.size());
  const double median = experts[experts.size() / 2];
  fmt::print("dense {:.1f} %, experts' median {:.1f} %\n", 100 * mean, 100 * median);
  EXPECT_LE(mean, 0.12);
  EXPECT_LE(median, 0.12);
}

}  // namespace
}  // namespace orrery::served
