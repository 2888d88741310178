// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/config_node.h"
#include "cases.h"

namespace orrery::parallel {
namespace {

using cases::collectives;
using cases::each_node;
using cases::kEmbedding;
using cases::kLayer;
using cases::kNorm;
using cases::lowered;
using cases::small_gpt;
using cases::Tally;

constexpr std::int64_t kAllRemote = 2 * kLayer + kEmbedding + kNorm;  // of small_gpt(2)

plan::Plan remote_plan(std::int64_t dp = 1) {
  return {.dp = dp,
          .global_batch = dp,
          .zero = 3,
          .offload_optimizer = plan::Offload::remote,
          .offload_params = plan::Offload::remote};
}

Tally copies(const graph::Workload& workload, const std::string& name) {
  Tally tally;
  each_node(workload, 0, [&](const graph::Node& node) {
    if (node.kind == graph::Node::Kind::copy && node.name == name) {
      EXPECT_EQ(node.tier, graph::kRemoteTier);
      ++tally.count;
      tally.bytes += node.bytes;
    }
  });
  return tally;
}

/// Shares round up to whole bytes.
void expect_bytes(const Tally& tally, std::int64_t count, std::int64_t bytes) {
  EXPECT_EQ(tally.count, count);
  EXPECT_GE(tally.bytes, Bytes(bytes));
  EXPECT_LE(tally.bytes, Bytes(bytes + 8 * count));
}

TEST(LowerRemote, ParametersComeBeforeBothPassesAndGradientsGoOnce) {
  // Four blocks; 2 bytes of a parameter twice, 4 of a gradient.
  const graph::Workload workload = lowered(small_gpt(2), remote_plan());
  expect_bytes(copies(workload, "load_parameters"), 8, 2 * 2 * kAllRemote);
  expect_bytes(copies(workload, "store_gradients"), 4, 4 * kAllRemote);
  EXPECT_EQ(copies(workload, "load_parameter_shards"), Tally{});
}

TEST(LowerRemote, WithoutSwitchesShardsAreLoadedAndTheNetworkGathers) {
  const graph::Workload workload = lowered(small_gpt(2), remote_plan(4));
  expect_bytes(copies(workload, "load_parameter_shards"), 8, 2 * 2 * kAllRemote / 4);
  expect_bytes(copies(workload, "store_gradients"), 4, 4 * kAllRemote / 4);
  EXPECT_EQ(collectives(workload, 0, plan::Axis::dp, graph::CollectiveKind::all_gather,
                        plan::StepPhase::forward),
            (Tally{4, Bytes(2 * kAllRemote)}));
  EXPECT_EQ(collectives(workload, 0, plan::Axis::dp, graph::CollectiveKind::all_gather,
                        plan::StepPhase::backward),
            (Tally{4, Bytes(2 * kAllRemote)}));
  EXPECT_EQ(collectives(workload, 0, plan::Axis::dp, graph::CollectiveKind::reduce_scatter,
                        plan::StepPhase::backward),
            (Tally{4, Bytes(4 * kAllRemote)}));
}

TEST(LowerRemote, SwitchesOfThePoolTakeTheNetworksPlace) {
  plan::Plan plan = remote_plan(4);
  plan.pool_collectives = true;
  const graph::Workload workload = lowered(small_gpt(2), plan);
  expect_bytes(copies(workload, "load_parameters"), 8, 2 * 2 * kAllRemote);
  expect_bytes(copies(workload, "store_gradient_sums"), 4, 4 * kAllRemote);
  each_node(workload, 0, [](const graph::Node& node) {
    if (node.kind == graph::Node::Kind::copy && node.phase != plan::StepPhase::optimizer) {
      EXPECT_EQ(node.sharers, graph::GroupIndex(plan::Axis::dp)) << node.name;
    }
    // What is left is the norm.
    EXPECT_TRUE(node.kind != graph::Node::Kind::collective || node.bytes == Bytes(4)) << node.name;
  });
}

TEST(LowerRemote, TheUpdateReadsStatesAndGradientsAndWritesStatesAndParameters) {
  // Of a quarter: master 4, two moments of 4, gradient 4 in; states and 2 bytes of parameters out.
  const graph::Workload workload = lowered(small_gpt(2), remote_plan(4));
  expect_bytes(copies(workload, "load_states"), 8, 16 * kAllRemote / 4);
  expect_bytes(copies(workload, "store_states"), 8, 14 * kAllRemote / 4);
  EXPECT_EQ(cases::find_node(workload, "clear_gradients"), nullptr);
}

TEST(LowerRemote, StatesAloneLeaveParametersAndGradientsOnTheDevice) {
  const graph::Workload workload =
      lowered(small_gpt(2), {.offload_optimizer = plan::Offload::remote});
  expect_bytes(copies(workload, "load_states"), 8, 12 * kAllRemote);
  expect_bytes(copies(workload, "store_states"), 8, 12 * kAllRemote);
  EXPECT_EQ(copies(workload, "load_parameters"), Tally{});
  EXPECT_EQ(copies(workload, "store_gradients"), Tally{});
}

TEST(LowerRemote, ExpertsOfOneRankAreLoadedWholeWhateverTheSwitchesCan) {
  const auto config = parse_config(R"({
    "model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8,
    "num_key_value_heads": 4, "intermediate_size": 96, "vocab_size": 1000,
    "max_position_embeddings": 128, "num_local_experts": 4, "num_experts_per_tok": 1})",
                                   "mixtral.json", ConfigSyntax::json);
  const zoo::Model model = zoo::parse_model(config.value(), "small-mixtral").value();
  plan::Plan plan = remote_plan(4);
  plan.ep = 4;
  const graph::Workload apart = lowered(model, plan);
  plan.pool_collectives = true;
  const graph::Workload pooled = lowered(model, plan);
  // Gate, up and down of 64 x 96, one of four experts, 2 bytes; two layers, two passes.
  constexpr std::int64_t kExpert = 3 * 64 * 96;
  expect_bytes(copies(apart, "load_parameters"), 4, 4 * 2 * kExpert);
  std::int64_t own = 0;
  each_node(pooled, 0, [&](const graph::Node& node) {
    const bool loads = node.kind == graph::Node::Kind::copy && node.name == "load_parameters";
    own += loads && node.sharers.none() ? node.bytes.value() : 0;
  });
  EXPECT_EQ(own, 4 * 2 * kExpert);
}

}  // namespace
}  // namespace orrery::parallel
