// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/framework.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "workload/plan/data_axes.h"
#include "workload/plan/defaults.h"
#include "workload/plan/plan_lists.h"

namespace orrery::plan {
namespace {

using ::testing::HasSubstr;

PlacedPlan placed(const std::string& framework) {
  PlacedPlan result;
  result.plan.framework = framework;
  result.places["framework"] = "--framework";
  return result;
}

TEST(Frameworks, EveryShippedFileReads) {
  const auto names = list_configs("frameworks");
  EXPECT_GE(names.size(), 8U);
  for (const std::string& name : names) {
    const auto fields = framework_fields(name);
    EXPECT_TRUE(fields) << (fields ? "" : fields.error().to_string());
    EXPECT_TRUE(framework_description(name));
  }
}

TEST(Frameworks, FillWhatIsOpenAndNothingElse) {
  PlacedPlan open = placed("torchtitan");
  open.plan.zero = 2;
  open.places["zero"] = "--zero";
  apply_framework(open);
  EXPECT_EQ(open.plan.zero, 2);
  EXPECT_TRUE(open.plan.master_params);
  EXPECT_EQ(open.places.at("autograd"), "framework torchtitan");
  EXPECT_EQ(complete(placed("torchtitan"), nullptr, nullptr, 8).zero,
            3);  // no default wins over it
}

TEST(Frameworks, LaterReleasesAddToEarlierOnes) {
  const std::string file = testing::TempDir() + "made.yaml";
  ASSERT_TRUE(write_file(file,
                         "name: made\ndescription: d\nplan: {zero: 1}\nwhy: {zero: s, bucket: s}\n"
                         "releases:\n  - {from: \"2024-06\", plan: {zero: 2}}\n"
                         "  - {from: \"2025-01\", plan: {bucket: 1 MB}}\n"));
  const auto zero = [&](const std::string& release) {
    PlacedPlan open = placed(file + release);
    apply_framework(open);
    return std::pair(open.plan.zero, open.plan.bucket);
  };
  EXPECT_EQ(zero("@2024-05"), std::pair(std::int64_t{1}, Bytes(0)));
  EXPECT_EQ(zero("@2024-12"), std::pair(std::int64_t{2}, Bytes(0)));
  EXPECT_EQ(zero(""), std::pair(std::int64_t{2}, Bytes(1'000'000)));
}

TEST(Frameworks, AYearChoosesReleases) {
  const std::string file = testing::TempDir() + "dated.yaml";
  ASSERT_TRUE(write_file(file,
                         "name: dated\ndescription: d\nplan: {zero: 1}\nwhy: {zero: s}\n"
                         "releases:\n  - {from: \"0.7\", year: 2024, plan: {zero: 2}}\n"
                         "  - {from: \"25.09\", plan: {zero: 3}}\n"));
  const auto zero = [&](const std::string& release, std::int64_t year) {
    PlacedPlan open = placed(file + release);
    open.plan.as_of = year;
    apply_framework(open);
    return open.plan.zero;
  };
  EXPECT_EQ(zero("", 2023), 1);
  EXPECT_EQ(zero("", 2024), 2);
  EXPECT_EQ(zero("", 2025), 3);
  EXPECT_EQ(zero("", 0), 3);
  EXPECT_EQ(zero("@0.7", 2023), 2);  // a release that is named wins over the year
  const std::string bad = testing::TempDir() + "undated.yaml";
  ASSERT_TRUE(write_file(bad,
                         "name: undated\ndescription: d\nplan: {zero: 1}\nwhy: {zero: s}\n"
                         "releases:\n  - {from: \"0.7\", plan: {zero: 2}}\n"));
  const auto read = framework_fields(bad);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().to_string(), HasSubstr("the year in which the release came out"));
}

TEST(Frameworks, FusedUpdatesBecomeTheDefaultWithReleases) {
  const auto rule = [](const std::string& framework) {
    PlacedPlan open = placed(framework);
    apply_framework(open);
    return open.plan.optimizer;
  };
  EXPECT_EQ(rule("torchtitan@2024-12"), Optimizer::adam_foreach);
  EXPECT_EQ(rule("torchtitan@2025-03"), Optimizer::adam);
  EXPECT_EQ(rule("hf@4.53"), Optimizer::adam_foreach);
  EXPECT_EQ(rule("hf"), Optimizer::adam);
  EXPECT_EQ(rule("deepspeed"), Optimizer::adam);  // its FusedAdam
}

TEST(Frameworks, TheTritonKernelOfLlmFoundryEndsIn2023) {
  PlacedPlan open = placed("llm-foundry");
  open.plan.as_of = 2023;
  apply_framework(open);
  EXPECT_EQ(open.plan.attention, zoo::AttentionKernel::triton);
  open = placed("llm-foundry");
  apply_framework(open);
  EXPECT_EQ(open.plan.attention, zoo::AttentionKernel::flash2);
}

TEST(Frameworks, MistakesNameWhatIsWrong) {
  const std::string file = testing::TempDir() + "wrong.yaml";
  ASSERT_TRUE(write_file(
      file, "name: wrong\ndescription: d\nplan: {zero: many, tpp: 1, dp: 2}\nwhy: {zero: s}\n"));
  const auto read = framework_fields(file);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().to_string(), HasSubstr("many"));
  EXPECT_THAT(read.error().to_string(), HasSubstr("tpp"));
  EXPECT_THAT(read.error().to_string(), HasSubstr("why.dp"));
  Plan plan;
  plan.framework = "megatrom";
  ASSERT_FALSE(check_texts(plan));
  EXPECT_THAT(check_texts(plan).error().to_string(), HasSubstr("did you mean 'megatron'"));
  plan.framework = "megatron@new";
  EXPECT_THAT(check_texts(plan).error().to_string(), HasSubstr("a release of numbers"));
}

TEST(Frameworks, BucketsOfMegatronGrowWithItsRanks) {
  // max(40 M, 1 M x ranks) parameters of 4 bytes: 160 MB up to 40 ranks, 512 MB of 128.
  PlacedPlan open = placed("megatron");
  apply_framework(open);
  EXPECT_EQ(bucket_size(open.plan), Bytes(160'000'000));
  open.plan.dp = 64;
  open.plan.cp = 2;
  EXPECT_EQ(bucket_size(open.plan), Bytes(512'000'000));
}

}  // namespace
}  // namespace orrery::plan
