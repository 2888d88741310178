// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "base/config_node.h"
#include "cases.h"

namespace orrery::plan {
namespace {

using testing::HasSubstr;
using testing::Not;

Result<Plan> parsed(const std::string& text) {
  const Result<ConfigNode> node = parse_config(text, "plan.yaml", ConfigSyntax::yaml);
  return node ? parse_plan(*node) : Result<Plan>(fail(node.error()));
}

std::string plan_refusal(const Plan& plan, const zoo::Model& model) {
  const Result<void> checked = check(plan, model);
  return checked ? "" : checked.error().to_string();
}

TEST(PlanFile, FieldsKeepTheirDefaultsUnlessGiven) {
  const Result<Plan> plan = parsed("tp: 8\nschedule: interleaved\nbucket: 25 MB\n");
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(*plan, (Plan{.tp = 8, .schedule = Schedule::interleaved, .bucket = Bytes(25'000'000)}));
}

TEST(PlanFile, EveryMistakeIsNamedWithItsLine) {
  const Result<Plan> plan = parsed("tp: eight\nschedul: 1f1b\nzero: true\n");
  ASSERT_FALSE(plan);
  const std::string text = plan.error().to_string();
  EXPECT_THAT(text, HasSubstr("plan.yaml:1: tp"));
  EXPECT_THAT(text, HasSubstr("did you mean 'schedule'"));
  EXPECT_THAT(text, HasSubstr("plan.yaml:3: zero"));
}

RC_GTEST_PROP(PlanFile, SurvivesBeingWritten, ()) {
  Plan plan = (*cases::any_case()).plan;
  plan.stage_layers = *rc::gen::element<std::string>("", "1,2", "a \"quoted\" \\ #text\n");
  plan.bucket = Bytes(*rc::gen::inRange<std::int64_t>(0, 1LL << 40));
  plan.host_dispatch = Time(*rc::gen::inRange<std::int64_t>(0, 1LL << 40));
  const Result<Plan> again = parsed(to_yaml(plan));
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again == plan);
}

TEST(PlanCheck, SaysAllReasonsAtOnce) {
  const std::string reasons = plan_refusal(
      {.tp = 3, .pp = 3, .dp = 2, .chunks = 2, .global_batch = 5, .zero = 3}, cases::small_gpt(4));
  EXPECT_THAT(reasons, HasSubstr("tp: found '3', expected a divisor of 8 attention heads"));
  EXPECT_THAT(reasons, HasSubstr("chunks: found '2', expected 1, or schedule interleaved"));
  EXPECT_THAT(reasons, HasSubstr("pp: found '3', expected stages x chunks that divide 4 layers"));
  EXPECT_THAT(reasons,
              HasSubstr("global_batch: found '5', expected a multiple of dp x microbatch"));
}

TEST(Plan, WhatWouldBePricedWronglyIsRefused) {
  Plan plan;
  plan.compute_type = graph::DataType::fp8;
  plan.dp_algorithm = collective::CollectiveAlgorithm::pairwise;
  const std::string reasons = check(plan, cases::small_gpt(2)).error().to_string();
  EXPECT_THAT(reasons, HasSubstr("compute_type: found 'fp8', expected bf16"));
  EXPECT_THAT(reasons,
              HasSubstr("dp_algorithm: found 'pairwise', expected an algorithm that reduces"));
}

TEST(PlanCheck, RefusesToReplicateKeyValueHeads) {
  EXPECT_THAT(plan_refusal({.tp = 8}, cases::small_llama(2)), HasSubstr("4 key-value heads"));
  EXPECT_EQ(plan_refusal({.tp = 4}, cases::small_llama(2)), "");
}

TEST(PlanCheck, InterleavingNeedsStagesChunksAndWholeGroups) {
  Plan plan{.pp = 2, .schedule = Schedule::interleaved, .chunks = 2, .global_batch = 4};
  const zoo::Model model = cases::small_gpt(4);
  EXPECT_EQ(plan_refusal(plan, model), "");
  plan.global_batch = 3;
  EXPECT_THAT(plan_refusal(plan, model), HasSubstr("multiple of pp = 2"));
  plan = {.schedule = Schedule::interleaved, .global_batch = 4};
  EXPECT_THAT(plan_refusal(plan, model), HasSubstr("pp: found '1', expected 2 or more"));
  EXPECT_THAT(plan_refusal(plan, model), HasSubstr("chunks: found '1', expected 2 or more"));
}

TEST(PlanCheck, SequenceParallelNeedsTensorRanksThatDivideTheTokens) {
  const zoo::Model model = cases::small_gpt(2);
  EXPECT_THAT(plan_refusal({.sequence_parallel = true}, model), HasSubstr("tp of 2 or more"));
  EXPECT_THAT(plan_refusal({.tp = 8, .sequence_parallel = true, .sequence = 100}, model),
              HasSubstr("sequence: found '100', expected a multiple of tp x cp = 8"));
}

TEST(PlanCheck, LearnedPositionsLimitTheSequence) {
  EXPECT_THAT(plan_refusal({.sequence = 129}, cases::small_gpt(2)), HasSubstr("at most 128"));
  EXPECT_EQ(plan_refusal({.sequence = 4096}, cases::small_llama(2)), "");
}

TEST(PlanCheck, StageLayersSumToTheLayers) {
  const zoo::Model model = cases::small_gpt(5);
  const auto with = [&](const char* layers) {
    return plan_refusal({.pp = 3, .global_batch = 3, .stage_layers = layers}, model);
  };
  EXPECT_EQ(with("2, 2, 1"), "");
  EXPECT_EQ(with("0,5,0"), "");
  EXPECT_THAT(with("2,2,2"), HasSubstr("a sum of 5 layers"));
  EXPECT_THAT(with("3,2"), HasSubstr("3 entries"));
  EXPECT_THAT(with("3,0,2"), HasSubstr("no 0 but first or last"));
  EXPECT_THAT(with("3,x,2"), HasSubstr("whole numbers"));
  EXPECT_THAT(with("9223372036854775807,9223372036854775807,7"), HasSubstr("a sum of 5"));
}

TEST(PlanCheck, RefusesDegreesThatOverflow) {
  const std::int64_t most = 1 << 20;
  EXPECT_THAT(plan_refusal({.tp = most, .pp = most, .dp = most}, cases::small_gpt(2)),
              HasSubstr("tp x cp x pp x dp"));
  EXPECT_THAT(plan_refusal({.tp = 0}, cases::small_gpt(2)), HasSubstr("tp: found '0'"));
  EXPECT_NE(plan_refusal({.microbatch = -1}, cases::small_gpt(2)), "");
}

TEST(PlanCheck, WholeParametersAreNotGathered) {
  EXPECT_THAT(plan_refusal({.overlap_param_gather = true}, cases::small_gpt(2)),
              HasSubstr("overlap_param_gather"));
}

TEST(Plan, DevicesOfAnUncheckedPlanSaturate) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  const Plan plan{.tp = kHuge, .pp = kHuge, .dp = 3};
  EXPECT_EQ(plan.devices(), std::numeric_limits<std::int64_t>::max());
  EXPECT_FALSE(check(plan, cases::small_gpt(2)));
}

}  // namespace
}  // namespace orrery::plan
