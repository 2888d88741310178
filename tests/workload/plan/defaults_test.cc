// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/defaults.h"

#include <gtest/gtest.h>

namespace orrery::plan {
namespace {

/// `yaml` and what it leaves open, on GPT-3 175B (96 layers, 2,048 tokens) and dgx-a100-80g.
Plan completed(const std::string& yaml, std::int64_t devices = 0,
               const std::string& machine_name = "dgx-a100-80g") {
  const auto node = parse_config(yaml, "plan.yaml", ConfigSyntax::yaml);
  const auto open = parse_placed_plan(*node);
  const auto model = zoo::load_model("gpt3-175b");
  const auto machine = machine::load_machine(machine_name);
  EXPECT_TRUE(open && model && machine);
  return complete(*open, &*model, &*machine, devices);
}

TEST(Defaults, AreWhatIsUsualToday) {
  const Plan plan = completed("{tp: 8, pp: 5, dp: 2, global_batch: 2}");
  EXPECT_EQ(plan.attention, zoo::AttentionKernel::flash);
  EXPECT_TRUE(plan.sequence_parallel);
  EXPECT_EQ(plan.zero, 1);
  EXPECT_EQ(plan.stage_layers, "auto");  // 96 / 5
  EXPECT_EQ(completed("{tp: 8, pp: 6, dp: 2, global_batch: 2}").stage_layers, "");
}

TEST(Defaults, ADeviceWithoutBf16ComputesInFp16) {
  EXPECT_EQ(completed("{tp: 8, global_batch: 2}", 0, "dgx-v100").compute_type,
            graph::DataType::fp16);
  EXPECT_EQ(completed("{tp: 8, global_batch: 2, compute_type: bf16}", 0, "dgx-v100").compute_type,
            graph::DataType::bf16);
  EXPECT_EQ(completed("{tp: 8, global_batch: 2}").compute_type, graph::DataType::bf16);
}

TEST(Defaults, OfOneDeviceHaveNothingToSplit) {
  const Plan plan = completed("{global_batch: 2}");
  EXPECT_FALSE(plan.sequence_parallel);
  EXPECT_EQ(plan.zero, 0);
}

TEST(Defaults, OfWorkersOfOneRankHaveNoStatesToShare) {
  const std::string rounds = "{tp: 8, dp: 4, global_batch: 4, data_parallel_update: co2";
  EXPECT_EQ(completed(rounds + "}").zero, 0);
  EXPECT_EQ(completed(rounds + ", shard_optimizer: 2}").zero, 1);
  EXPECT_EQ(completed(rounds + ", cp: 2}").zero, 1);
}

TEST(Defaults, NeverWinOverWhatIsGiven) {
  const Plan plan = completed(
      "{tp: 8, dp: 2, global_batch: 2, attention: unfused, sequence_parallel: false, zero: 0}", 64);
  EXPECT_EQ(plan.attention, zoo::AttentionKernel::unfused);
  EXPECT_FALSE(plan.sequence_parallel);
  EXPECT_EQ(plan.zero, 0);
  EXPECT_EQ(plan.dp, 2);
}

TEST(Defaults, OfThePastAreThoseOfThePast) {
  const Plan plan = completed("{tp: 8, pp: 6, global_batch: 2, as_of: 2021}", 96);
  EXPECT_EQ(plan.attention, zoo::AttentionKernel::unfused);
  EXPECT_FALSE(plan.sequence_parallel);
  EXPECT_EQ(plan.zero, 0);
  EXPECT_EQ(plan.dp, 2);  // 96 / (8 x 6), in any year
}

TEST(Defaults, AYearThatIsNoneStaysForTheCheck) {
  const Plan plan = completed("{tp: 8, global_batch: 2, as_of: 21}");
  const auto checked = check(plan, *zoo::load_model("gpt3-175b"));
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().mistakes.front().field, "as_of");
}

TEST(Defaults, FlashAttentionNeedsADeviceThatHasIt) {
  EXPECT_EQ(completed("{tp: 8, global_batch: 2}", 0, "dgx-1-v100").attention,
            zoo::AttentionKernel::unfused);
}

TEST(Defaults, AreNotChosenWhereThePlanWouldBeWrong) {
  // 2,047 tokens are not a multiple of tp.
  EXPECT_FALSE(completed("{tp: 8, global_batch: 2, sequence: 2047}").sequence_parallel);
}

TEST(Defaults, AreNotChosenWhereTheMachineCannotDoThem) {
  // A switch that adds up does so for all-reduces, which sequence parallelism has none of.
  EXPECT_TRUE(completed("{tp: 8, global_batch: 2}", 0, "dgx-h100").sequence_parallel);
  EXPECT_FALSE(completed("{tp: 8, global_batch: 2, tp_algorithm: in_switch}", 0, "dgx-h100")
                   .sequence_parallel);
}

TEST(Defaults, FillThePipeline) {
  // dp 4 x microbatch 2 x pp 6; dualpipe is fed from both ends.
  EXPECT_EQ(completed("{tp: 8, pp: 6, dp: 4, microbatch: 2}").global_batch, 48);
  EXPECT_EQ(completed("{pp: 4, dp: 2, schedule: dualpipe}").global_batch, 16);
  EXPECT_EQ(completed("{tp: 8, pp: 6, microbatch: 2}", 96).global_batch, 24);  // dp 2
  EXPECT_EQ(completed("{dp: 4, global_batch: 8}").global_batch, 8);
  EXPECT_EQ(completed("{}").global_batch, 1);
  EXPECT_EQ(completed("{dp: 2, batch_shares: \"3,5\"}").global_batch, 1);  // for the check
}

TEST(Defaults, HelpSaysEveryOne) {
  EXPECT_EQ(default_text("tp"), "default 1");
  EXPECT_EQ(default_text("schedule"), "default 1f1b");
  EXPECT_EQ(default_text("order"), "default \"tp-cp-dp-pp\"");
  EXPECT_EQ(default_text("overlap_tp"), "default true");
  EXPECT_EQ(default_text("zero"), "default: 1 with more than one replica (dp x cp > 1)");
  Plan::fields([](std::string_view name, auto, std::string_view) {
    EXPECT_GT(default_text(name).size(), std::string_view("default ").size()) << name;
  });
}

TEST(Defaults, OfDevicesThatDoNotDivideAsManyReplicasAsThereIsRoomFor) {
  EXPECT_EQ(completed("{tp: 8, pp: 4, global_batch: 7}", 250).dp, 7);  // 224 of 250
}

TEST(Defaults, ExchangesOfTokensAreMergedWhereTheRouterCountsOnIt) {
  // DeepSeek-V3's router takes 4 of 8 groups of experts, each a node of the published run.
  const auto dispatch = [](const std::string& model_name, const std::string& yaml) {
    const auto open = parse_placed_plan(*parse_config(yaml, "plan.yaml", ConfigSyntax::yaml));
    const auto model = zoo::load_model(model_name);
    const auto machine = machine::load_machine("dgx-h800");
    return complete(*open, &*model, &*machine, 0).moe_dispatch;
  };
  const std::string nodes = "pp: 16, dp: 128, ep: 64, global_batch: 15360";
  EXPECT_EQ(dispatch("deepseek-v3", "{" + nodes + "}"), MoeDispatch::hierarchical);
  EXPECT_EQ(dispatch("deepseek-v3", "{" + nodes + ", as_of: 2021}"), MoeDispatch::all_to_all);
  EXPECT_EQ(dispatch("deepseek-v3", "{" + nodes + ", moe_dispatch: alltoall}"),
            MoeDispatch::all_to_all);
  EXPECT_EQ(dispatch("deepseek-v3", "{pp: 16, dp: 128, ep: 8, global_batch: 15360}"),
            MoeDispatch::all_to_all);
  EXPECT_EQ(dispatch("qwen3-235b-a22b", "{dp: 64, ep: 64, global_batch: 64}"),
            MoeDispatch::all_to_all);
}

}  // namespace
}  // namespace orrery::plan
