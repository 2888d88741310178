// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/config_node.h"
#include "cases.h"
#include "machine/machine.h"
#include "workload/parallel/machine_check.h"
#include "workload/parallel/memory.h"

namespace orrery {
namespace {

using cases::collectives;
using cases::each_node;
using cases::kEmbedding;
using cases::kLayer;
using cases::kNorm;
using cases::lowered;
using cases::small_gpt;
using cases::Tally;
using testing::HasSubstr;

constexpr std::int64_t kAll = 2 * kLayer + kEmbedding + kNorm;  // of small_gpt(2)

Plan remote_plan(std::int64_t dp = 1) {
  return {.dp = dp,
          .global_batch = dp,
          .zero = 3,
          .offload_optimizer = Offload::remote,
          .offload_params = Offload::remote};
}

Tally copies(const Workload& workload, const std::string& name) {
  Tally tally;
  each_node(workload, 0, [&](const Node& node) {
    if (node.kind == Node::Kind::copy && node.name == name) {
      EXPECT_EQ(node.tier, kRemoteTier);
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
  const Workload workload = lowered(small_gpt(2), remote_plan());
  expect_bytes(copies(workload, "load_parameters"), 8, 2 * 2 * kAll);
  expect_bytes(copies(workload, "store_gradients"), 4, 4 * kAll);
  EXPECT_EQ(copies(workload, "load_parameter_shards"), Tally{});
}

TEST(LowerRemote, WithoutSwitchesShardsAreLoadedAndTheNetworkGathers) {
  const Workload workload = lowered(small_gpt(2), remote_plan(4));
  expect_bytes(copies(workload, "load_parameter_shards"), 8, 2 * 2 * kAll / 4);
  expect_bytes(copies(workload, "store_gradients"), 4, 4 * kAll / 4);
  EXPECT_EQ(collectives(workload, 0, Axis::dp, CollectiveKind::all_gather, Phase::forward),
            (Tally{4, Bytes(2 * kAll)}));
  EXPECT_EQ(collectives(workload, 0, Axis::dp, CollectiveKind::all_gather, Phase::backward),
            (Tally{4, Bytes(2 * kAll)}));
  EXPECT_EQ(collectives(workload, 0, Axis::dp, CollectiveKind::reduce_scatter, Phase::backward),
            (Tally{4, Bytes(4 * kAll)}));
}

TEST(LowerRemote, SwitchesOfThePoolTakeTheNetworksPlace) {
  Plan plan = remote_plan(4);
  plan.pool_collectives = true;
  const Workload workload = lowered(small_gpt(2), plan);
  expect_bytes(copies(workload, "load_parameters"), 8, 2 * 2 * kAll);
  expect_bytes(copies(workload, "store_gradient_sums"), 4, 4 * kAll);
  each_node(workload, 0, [](const Node& node) {
    if (node.kind == Node::Kind::copy && node.phase != Phase::optimizer) {
      EXPECT_EQ(node.axis, Axis::dp) << node.name;
    }
    // What is left is the norm.
    EXPECT_TRUE(node.kind != Node::Kind::collective || node.bytes == Bytes(4)) << node.name;
  });
}

TEST(LowerRemote, TheUpdateReadsStatesAndGradientsAndWritesStatesAndParameters) {
  // Of a quarter: master 4, two moments of 4, gradient 4 in; states and 2 bytes of parameters out.
  const Workload workload = lowered(small_gpt(2), remote_plan(4));
  expect_bytes(copies(workload, "load_states"), 8, 16 * kAll / 4);
  expect_bytes(copies(workload, "store_states"), 8, 14 * kAll / 4);
  EXPECT_EQ(cases::find_node(workload, "clear_gradients"), nullptr);
}

TEST(LowerRemote, StatesAloneLeaveParametersAndGradientsOnTheDevice) {
  const Workload workload = lowered(small_gpt(2), {.offload_optimizer = Offload::remote});
  expect_bytes(copies(workload, "load_states"), 8, 12 * kAll);
  expect_bytes(copies(workload, "store_states"), 8, 12 * kAll);
  EXPECT_EQ(copies(workload, "load_parameters"), Tally{});
  EXPECT_EQ(copies(workload, "store_gradients"), Tally{});
}

TEST(LowerRemote, ExpertsOfOneRankAreLoadedWholeWhateverTheSwitchesCan) {
  const auto config = parse_config(R"({
    "model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8,
    "num_key_value_heads": 4, "intermediate_size": 96, "vocab_size": 1000,
    "max_position_embeddings": 128, "num_local_experts": 4, "num_experts_per_tok": 1})",
                                   "mixtral.json", ConfigSyntax::json);
  const Model model = parse_model(config.value(), "small-mixtral").value();
  Plan plan = remote_plan(4);
  plan.ep = 4;
  const Workload apart = lowered(model, plan);
  plan.pool_collectives = true;
  const Workload pooled = lowered(model, plan);
  // Gate, up and down of 64 x 96, one of four experts, 2 bytes; two layers, two passes.
  constexpr std::int64_t kExpert = 3 * 64 * 96;
  expect_bytes(copies(apart, "load_parameters"), 4, 4 * 2 * kExpert);
  std::int64_t own = 0;
  each_node(pooled, 0, [&](const Node& node) {
    const bool loads = node.kind == Node::Kind::copy && node.name == "load_parameters";
    own += loads && node.axis == Axis::from_host ? node.bytes.value() : 0;
  });
  EXPECT_EQ(own, 4 * 2 * kExpert);
}

TEST(LowerRemote, PlansThatContradictAreRefusedWithEveryReason) {
  const auto mistakes = [](const Plan& plan) {
    const auto checked = check(plan, small_gpt(2));
    return checked ? std::string() : checked.error().to_string();
  };
  EXPECT_EQ(mistakes(remote_plan()), "");
  EXPECT_THAT(mistakes({.offload_params = Offload::cpu}), HasSubstr("none or remote"));
  const std::string plain = mistakes({.offload_params = Offload::remote});
  EXPECT_THAT(plain, HasSubstr("zero: found '0', expected 3"));
  EXPECT_THAT(plain, HasSubstr("offload_optimizer: found 'none', expected remote"));
  EXPECT_THAT(mistakes({.pool_collectives = true}), HasSubstr("offload_params remote"));
}

TEST(LowerRemote, TheMachineMustHaveTheMemoryAndTheSwitches) {
  const Machine none = load_machine("dgx-a100-80g").value();
  const auto refused = check_machine(remote_plan(), none);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(), HasSubstr("a machine with remote_memory"));
  Plan pooled = remote_plan(2);
  pooled.pool_collectives = true;
  EXPECT_TRUE(check_machine(pooled, load_machine("hiermem-opt").value()));
  const auto switchless = check_machine(pooled, load_machine("zero-infinity").value());
  ASSERT_FALSE(switchless);
  EXPECT_THAT(switchless.error().to_string(), HasSubstr("has no in_switch"));
}

TEST(LowerRemote, TheDeviceKeepsBlocksAndThePoolKeepsTheModel) {
  // 2 + 4 + 12 bytes of a quarter of the parameters.
  const auto stages = memory_footprint(small_gpt(2), remote_plan(4)).value();
  EXPECT_NEAR(static_cast<double>(stages[0].lower[kRemoteLower].value()), 18.0 * kAll / 4, 16);
  EXPECT_EQ(stages[0].highest[MemoryCategory::parameters], Bytes(0));
  EXPECT_EQ(stages[0].highest[MemoryCategory::gradients], Bytes(0));
  // Two of eight pieces of 16 bytes of a parameter during the update.
  EXPECT_NEAR(static_cast<double>(stages[0].highest[MemoryCategory::optimizer].value()),
              16.0 * kAll / 4 * 2 / 8, 16);
}

TEST(LowerRemote, APoolThatIsTooSmallIsNamed) {
  Machine machine = with_devices(load_machine("hiermem-opt").value(), 4).value();
  const auto stages = memory_footprint(small_gpt(2), remote_plan(4)).value();
  EXPECT_TRUE(check_fits(stages, machine));
  machine.remote_memory.capacity = Bytes(1000);
  const auto small = check_fits(stages, machine);
  ASSERT_FALSE(small);
  // 256 groups of 1000 bytes over 4 devices.
  EXPECT_THAT(small.error().to_string(), HasSubstr("stage 0, remote memory"));
  EXPECT_THAT(small.error().to_string(), HasSubstr("62.5 KiB"));
}

}  // namespace
}  // namespace orrery
