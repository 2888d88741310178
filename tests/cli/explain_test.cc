// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kExplainedStep =
    "--model gpt2 --machine dgx-a100-80g --tp 2 --dp 2 --global-batch 8 --as-of 2021 --no-next";

TEST(ExplainCommand, CategoriesAndItemsSumToTheStepTime) {
  const Outcome run = orrery(std::string("explain --json ") + kExplainedStep);
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  const double step = json.at("step_time_s");
  for (const char* list : {"categories", "items"}) {
    double time = 0;
    double share = 0;
    for (const auto& entry : json.at("path").at(list)) {
      time += entry.at("time_s").get<double>();
      share += entry.at("share").get<double>();
    }
    EXPECT_NEAR(time, step, 1e-9 * step) << list;
    EXPECT_NEAR(share, 1, 1e-9) << list;
  }
  EXPECT_TRUE(json.at("next_bottleneck").is_null());
}

TEST(ExplainCommand, ResourcesAreSortedByEffect) {
  const Outcome run = orrery(std::string("explain --json ") + kExplainedStep);
  const auto rows = nlohmann::json::parse(run.out).at("sensitivity");
  ASSERT_GT(rows.size(), 3U);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    EXPECT_LE(rows[i - 1].at("change"), rows[i].at("change"));
  }
  EXPECT_EQ(rows[0].at("resource"), "hbm bandwidth");
  EXPECT_EQ(rows[0].at("change_of_resource"), 0.1);
}

TEST(ExplainCommand, TheTableNamesTheBottleneckAndFits) {
  const Outcome run = orrery(std::string("explain --items 3 ") + kExplainedStep);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Bottleneck: hbm bandwidth"));
  EXPECT_THAT(run.out, HasSubstr("more; --items)"));
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST(ExplainCommand, EveryMistakeIsNamedAndNothingIsPrinted) {
  const Outcome run = orrery("explain --model gpt9 --items none --threads 0 --tp two");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.out, IsEmpty());
  for (const char* flag : {"--model", "--machine", "--items", "--threads", "--tp"}) {
    EXPECT_THAT(run.err, HasSubstr(flag));
  }
}

}  // namespace
}  // namespace orrery::testing
