// SPDX-License-Identifier: Apache-2.0
#include "workload/interop/capabilities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "plans.h"
#include "workload/plan/schedule_row.h"
#include "workload/zoo/model.h"

namespace orrery::testing {
namespace {

std::vector<std::string> fields_of(const std::vector<interop::Remark>& remarks) {
  std::vector<std::string> fields;
  for (const interop::Remark& remark : remarks) {
    fields.push_back(remark.about);
  }
  return fields;
}

/// A strategy of a search's space at random, whether anything runs it or not.
plan::Plan any_strategy(const std::string& framework) {
  plan::Plan plan = interop::rest_of(framework);
  const plan::Plan degrees = any_degrees();
  plan.tp = degrees.tp;
  plan.pp = degrees.pp;
  plan.dp = degrees.dp;
  plan.microbatch = degrees.microbatch;
  plan.global_batch = degrees.global_batch;
  plan.cp = one_of<std::int64_t>({1, 2});
  plan.sequence = 4096;
  plan.sequence_parallel = plan.tp > 1 && coin();
  plan.order = one_of<std::string>({"tp-cp-dp-pp", "tp-cp-pp-dp"});
  if (plan.pp > 1) {
    const std::size_t row = *rc::gen::inRange<std::size_t>(0, plan::schedules().size());
    plan.schedule = static_cast<plan::Schedule>(row);
    plan.chunks = row_of(plan.schedule).least_chunks;
    plan.overlap_p2p = coin();
  }
  plan.cp_exchange = one_of<plan::ContextExchange>(
      {plan::ContextExchange::p2p, plan::ContextExchange::all_gather, plan::ContextExchange::a2a});
  plan.zero = one_of<std::int64_t>({0, 1, 2, 3});
  plan.overlap_grad_reduce = coin();
  plan.overlap_param_gather = plan.zero > 0 && coin();
  plan.recompute = one_of<plan::Recompute>(
      {plan::Recompute::none, plan::Recompute::selective, plan::Recompute::full});
  if (plan.recompute == plan::Recompute::full) {
    plan.recompute_layers = one_of<std::int64_t>({0, 1});
  } else {
    plan.recompute_modules = one_of<std::string>({"", "layernorm", "layernorm,mlp"});
  }
  plan.offload_optimizer = one_of<plan::Offload>({plan::Offload::none, plan::Offload::cpu});
  plan.offload_activations = one_of<double>({0, 0.5, 1});
  plan.tp_chunks = one_of<std::int64_t>({1, plan.tp});
  return plan;
}

/// Every field that the launcher cannot run as by default.
void mend(std::string_view launcher, plan::Plan& plan, const zoo::Model& model) {
  const plan::Plan plain = interop::rest_of(plan.framework);
  for (const interop::Remark& lack : interop::incapable(launcher, plan, &model)) {
    plan::Plan::fields([&](std::string_view name, auto member, std::string_view) {
      if (name == lack.about) {
        plan.*member = plain.*member;
      }
    });
    plan.chunks = lack.about == "schedule" ? 1 : plan.chunks;
  }
  interop::impose(launcher, plan, [](std::string_view) { return true; });
  plan.stage_layers = model.layers % (plan.pp * plan.chunks) == 0 ? "" : "auto";
}

/// Returns whether ds_config.json leaves the field to the training script: `orrery import` takes a
/// flag.
bool is_of_script(const std::string& launcher, const std::string& field) {
  return launcher == "deepspeed" && (field == "sequence" || field == "recompute");
}

/// The table allows nothing that an export loses.
RC_GTEST_PROP(Capabilities, WhatTheTableAllowsSurvivesExportAndImport, ()) {
  static const zoo::Model model = *zoo::load_model("gpt2");
  const auto all = interop::launchers();
  const interop::LaunchFormat& launcher = all[*rc::gen::inRange<std::size_t>(0, all.size())];
  plan::Plan plan = any_strategy(std::string(launcher.name));
  mend(launcher.name, plan, model);
  RC_PRE(interop::can_run(launcher.name, plan, &model));
  const auto exported = launcher.write(plan, {.model = &model, .devices_per_node = 8});
  RC_ASSERT(exported.has_value());
  RC_LOG() << exported->text;
  for (const interop::Remark& lost : exported->lost) {
    RC_LOG() << lost.about << ": " << lost.sentence;
    RC_ASSERT(is_of_script(std::string(launcher.name), lost.about));
  }
}

TEST(Capabilities, NoFrameworkRunsDualpipeAndTheReasonSaysWhatRuns) {
  plan::Plan plan{.pp = 2, .global_batch = 4};
  plan.schedule = plan::Schedule::dualpipe;
  for (const interop::LaunchFormat& launcher : interop::launchers()) {
    SCOPED_TRACE(launcher.name);
    const auto lacks = interop::incapable(launcher.name, plan, nullptr);
    EXPECT_THAT(fields_of(lacks), ::testing::Contains("schedule"));
    EXPECT_THAT(lacks.front().sentence, ::testing::HasSubstr("the plan has dualpipe; "));
  }
}

/// Megatron core refuses cpu_offloading with stages, with recompute, and of all layers
/// (TransformerConfig.__post_init__): 6 of gpt2's 12 layers alone run.
TEST(Capabilities, MegatronMovesActivationsOfWholeLayersWithoutStages) {
  const zoo::Model model = *zoo::load_model("gpt2");
  const auto runs = [&](double share, std::int64_t pp, plan::Recompute recompute) {
    plan::Plan plan{.pp = pp, .dp = 2, .global_batch = 4};
    plan.offload_activations = share;
    plan.recompute = recompute;
    return interop::can_run("megatron@2025", plan, &model);
  };
  EXPECT_TRUE(runs(0.5, 1, plan::Recompute::none));
  EXPECT_FALSE(runs(0.5, 2, plan::Recompute::none));
  EXPECT_FALSE(runs(0.5, 1, plan::Recompute::selective));
  EXPECT_FALSE(runs(1, 1, plan::Recompute::none));
  EXPECT_FALSE(runs(0.3, 1, plan::Recompute::none));  // 3.6 layers
}

/// FSDP shards everything, DDP nothing.
TEST(Capabilities, TorchtitanShardsAllOrNothing) {
  const auto runs = [](std::int64_t zero, std::int64_t cp) {
    plan::Plan plan{.dp = 2, .cp = cp, .global_batch = 4};
    plan.zero = zero;
    interop::impose("torchtitan", plan, [](std::string_view) { return true; });
    return interop::can_run("torchtitan", plan, nullptr);
  };
  EXPECT_TRUE(runs(3, 1));
  EXPECT_TRUE(runs(0, 1));
  EXPECT_FALSE(runs(1, 1));
  EXPECT_FALSE(runs(2, 1));
  EXPECT_FALSE(runs(0, 2));
}

TEST(Capabilities, AnExportNamesTheReasonOfWhatItLoses) {
  plan::Plan plan{.pp = 2, .global_batch = 4, .sequence = 1024};
  plan.schedule = plan::Schedule::dualpipe;
  const auto exported = interop::export_megatron(plan, {});
  ASSERT_TRUE(exported.has_value());
  ASSERT_EQ(fields_of(exported->lost), std::vector<std::string>{"schedule"});
  EXPECT_THAT(exported->lost.front().sentence,
              ::testing::HasSubstr("megatron runs 1f1b, or interleaved"));
}

}  // namespace
}  // namespace orrery::testing
