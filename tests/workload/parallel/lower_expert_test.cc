// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/config_tree.h"
#include "cases.h"
#include "collective/layout/packing.h"
#include "workload/parallel/lower.h"

namespace orrery::parallel {
namespace {

using cases::collectives;
using cases::find_node;
using cases::lowered;
using cases::Tally;
using testing::HasSubstr;

constexpr std::int64_t kExpertLayers = 2;
constexpr std::int64_t kExpertHidden = 64;
constexpr std::int64_t kExpertTokens = 128;
constexpr std::int64_t kExperts = 8;
constexpr std::int64_t kTopK = 2;
constexpr std::int64_t kExpertWidth = 96;
/// T top_k H elements of 2 bytes.
constexpr Bytes kRouted{kExpertTokens * kTopK * kExpertHidden * 2};
/// Gate, up and down matrices of all experts.
constexpr std::int64_t kExpertParameters = kExperts * 3 * kExpertHidden * kExpertWidth;

/// Mixtral shaped: every layer has 8 experts, 2 per token.
zoo::Model small_mixtral() {
  const auto node = parse_config(R"({
    "model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8,
    "num_key_value_heads": 4, "intermediate_size": 96, "vocab_size": 1000,
    "max_position_embeddings": 128, "num_local_experts": 8, "num_experts_per_tok": 2})",
                                 "config.json", ConfigSyntax::json);
  auto model = zoo::parse_model(node.value(), "small-mixtral");
  EXPECT_TRUE(model) << model.error().to_string();
  return *model;
}

Tally over(const graph::Workload& workload, plan::Axis axis, graph::CollectiveKind kind,
           plan::StepPhase phase) {
  return collectives(workload, 0, axis, kind, phase);
}

TEST(LowerExpert, EachLayerSendsTokensThereAndBackInBothDirections) {
  const graph::Workload workload = lowered(small_mixtral(), {.dp = 4, .ep = 4, .global_batch = 4});
  for (const plan::StepPhase phase : {plan::StepPhase::forward, plan::StepPhase::backward}) {
    EXPECT_EQ(over(workload, plan::Axis::ep, graph::CollectiveKind::all_to_all, phase),
              (Tally{2 * kExpertLayers, kRouted * (2 * kExpertLayers)}));
  }
  EXPECT_EQ(
      over(workload, plan::Axis::etp, graph::CollectiveKind::all_gather, plan::StepPhase::forward),
      Tally{});
}

// The rows of 4 ranks, by expert and token: 8 x 128 of 64 elements of 2 bytes. A rank has the rows
// of its tokens (shards of the second dimension) and gets those of its experts (of the first): it
// sends runs of memory, and what arrives, 2 experts from each of 4 ranks, is 8 blocks that a kernel
// puts in the experts' order: 256 rows of 128 bytes, read and written. That is the part of the
// step's own kernels beside the copies, which read 128 tokens and write 256 rows.
TEST(LowerExpert, KernelsBesideTheExchangePackWhatItsDatatypesSay) {
  using layout::Placement;
  compute::Device device;
  device.memory.push_back({.name = "memory", .bandwidth = 1_GBps});
  device.kernels.elementwise_share = 1;
  device.kernels.stream_launch = Time(0);
  const layout::Shape rows{.extents = {kExperts, 4 * kExpertTokens * kTopK / kExperts, 64},
                           .element = Bytes(2)};
  const layout::Mesh mesh{.axes = {{"ep", 4}}};
  const auto packing = [&](int from, int to) {
    return layout::packing_of({.operation = layout::Operation::all_to_all,
                               .from = {Placement::shard(from)},
                               .to = {Placement::shard(to)}},
                              rows, mesh, device);
  };
  const layout::Packing there = packing(1, 0);
  EXPECT_EQ(there.blocks, 8);
  EXPECT_EQ(there.block, Bytes(32 * 128));
  EXPECT_EQ(there.time, 2 * kRouted / 1_GBps);
  EXPECT_EQ(packing(0, 1).time, there.time);
  const graph::Workload workload =
      lowered(small_mixtral(), {.dp = 4, .ep = 4, .global_batch = 4}, {.skip = {"fuse"}});
  const Bytes copies = Bytes(kExpertTokens * kExpertHidden * 2) + kRouted;
  for (const char* const back : {"unpermute", "unpermute_backward"}) {
    EXPECT_EQ(find_node(workload, back)->operators[0].bytes, copies + 2 * kRouted) << back;
  }
}

TEST(LowerExpert, WithoutExpertParallelismNothingIsExchanged) {
  const graph::Workload workload = lowered(small_mixtral(), {.dp = 4, .global_batch = 4});
  EXPECT_EQ(
      over(workload, plan::Axis::ep, graph::CollectiveKind::all_to_all, plan::StepPhase::forward),
      Tally{});
}

TEST(LowerExpert, ARankComputesItsExpertsOnTheTokensOfAllRanks) {
  // 8 experts over 4 ranks: 2 each. Each gets T top_k / E = 32 rows of every one of the 4 ranks.
  const graph::Workload workload =
      lowered(small_mixtral(), {.dp = 4, .ep = 4, .global_batch = 4}, {.skip = {"fuse"}});
  const graph::Node* fc1 = find_node(workload, "expert_fc1_gemm");
  ASSERT_NE(fc1, nullptr);
  EXPECT_EQ(fc1->operators[0].gemm,
            (graph::GemmShape{.batch = 2, .m = 4 * 32, .n = 2 * kExpertWidth, .k = kExpertHidden}));
  // The work is that of T top_k rows, wherever the experts are.
  EXPECT_EQ(
      fc1->operators[0].flops,
      graph::flops_of(
          {.batch = 1, .m = kExpertTokens * kTopK, .n = 2 * kExpertWidth, .k = kExpertHidden}));
}

TEST(LowerExpert, ExpertsApartRunPlainGemmsOnTheSameRows) {
  const plan::Plan grouped{.dp = 4, .ep = 4, .global_batch = 4};
  plan::Plan apart = grouped;
  apart.expert_gemms = plan::ExpertGemms::per_expert;
  const graph::Workload one = lowered(small_mixtral(), grouped, {.skip = {"fuse"}});
  const graph::Workload many = lowered(small_mixtral(), apart, {.skip = {"fuse"}});
  const graph::Operator& together = find_node(one, "expert_fc1_gemm")->operators[0];
  const graph::Operator& alone = find_node(many, "expert_fc1_gemm")->operators[0];
  EXPECT_EQ(together.kind, graph::OperatorKind::grouped_gemm);
  EXPECT_EQ(alone.kind, graph::OperatorKind::gemm);
  EXPECT_EQ(alone.gemm, together.gemm);
  EXPECT_EQ(together.kernels, 1);
  EXPECT_EQ(alone.kernels, 2);  // 8 experts on 4 ranks
}

TEST(LowerExpert, GraphsCaptureLayersButForTheExperts) {
  plan::Plan plan{.dp = 4, .ep = 4, .global_batch = 4};
  plan.quantization = plan::Quantization::fp8_current;
  plan.expert_gemms = plan::ExpertGemms::per_expert;
  plan.host_dispatch = 10_us;
  const auto operator_of = [&](const char* name) {
    const graph::Workload workload = lowered(small_mixtral(), plan, {.skip = {"fuse"}});
    return find_node(workload, name)->operators[0];
  };
  EXPECT_FALSE(operator_of("qkv_gemm").captured);
  plan.cuda_graphs = plan::CudaGraphs::layers;
  for (const char* inside : {"qkv_gemm", "router_gemm", "routing", "qkv_gemm_input_gradient"}) {
    EXPECT_TRUE(operator_of(inside).captured) << inside;
  }
  for (const char* outside :
       {"expert_fc1_gemm", "expert_fc2_gemm_quantize_gradient", "unpermute", "logits_gemm"}) {
    EXPECT_FALSE(operator_of(outside).captured) << outside;
  }
  // A maximum and a conversion for each of 8 / 4 experts; in one graph, for all of them.
  EXPECT_EQ(operator_of("expert_fc1_gemm_quantize_input").kernels, 4);
  plan.cuda_graphs = plan::CudaGraphs::full;
  EXPECT_EQ(operator_of("expert_fc1_gemm_quantize_input").kernels, 2);
  EXPECT_EQ(lowered(small_mixtral(), plan).host_dispatch, Time(0));
}

TEST(LowerExpert, FusedExpertsConvertWhatTheyPassOnThemselves) {
  plan::Plan plan{.dp = 4, .ep = 4, .global_batch = 4};
  plan.quantization = plan::Quantization::mxfp8;
  const auto has = [&](const char* name) {
    return find_node(lowered(small_mixtral(), plan, {.skip = {"fuse"}}), name) != nullptr;
  };
  for (const char* between : {"expert_fc2_gemm_quantize_input", "expert_fc1_gemm_quantize_gradient",
                              "expert_silu_mul", "expert_silu_mul_backward"}) {
    plan.expert_gemms = plan::ExpertGemms::per_expert;
    EXPECT_TRUE(has(between)) << between;
    plan.expert_gemms = plan::ExpertGemms::fused;
    EXPECT_FALSE(has(between)) << between;
  }
  for (const char* outside :
       {"expert_fc1_gemm_quantize_input", "expert_fc2_gemm_quantize_gradient"}) {
    EXPECT_TRUE(has(outside)) << outside;
  }
}

TEST(LowerExpert, FusedExpertsInOneGraphCopyWhatTheyKeepIntoPages) {
  // 4 x 32 rows for each of 2 experts: inputs of fc1 and fc2, 33 / 32 bytes an element, gate and up
  // in 2 bytes; read and written.
  plan::Plan plan{.dp = 4, .ep = 4, .global_batch = 4};
  plan.quantization = plan::Quantization::mxfp8;
  plan.expert_gemms = plan::ExpertGemms::fused;
  const graph::Workload apart = lowered(small_mixtral(), plan, {.skip = {"fuse"}});
  EXPECT_EQ(find_node(apart, "expert_fc1_gemm_stash"), nullptr);
  plan.cuda_graphs = plan::CudaGraphs::full;
  const graph::Workload paged = lowered(small_mixtral(), plan, {.skip = {"fuse"}});
  const std::int64_t rows = 2 * 4 * 32;
  for (const char* way : {"_stash", "_restore"}) {
    const auto bytes = [&](const std::string& name) {
      return find_node(paged, name + way)->operators[0].bytes;
    };
    EXPECT_EQ(bytes("expert_fc1_gemm"), Bytes(2 * rows * kExpertHidden * 33 / 32));
    EXPECT_EQ(bytes("expert_silu_mul"), Bytes(2 * rows * 2 * kExpertWidth * 2));
    EXPECT_EQ(bytes("expert_fc2_gemm"), Bytes(2 * rows * kExpertWidth * 33 / 32));
  }
}

TEST(LowerExpert, TheHostWaitsForTheRoutingUnlessShapesAreFixed) {
  // Once per layer of a forward pass.
  plan::Plan plan{.dp = 4, .ep = 4, .global_batch = 4, .host_dispatch = 10_us};
  zoo::Model model = small_mixtral();
  const auto waits = [&] {
    const graph::Workload workload = lowered(model, plan);
    std::int64_t most = 0;
    for (const graph::Template& t : workload.programs.at(0).templates) {
      most = std::max(most, std::count_if(t.nodes.begin(), t.nodes.end(),
                                          [](const graph::Node& node) { return node.host_sync; }));
    }
    return most;
  };
  EXPECT_EQ(waits(), kExpertLayers);
  plan.expert_gemms = plan::ExpertGemms::per_expert;
  model.expert.clamped = true;  // the activation copies a number to the device
  EXPECT_EQ(waits(), 2 * kExpertLayers);
  model.expert.clamped = false;
  plan.moe_capacity = 1;
  EXPECT_EQ(waits(), 0);
  plan.moe_capacity = 0;
  plan.cuda_graphs = plan::CudaGraphs::full;
  EXPECT_EQ(waits(), 0);
}

TEST(LowerExpert, MergedExchangesMoveWhatArrivesOnce) {
  // 2 experts of 4 ranks: 4 (1 - (3/4)^2) = 1.75 ranks get a token; T = 128 rows of 128 bytes are
  // read 1.75 times and written twice. Else: read, 2 copies, and these once more read and written.
  plan::Plan plan{.dp = 4, .ep = 4, .global_batch = 4};
  const auto bytes = [&] {
    const graph::Workload workload = lowered(small_mixtral(), plan, {.skip = {"fuse"}});
    return find_node(workload, "unpermute")->operators[0].bytes;
  };
  EXPECT_EQ(bytes(), Bytes(kExpertTokens * kExpertHidden * 2 * 7));
  plan.moe_dispatch = plan::MoeDispatch::hierarchical;
  EXPECT_EQ(bytes(), Bytes(kExpertTokens * kExpertHidden * 2 * 15 / 4));
}

TEST(LowerExpert, GradientsOfExpertsAreReducedOverTheRanksThatHoldThem) {
  // dp 8, ep 4: each expert is on 2 ranks; dense gradients are summed over 8.
  const plan::Plan plan{.dp = 8, .ep = 4, .global_batch = 8};
  const graph::Workload workload = lowered(small_mixtral(), plan);
  EXPECT_EQ(workload.group(plan::Axis::edp).members.size(), 2);
  EXPECT_EQ(over(workload, plan::Axis::edp, graph::CollectiveKind::all_reduce,
                 plan::StepPhase::optimizer),
            (Tally{1, 4_B * kExpertLayers * (kExpertParameters / 4)}));
  const Tally dense =
      over(workload, plan::Axis::dp, graph::CollectiveKind::all_reduce, plan::StepPhase::optimizer);
  const std::int64_t all = zoo::count_parameters(small_mixtral()).total +
                           2 * (1024 - 1000) * kExpertHidden;  // the padded vocabulary
  EXPECT_EQ(dense.bytes, 4_B * (all - kExpertLayers * kExpertParameters));
}

TEST(LowerExpert, ZeroThreeGathersExpertsOverTheirOwnRanks) {
  const plan::Plan plan{.dp = 8, .ep = 4, .global_batch = 8, .zero = 3};
  const graph::Workload workload = lowered(small_mixtral(), plan);
  EXPECT_EQ(
      over(workload, plan::Axis::edp, graph::CollectiveKind::all_gather, plan::StepPhase::forward),
      (Tally{kExpertLayers, 2_B * kExpertLayers * (kExpertParameters / 4)}));
}

TEST(LowerExpert, ExpertTensorParallelRanksGatherAndScatterTheRows) {
  // tp = etp = 2 with sequence parallelism: each rank routes half of the tokens.
  plan::Plan plan{.tp = 2, .dp = 4, .ep = 4, .sequence_parallel = true, .global_batch = 4};
  const graph::Workload workload = lowered(small_mixtral(), plan);
  EXPECT_EQ(
      over(workload, plan::Axis::ep, graph::CollectiveKind::all_to_all, plan::StepPhase::forward)
          .bytes,
      kRouted / 2 * (2 * kExpertLayers));
  EXPECT_EQ(
      over(workload, plan::Axis::etp, graph::CollectiveKind::all_gather, plan::StepPhase::forward),
      (Tally{kExpertLayers, kRouted * kExpertLayers}));
  EXPECT_EQ(over(workload, plan::Axis::etp, graph::CollectiveKind::reduce_scatter,
                 plan::StepPhase::forward),
            (Tally{kExpertLayers, kRouted * kExpertLayers}));
  plan.etp = 1;  // whole experts on every rank: no rows to gather
  EXPECT_EQ(over(lowered(small_mixtral(), plan), plan::Axis::etp, graph::CollectiveKind::all_gather,
                 plan::StepPhase::forward),
            Tally{});
}

TEST(LowerExpert, AllGatherDispatchMovesEveryTokenOnceToEveryRank) {
  plan::Plan plan{.dp = 4, .ep = 4, .moe_dispatch = plan::MoeDispatch::all_gather};
  plan.global_batch = 4;
  const graph::Workload workload = lowered(small_mixtral(), plan);
  EXPECT_EQ(
      over(workload, plan::Axis::ep, graph::CollectiveKind::all_gather, plan::StepPhase::forward),
      (Tally{kExpertLayers, kRouted / kTopK * 4 * kExpertLayers}));
  EXPECT_EQ(over(workload, plan::Axis::ep, graph::CollectiveKind::reduce_scatter,
                 plan::StepPhase::forward),
            (Tally{kExpertLayers, kRouted / kTopK * 4 * kExpertLayers}));
}

TEST(LowerExpert, TheBusiestRankSetsLoadAndCapacityCutsIt) {
  plan::Plan plan{.dp = 4, .ep = 4, .global_batch = 4, .moe_imbalance = 1.5};
  EXPECT_EQ(over(lowered(small_mixtral(), plan), plan::Axis::ep, graph::CollectiveKind::all_to_all,
                 plan::StepPhase::forward)
                .bytes,
            kRouted * 3 / 2 * (2 * kExpertLayers));
  const auto rows = [](const plan::Plan& p) {
    const graph::Workload workload = lowered(small_mixtral(), p, {.skip = {"fuse"}});
    return find_node(workload, "expert_fc1_gemm")->operators[0].gemm.m;
  };
  EXPECT_EQ(rows(plan), 192);  // 128 x 1.5
  plan.moe_imbalance = 1;
  plan.moe_capacity = 1.25;
  EXPECT_EQ(rows(plan), 160);
}

TEST(LowerExpert, SpreadLoadsMakeTheBusiestRankBusierWithMoreRanks) {
  // 8 experts, s = 0.4: plan::busiest_rank, integrated numerically.
  plan::Plan plan{.moe_spread = 0.4};
  EXPECT_EQ(plan::expert_load(plan, 8), 1);
  for (const auto& [ep, load] : {std::pair{2, 1.1114}, {4, 1.3052}, {8, 1.6533}}) {
    plan.ep = ep;
    EXPECT_NEAR(plan::expert_load(plan, 8), load, 1e-4);
    EXPECT_LT(plan::expert_load(plan, 64), plan::expert_load(plan, 8));  // a rank has more of them
  }
  plan.moe_spread = 1000;
  EXPECT_GT(plan::expert_load(plan, 8), 7.5);  // nearly all tokens on one rank
  EXPECT_LE(plan::expert_load(plan, 8), 8);
  plan = {.dp = 4, .ep = 4, .global_batch = 4, .moe_spread = 0.4};
  EXPECT_EQ(find_node(lowered(small_mixtral(), plan, {.skip = {"fuse"}}), "expert_fc1_gemm")
                ->operators[0]
                .gemm.m,
            168);  // 128 x 1.3052, rounded up
}

TEST(LowerExpert, HierarchicalDispatchSaysHowManyExpertsATokenHas) {
  plan::Plan plan{
      .dp = 4, .ep = 4, .global_batch = 4, .moe_dispatch = plan::MoeDispatch::hierarchical};
  const graph::Workload workload = lowered(small_mixtral(), plan);
  const graph::Node* exchange = find_node(workload, "ep_all_to_all");
  ASSERT_NE(exchange, nullptr);
  EXPECT_EQ(exchange->route.copies, kTopK);
}

TEST(LowerExpert, WhatAModelCannotDoIsRefused) {
  const auto reasons = [](const zoo::Model& model, const plan::Plan& plan) {
    const auto checked = plan::check(plan, model);
    return checked ? std::string() : checked.error().to_string();
  };
  EXPECT_THAT(reasons(cases::small_gpt(2), {.dp = 2, .ep = 2, .global_batch = 2}),
              HasSubstr("ep: found '2', expected 1: the model has no experts"));
  EXPECT_THAT(reasons(small_mixtral(), {.dp = 3, .ep = 3, .global_batch = 3}),
              HasSubstr("ep: found '3', expected a divisor of the 8 experts"));
  EXPECT_THAT(reasons(small_mixtral(), {.tp = 2, .global_batch = 1}),
              HasSubstr("sequence_parallel: found 'false', expected true with tp > 1"));
}

}  // namespace
}  // namespace orrery::parallel
