// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "cases.h"
#include "graph/workload.h"
#include "workload/plan/recompute.h"

namespace orrery::parallel {
namespace {

using cases::collectives;
using cases::each_node;
using cases::kBoundary;
using cases::lowered;
using cases::small_gpt;
using cases::small_llama;
using cases::Tally;
using testing::ElementsAre;
using testing::HasSubstr;

/// Names of what runs again in one backward of one rank, in order.
std::vector<std::string> repeated(const zoo::Model& model, const plan::Plan& plan) {
  const graph::Workload workload = lowered(model, plan, {.skip = {"fuse"}});
  std::vector<std::string> names;
  for (const graph::Node& node : workload.program_of(0).templates[1].nodes) {
    if (node.phase == plan::StepPhase::recompute) {
      names.push_back(node.name);
    }
  }
  return names;
}

zoo::Model small_mixture() {
  zoo::Model model = small_llama(1);
  model.experts = 4;
  model.top_k = 2;
  model.expert.ffn = 96;
  model.kinds = {{.name = "moe", .feed_forward = zoo::FeedForwardKind::experts}};
  model.layout = {0};
  return model;
}

TEST(LowerRecompute, ModulesRunTheirOperatorsAgain) {
  const zoo::Model model = small_gpt(1);
  EXPECT_THAT(repeated(model, {.recompute_modules = "layernorm"}),
              ElementsAre("mlp_norm_again", "input_norm_again"));
  EXPECT_THAT(repeated(model, {.recompute_modules = "mlp"}),
              ElementsAre("fc1_gemm_again", "bias_gelu_again", "fc2_gemm_again"));
  EXPECT_THAT(repeated(model, {.recompute_modules = "bias_gelu"}), ElementsAre("bias_gelu_again"));
  EXPECT_EQ(repeated(model, {.recompute_modules = "core_attn"}),
            repeated(model, {.recompute = plan::Recompute::selective}));
  EXPECT_THAT(repeated(small_mixture(), {.recompute_modules = "moe_act"}),
              ElementsAre("expert_silu_mul_again"));
}

TEST(LowerRecompute, ModulesAddToSelective) {
  const zoo::Model model = small_gpt(1);
  std::vector<std::string> both = repeated(
      model, {.recompute = plan::Recompute::selective, .recompute_modules = " mlp , layernorm"});
  EXPECT_EQ(both.size(), repeated(model, {.recompute = plan::Recompute::selective}).size() + 3 + 2);
}

TEST(LowerRecompute, AModuleRunsAgainWithItsCollectives) {
  // The MLP's all-reduce at tp 2, once per layer.
  const graph::Workload workload = lowered(small_gpt(3), {.tp = 2, .recompute_modules = "mlp"});
  EXPECT_EQ(collectives(workload, 0, plan::Axis::tp, graph::CollectiveKind::all_reduce,
                        plan::StepPhase::recompute),
            (Tally{3, 3 * kBoundary}));
}

TEST(LowerRecompute, ANormRunsAgainBeforeTheWeightGradientThatReadsIt) {
  const graph::Workload workload =
      lowered(small_gpt(1), {.recompute_modules = "layernorm"}, {.skip = {"fuse"}});
  std::vector<std::string> names;
  for (const graph::Node& node : workload.program_of(0).templates[1].nodes) {
    names.push_back(node.name);
  }
  const auto at = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name);
  };
  EXPECT_LT(at("mlp_norm_again"), at("fc1_gemm_weight_gradient"));
  EXPECT_LT(at("bias_gelu_backward"), at("mlp_norm_again"));
  EXPECT_LT(at("input_norm_again"), at("qkv_gemm_weight_gradient"));
}

TEST(LowerRecompute, OnlyTheFirstLayersOfEveryChunk) {
  // 2 stages x 2 chunks of 3 layers: FLOPs of 2/3 of what all layers recompute.
  plan::Plan plan{.pp = 2, .schedule = plan::Schedule::interleaved, .chunks = 2, .global_batch = 2};
  plan.recompute = plan::Recompute::full;
  const zoo::Model model = small_gpt(12);
  const double all = cases::matrix_flops(lowered(model, plan), plan::StepPhase::recompute);
  plan.recompute_layers = 2;
  EXPECT_DOUBLE_EQ(cases::matrix_flops(lowered(model, plan), plan::StepPhase::recompute),
                   all * 2 / 3);
  plan.recompute_layers = 12;  // more than a chunk has
  EXPECT_DOUBLE_EQ(cases::matrix_flops(lowered(model, plan), plan::StepPhase::recompute), all);
}

RC_GTEST_PROP(LowerRecompute, ForwardAndBackwardStayAsTheyAre, ()) {
  cases::Case c = *cases::any_case();
  c.plan.recompute = plan::Recompute::none;
  const graph::Workload plain = lowered(c.model, c.plan);
  c.plan.recompute_modules =
      *rc::gen::element<std::string>("core_attn", "layernorm", "mlp,layernorm", "qkv_gemm");
  c.plan.recompute_layers =
      *rc::gen::inRange<std::int64_t>(0, std::min<std::int64_t>(3, c.model.layers + 1));
  const graph::Workload again = lowered(c.model, c.plan);
  for (const plan::StepPhase phase : {plan::StepPhase::forward, plan::StepPhase::backward}) {
    RC_ASSERT(cases::matrix_flops(plain, phase) == cases::matrix_flops(again, phase));
  }
  RC_ASSERT(cases::matrix_flops(again, plan::StepPhase::recompute) <=
            cases::matrix_flops(again, plan::StepPhase::forward));
}

}  // namespace
}  // namespace orrery::parallel
