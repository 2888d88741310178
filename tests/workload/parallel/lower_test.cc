// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "cases.h"

namespace orrery::parallel {
namespace {

using cases::each_node;
using cases::lowered;
using cases::small_gpt;
using testing::HasSubstr;

// ---- The driver.

TEST(Lower, ObservesEveryPassInOrder) {
  std::vector<std::string> seen;
  const LowerOptions options{
      .observe = [&](const std::string& pass, const graph::Workload&) { seen.push_back(pass); }};
  lowered(small_gpt(2), {.tp = 2, .pp = 2, .dp = 2, .global_batch = 4}, options);
  std::vector<std::string> names;
  for (const PassName& pass : lowering_passes()) {
    names.push_back(pass.name);
  }
  EXPECT_EQ(seen, names);
}

TEST(Lower, SkippedPassesLeaveTheirWorkOut) {
  const graph::Workload workload =
      lowered(small_gpt(2), {.dp = 2, .global_batch = 2}, {.skip = {"gradients", "optimizer"}});
  each_node(workload, 0, [](const graph::Node& node) {
    EXPECT_NE(node.kind, graph::Node::Kind::collective);
    EXPECT_TRUE(node.operators.empty() || node.phase != plan::StepPhase::optimizer);
  });
}

TEST(Lower, RefusesUnknownAndRequiredPasses) {
  const auto skipping = [](const char* pass) {
    return lower(small_gpt(2), {}, {.skip = {pass}}).error().to_string();
  };
  EXPECT_THAT(skipping("fusee"), HasSubstr("did you mean 'fuse'?"));
  EXPECT_THAT(skipping("pipeline"), HasSubstr("every later one builds on this"));
}

TEST(Lower, PassesOverWorkloadsRunWithoutAPlan) {
  const graph::Workload whole = lowered(small_gpt(2), {}, {.skip = {"fuse"}});
  const auto kernels = [](const graph::Workload& workload) {
    return workload.programs[0].templates[0].nodes.size();
  };
  graph::Workload fused = transform(whole, {});
  EXPECT_LT(kernels(fused), kernels(whole));
  EXPECT_EQ(fused.programs[0].templates, lowered(small_gpt(2), {}).programs[0].templates);
  graph::Workload as_ready = whole;
  as_ready.streams[*graph::kComputeStream].order = graph::Order::readiness;
  EXPECT_EQ(kernels(transform(as_ready, {})), kernels(whole));
}

TEST(Lower, NothingJoinsAKernelThatTheHostWaitsFor) {
  graph::Workload workload = lowered(small_gpt(2), {}, {.skip = {"fuse"}});
  const auto waits = [](const graph::Node& node) { return node.host_sync; };
  std::vector<graph::Node>& nodes = workload.programs[0].templates[0].nodes;
  const auto awaited = std::find_if(nodes.begin(), nodes.end(), [](const graph::Node& node) {
    return node.name.find("qkv_gemm") != std::string::npos;
  });
  ASSERT_NE(awaited, nodes.end());
  awaited->host_sync = true;
  const std::vector<graph::Operator> alone = awaited->operators;
  const graph::Workload fused = transform(std::move(workload), {});
  const std::vector<graph::Node>& after = fused.programs[0].templates[0].nodes;
  const auto found = std::find_if(after.begin(), after.end(), waits);
  ASSERT_NE(found, after.end());
  EXPECT_EQ(found->operators, alone);
}

// ---- Laws over all plans.

RC_GTEST_PROP(LowerLaws, ForwardWorkIsTheModelsDividedOverTheRanks, ()) {
  const cases::Case c = *cases::any_case();
  const graph::Workload workload = lowered(c.model, c.plan);
  const double microbatches = static_cast<double>(c.plan.microbatches());
  const double whole = microbatches * cases::model_matrix_flops(c.model, c.plan);
  const double tp = static_cast<double>(c.plan.tp);
  RC_ASSERT(std::abs(tp * cases::matrix_flops(workload, plan::StepPhase::forward) - whole) <
            1e-9 * whole);
}

RC_GTEST_PROP(LowerLaws, EveryPassVerifiesAndFusionKeepsWorkAndMessages, ()) {
  const cases::Case c = *cases::any_case();
  graph::WorkloadStatistics before;
  graph::WorkloadStatistics after;
  const LowerOptions options{
      .observe = [&](const std::string& pass, const graph::Workload& workload) {
        (pass == "fuse" || pass == "parts" ? after : before) = graph::statistics(workload);
      }};
  lowered(c.model, c.plan, options);
  RC_ASSERT(before.instances == after.instances);
  RC_ASSERT(after.nodes < before.nodes);
  RC_ASSERT(std::abs(after.flops.value() - before.flops.value()) <= 1e-9 * before.flops.value());
}

RC_GTEST_PROP(LowerLaws, BackwardMatrixWorkIsTwiceForward, ()) {
  cases::Case c = *cases::any_case();
  c.plan.attention = zoo::AttentionKernel::unfused;  // flash recomputes the scores: 5/2
  const graph::Workload workload = lowered(c.model, c.plan);
  const double forward = cases::matrix_flops(workload, plan::StepPhase::forward);
  RC_ASSERT(std::abs(cases::matrix_flops(workload, plan::StepPhase::backward) - 2 * forward) <
            1e-9 * forward);
}

}  // namespace
}  // namespace orrery::parallel
