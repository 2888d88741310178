// SPDX-License-Identifier: Apache-2.0
#include "study/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::study {
namespace {

using testing::HasSubstr;

std::vector<Setting> shape() {
  return {{"layers", "2", "f:1"},
          {"hidden", "64", "f:1"},
          {"heads", "4", "f:1"},
          {"vocab", "512", "f:1"},
          {"sequence", "128", "f:1"}};
}

TEST(Settings, DescribeModelAndPlanAndTheLastOneWins) {
  std::vector<Setting> settings = shape();
  settings.push_back({"tp", "2", "f:2"});
  settings.push_back({"tp", "4", "--tp"});
  settings.push_back({"host_dispatch", "3 us", "f:2"});
  const auto run = make_case(settings);
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(run->plan.tp, 4);
  EXPECT_EQ(run->plan.host_dispatch, 3_us);
  EXPECT_EQ(run->model()->layers, 2);
  EXPECT_EQ(run->model()->ffn, 4 * 64);
  EXPECT_EQ(run->model()->max_positions, 128);
}

TEST(Settings, ChunksDecideTheScheduleUnlessItIsSet) {
  std::vector<Setting> settings = shape();
  EXPECT_EQ(make_case(settings)->plan.schedule, plan::Schedule::one_f_one_b);
  settings.push_back({"chunks", "3", ""});
  EXPECT_EQ(make_case(settings)->plan.schedule, plan::Schedule::interleaved);
  settings.push_back({"schedule", "gpipe", ""});
  EXPECT_EQ(make_case(settings)->plan.schedule, plan::Schedule::gpipe);
}

TEST(Settings, EveryMistakeNamesItsPlace) {
  std::vector<Setting> settings = shape();
  settings.push_back({"heds", "4", "f:3"});
  settings.push_back({"recompute", "ful", "f:4"});
  settings.push_back({"tp", "1.5", "--tp"});
  const auto run = make_case(settings);
  ASSERT_FALSE(run);
  const std::string text = run.error().to_string();
  EXPECT_EQ(run.error().mistakes.size(), 3U);
  EXPECT_THAT(text, HasSubstr("did you mean 'heads'?"));
  EXPECT_THAT(text, HasSubstr("f:4"));
  EXPECT_THAT(text, HasSubstr("--tp"));
}

TEST(Settings, ShapesThatAreNoModelAreRefused) {
  for (const Setting& bad :
       {Setting{"heads", "5", ""}, Setting{"hidden", "0", ""}, Setting{"layers", "-1", ""},
        Setting{"vocab", "99999999999", ""}, Setting{"hidden", "16777216", ""}}) {
    std::vector<Setting> settings = shape();
    if (bad.value == "16777216") {
      settings.push_back({"layers", "65536", ""});  // 12 L H^2 = 2 x 10^20 parameters
    }
    settings.push_back(bad);
    EXPECT_FALSE(make_case(settings)) << bad.field << " " << bad.value;
  }
}

}  // namespace
}  // namespace orrery::study
