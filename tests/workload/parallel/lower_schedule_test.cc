// SPDX-License-Identifier: Apache-2.0
// Schedules that split the backward: what their templates hold.
#include <gtest/gtest.h>

#include <algorithm>

#include "cases.h"

namespace orrery::parallel {
namespace {

using cases::collectives;
using cases::kBoundary;
using cases::kTable;
using cases::lowered;
using cases::sends;
using cases::small_gpt;
using cases::small_llama;
using cases::Tally;

plan::Plan zero_bubble(plan::Schedule schedule, std::int64_t pp, std::int64_t microbatches) {
  return {.pp = pp,
          .schedule = schedule,
          .chunks = schedule == plan::Schedule::zb_v ? 2 : 1,
          .global_batch = microbatches};
}

const graph::Template* find_template(const graph::Workload& workload, int role,
                                     const std::string& name) {
  const auto& templates = workload.program_of(role).templates;
  const auto found = std::find_if(templates.begin(), templates.end(),
                                  [&](const graph::Template& t) { return t.name == name; });
  return found == templates.end() ? nullptr : &*found;
}

std::int64_t count(const graph::Template& t, const std::string& part) {
  return std::count_if(t.nodes.begin(), t.nodes.end(), [&](const graph::Node& node) {
    return node.name.find(part) != std::string::npos;
  });
}

TEST(LowerSplitBackward, WeightGradientsAreATemplateOfTheirOwn) {
  // One layer of GPT has four weight GEMMs; two activation GEMMs have both gradients in B.
  const graph::Workload workload =
      lowered(small_gpt(3), zero_bubble(plan::Schedule::zb_h1, 3, 6), {.skip = {"fuse"}});
  const graph::Template* inputs = find_template(workload, 1, "input gradients");
  const graph::Template* weights = find_template(workload, 1, "weight gradients");
  ASSERT_TRUE(inputs != nullptr && weights != nullptr);
  EXPECT_EQ(find_template(workload, 1, "backward"), nullptr);
  EXPECT_EQ(count(*inputs, "_input_gradient"), 4);
  EXPECT_EQ(count(*inputs, "_right_gradient"), 2);
  EXPECT_EQ(count(*inputs, "_weight_gradient") + count(*inputs, "_accumulate"), 0);
  EXPECT_EQ(count(*weights, "_weight_gradient"), 4);
  EXPECT_EQ(count(*weights, "_gradient"), 4);
  EXPECT_GE(count(*weights, "_accumulate"), 4);
  EXPECT_EQ(count(*inputs, "send_gradients"), 1);
  EXPECT_EQ(count(*weights, "send_gradients"), 0);
}

TEST(LowerSplitBackward, RecomputeComesBeforeTheInputGradients) {
  plan::Plan plan = zero_bubble(plan::Schedule::zb_h1, 3, 6);
  plan.recompute = plan::Recompute::full;
  const graph::Workload workload = lowered(small_gpt(3), plan, {.skip = {"fuse"}});
  EXPECT_EQ(count(*find_template(workload, 1, "input gradients"), "fc1_gemm_again"), 1);
  EXPECT_EQ(count(*find_template(workload, 1, "weight gradients"), "_again"), 0);
}

TEST(LowerSplitBackward, ShardedGradientsAreReducedAfterTheWeightGradientsOfEveryMicrobatch) {
  plan::Plan plan = zero_bubble(plan::Schedule::zb_h1, 3, 6);
  plan.dp = plan.zero = 2;
  plan.global_batch = 12;
  for (const bool overlap : {false, true}) {
    plan.overlap_grad_reduce = overlap;
    const graph::Workload workload = lowered(small_gpt(3), plan);
    EXPECT_EQ(count(*find_template(workload, 1, "input gradients"), "dp_reduce_scatter"), 0);
    EXPECT_EQ(count(*find_template(workload, 1, "weight gradients"), "dp_reduce_scatter"), 1);
  }
}

TEST(LowerSplitBackward, ReductionsWaitForTheLastWeightGradients) {
  plan::Plan plan = zero_bubble(plan::Schedule::zb_h1, 3, 6);
  plan.dp = 2;
  plan.global_batch = 12;
  plan.overlap_grad_reduce = true;
  const graph::Workload workload = lowered(small_gpt(3), plan);
  const graph::Template* last = find_template(workload, 1, "last weight gradients");
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(count(*last, "dp_all_reduce"), 1);
  EXPECT_EQ(find_template(workload, 1, "last input gradients"), nullptr);
  EXPECT_EQ(collectives(workload, 1, plan::Axis::dp, graph::CollectiveKind::all_reduce,
                        plan::StepPhase::backward)
                .count,
            1);
}

TEST(LowerSplitBackward, SequenceParallelInputsAreGatheredForTheWeightGradients) {
  // Backward of a layer: two inputs (qkv, fc1) are gathered again for W only; two output gradients
  // (proj, fc2) are gathered in B, which W reads too.
  plan::Plan plan = zero_bubble(plan::Schedule::zb_h1, 3, 6);
  plan.tp = 2;
  plan.sequence_parallel = true;
  const graph::Workload workload = lowered(small_gpt(3), plan);
  const graph::Template* inputs = find_template(workload, 1, "input gradients");
  const graph::Template* weights = find_template(workload, 1, "weight gradients");
  ASSERT_TRUE(inputs != nullptr && weights != nullptr);
  EXPECT_EQ(count(*inputs, "tp_all_gather"), 2);
  EXPECT_EQ(count(*inputs, "tp_reduce_scatter"), 2);
  EXPECT_EQ(count(*weights, "tp_all_gather"), 2);
  EXPECT_EQ(count(*weights, "tp_reduce_scatter"), 0);
}

TEST(LowerSplitBackward, VeeSendsDownAndBackAndTurnsWithoutAMessage) {
  // p = 3, m = 6: chunk 0 goes 0, 1, 2, chunk 1 comes back 2, 1, 0.
  const graph::Workload workload = lowered(small_gpt(6), zero_bubble(plan::Schedule::zb_v, 3, 6));
  const Tally each{6, 6 * kBoundary};
  for (const int stage : {0, 1, 2}) {
    EXPECT_EQ(sends(workload, stage, plan::Channel::forward), stage < 2 ? each : Tally{});
    EXPECT_EQ(sends(workload, stage, plan::Channel::returning_forward), stage > 0 ? each : Tally{});
    EXPECT_EQ(sends(workload, stage, plan::Channel::backward), stage > 0 ? each : Tally{});
    EXPECT_EQ(sends(workload, stage, plan::Channel::returning_backward),
              stage < 2 ? each : Tally{});
  }
}

TEST(LowerSplitBackward, VeeAndDualPipeShareTheTiedEmbedding) {
  // First and last part of the model are on one device: no second table, no reduction of it.
  for (const plan::Schedule schedule : {plan::Schedule::zb_v, plan::Schedule::dualpipe}) {
    const plan::Plan plan = zero_bubble(schedule, 2, 8);
    const graph::Workload workload = lowered(small_gpt(4), plan);
    EXPECT_EQ(collectives(workload, 0, plan::Axis::embedding, graph::CollectiveKind::all_reduce,
                          plan::StepPhase::optimizer),
              Tally{});
  }
}

TEST(LowerDualPipe, BothEndsRunHalfOfTheMicrobatches) {
  // p = 2, m = 8: each of the two chunks of a device sees 4 microbatches.
  const graph::Workload workload =
      lowered(small_llama(2), zero_bubble(plan::Schedule::dualpipe, 2, 8));
  const Tally each{4, 4 * kBoundary};
  EXPECT_EQ(sends(workload, 0, plan::Channel::forward), each);
  EXPECT_EQ(sends(workload, 0, plan::Channel::returning_backward), each);
  EXPECT_EQ(sends(workload, 1, plan::Channel::returning_forward), each);
  EXPECT_EQ(sends(workload, 1, plan::Channel::backward), each);
}

TEST(LowerDualPipe, CopiesOfAStageSumTheirGradients) {
  // Two ranks all-reduce G bytes of gradients: each sends G / 2 twice. With ZeRO 1 only the shard.
  plan::Plan plan = zero_bubble(plan::Schedule::dualpipe, 2, 8);
  const zoo::Model model = small_gpt(2);
  const std::int64_t held = cases::kEmbedding + cases::kNorm + 2 * cases::kLayer;
  EXPECT_EQ(sends(lowered(model, plan), 0, plan::Channel::mirror), (Tally{2, 4_B * held}));
  plan.dp = 2;
  plan.zero = 1;
  plan.global_batch = 16;
  EXPECT_EQ(sends(lowered(model, plan), 1, plan::Channel::mirror), (Tally{2, 2_B * held}));
}

TEST(LowerDualPipe, PairsChangeSidesWhereComputeWouldWaitForCommunication) {
  // With overlap_ep the forward's nodes stand between the backward's, at every exchange of tokens;
  // without it the backward follows the forward.
  const auto model = zoo::load_model("mixtral-8x7b");
  ASSERT_TRUE(model.has_value()) << model.error().to_string();
  plan::Plan plan = zero_bubble(plan::Schedule::dualpipe, 2, 8);
  plan.dp = plan.ep = 2;
  plan.global_batch = 16;
  const auto switches = [&](plan::OverlapExperts overlap) {
    plan.overlap_ep = overlap;
    const graph::Workload workload = lowered(*model, plan, {.skip = {"fuse"}});
    const graph::Template* pair = find_template(workload, 0, "forward chunk 0, backward chunk 1");
    EXPECT_NE(pair, nullptr);
    int changes = 0;
    const graph::Node* before = nullptr;
    for (const graph::Node& node : pair->nodes) {
      if (node.kind == graph::Node::Kind::compute) {
        changes += before != nullptr && before->phase != node.phase ? 1 : 0;
        before = &node;
      }
    }
    return changes;
  };
  EXPECT_EQ(switches(plan::OverlapExperts::off), 1);
  EXPECT_GT(switches(plan::OverlapExperts::shared),
            2 * 16);  // 16 layers, two exchanges in each direction
}

}  // namespace
}  // namespace orrery::parallel
