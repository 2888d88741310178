// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(PlanCommand, TheSavedPlanSimulatesAsItSays) {
  const Folder folder;
  const std::string file = folder / "best.yaml";
  const std::string step = " --model gpt2 --machine dgx-a100-80g --devices 8 ";
  const Outcome run = orrery("plan" + step + "--batch 32 --top 2 --json --save " + file);
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  ASSERT_EQ(json.at("top").size(), 2U);
  EXPECT_LE(json.at("bound_s"), json.at("best").at("step_time_s"));
  const Outcome again = orrery("simulate" + step + "--json --plan " + file);
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(nlohmann::json::parse(again.out).at("step_time_s"), json.at("best").at("step_time_s"));
}

TEST(PlanCommand, AnEstimateIsNearItsSimulation) {
  const Outcome estimated = orrery(
      "estimate --model gpt2 --machine dgx-a100-80g --tp 2 --pp 2 --dp 2 --global-batch 16 --json");
  const Outcome simulated = orrery(
      "simulate --model gpt2 --machine dgx-a100-80g --tp 2 --pp 2 --dp 2 --global-batch 16 --json");
  ASSERT_EQ(estimated.status + simulated.status, 0) << estimated.err << simulated.err;
  const auto estimate = nlohmann::json::parse(estimated.out);
  const double truth = nlohmann::json::parse(simulated.out).at("step_time_s");
  EXPECT_NEAR(estimate.at("step_time_s"), truth, 0.01 * truth);
  EXPECT_LE(estimate.at("lower_bound_s"), truth);
  EXPECT_TRUE(estimate.at("fits"));
}

TEST(PlanCommand, EveryMistakeIsNamed) {
  const Outcome run = orrery(
      "plan --model gpt2 --machine dgx-a100-80g --only zeroo=1 --fix tp --reserve x --max-memory "
      "1GiB");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("--devices"), HasSubstr("--batch"), HasSubstr("--reserve"),
                             HasSubstr("--fix: found 'tp'")));
}

}  // namespace
}  // namespace orrery::testing
