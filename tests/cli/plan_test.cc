// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(PlanCommand, TheSavedPlanSimulatesAsItSays) {
  const Folder folder;
  const std::string file = folder / "best.yaml";
  const std::string step = " --model gpt2 --machine dgx-a100-80g --devices 8 ";
  const Outcome run = orrery("plan" + step + "--batch 32 --top 2 --json --save " + file);
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  ASSERT_EQ(json.at("top").size(), 2U);
  EXPECT_LE(json.at("bound_s"), json.at("best").at("step_time_s"));
  EXPECT_THAT(content(file), ::testing::StartsWith("# For gpt2 on 8 x dgx-a100-80g, found by"));
  const Outcome again = orrery("simulate" + step + "--json --plan " + file);
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(nlohmann::json::parse(again.out).at("step_time_s"), json.at("best").at("step_time_s"));
}

TEST(PlanCommand, FusedCommunicationIsWhatSimulateSays) {
  const Folder folder;
  const std::string file = folder / "best.yaml";
  const std::string step = " --model gpt-7.5b --machine dgx-a100-80g --devices 16 ";
  const Outcome run = orrery("plan" + step +
                             "--batch 8 --sequence 2048 --only tp=8 --only pp=2 --only "
                             "sequence_parallel=false --top 1 --json --save " +
                             file);
  ASSERT_EQ(run.status, 0) << run.err;
  const auto best = nlohmann::json::parse(run.out).at("best");
  const auto simulated = [&](const char* flag) {
    const Outcome again = orrery("simulate" + step + "--json --plan " + file + flag);
    EXPECT_EQ(again.status, 0) << again.err;
    return nlohmann::json::parse(again.out).at("step_time_s").get<double>();
  };
  EXPECT_EQ(simulated(""), best.at("step_time_s"));
  EXPECT_TRUE(best.at("plan").at("fuse_communication"));
  EXPECT_EQ(simulated(" --fuse-communication false"), best.at("unfused_step_time_s"));
  EXPECT_EQ(simulated(" --fuse-communication false --fuse"), best.at("step_time_s"));
  EXPECT_LT(best.at("step_time_s"), best.at("unfused_step_time_s"));
  EXPECT_THAT(orrery("plan" + step + "--batch 8 --fuse-communication true").err,
              HasSubstr("--fuse-communication: nothing: the search tries it"));
}

/// The command that the answer names reads the launch back, and that plan takes the same step.
TEST(PlanCommand, ALaunchIsReadBackByItsCommand) {
  const Folder folder;
  const std::string step = " --model gpt2 --machine dgx-a100-80g --devices 8 ";
  for (const char* framework : {"megatron", "deepspeed"}) {
    SCOPED_TRACE(framework);
    const Outcome run = orrery("plan" + step +
                               "--batch 32 --top 1 --estimates 10 --simulations 3 --json "
                               "--framework " +
                               framework + " --export " + folder / "");
    ASSERT_EQ(run.status, 0) << run.err;
    const auto json = nlohmann::json::parse(run.out);
    const std::string command = json.at("launch").at("read_back");
    ASSERT_TRUE(command.starts_with("orrery import "));
    const Outcome again = orrery(command.substr(7));
    ASSERT_EQ(again.status, 0) << again.err;
    const Outcome simulated =
        orrery("simulate" + step + "--json --plan " + folder.write("again.yaml", again.out));
    ASSERT_EQ(simulated.status, 0) << simulated.err;
    EXPECT_EQ(nlohmann::json::parse(simulated.out).at("step_time_s"),
              json.at("best").at("step_time_s"));
    for (const auto& one : json.at("frameworks")) {
      EXPECT_EQ(one.at("runs"), one.at("lacks").empty());
      EXPECT_TRUE(one.at("name") != framework || one.at("runs"));
    }
  }
  EXPECT_THAT(orrery("plan" + step + "--batch 32 --framework fsdp --export x").err,
              HasSubstr("--export: goes with --framework megatron, nemo, torchtitan, deepspeed"));
}

/// 2,400 W of 8 devices are 300 W of each.
TEST(PlanCommand, APowerBudgetIsShared) {
  const std::string command =
      "plan --model gpt2 --machine dgx-a100-80g --devices 8 --batch 32 --only pp=1 --only tp=1 "
      "--only cp=1 --estimates 4 --simulations 2 --top 1 --json --power-";
  const Outcome budget = orrery(command + "budget 2400W");
  const Outcome cap = orrery(command + "cap 300W");
  ASSERT_EQ(budget.status + cap.status, 0) << budget.err << cap.err;
  EXPECT_EQ(nlohmann::json::parse(budget.out).at("best"),
            nlohmann::json::parse(cap.out).at("best"));
  EXPECT_THAT(orrery(command + "budget none").err, HasSubstr("--power-budget: found 'none'"));
}

TEST(PlanCommand, AnEstimateIsNearItsSimulation) {
  const Outcome estimated = orrery(
      "estimate --model gpt2 --machine dgx-a100-80g --tp 2 --pp 2 --dp 2 --global-batch 16 --json");
  const Outcome simulated = orrery(
      "simulate --model gpt2 --machine dgx-a100-80g --tp 2 --pp 2 --dp 2 --global-batch 16 --json");
  ASSERT_EQ(estimated.status + simulated.status, 0) << estimated.err << simulated.err;
  const auto estimate = nlohmann::json::parse(estimated.out);
  const double truth = nlohmann::json::parse(simulated.out).at("step_time_s");
  EXPECT_NEAR(estimate.at("step_time_s"), truth, 0.03 * truth);
  EXPECT_LE(estimate.at("lower_bound_s"), truth);
  EXPECT_TRUE(estimate.at("fits"));
}

TEST(PlanCommand, EveryMistakeIsNamed) {
  const Outcome run = orrery(
      "plan --model gpt2 --machine dgx-a100-80g --only zeroo=1 --fix tp --reserve x --max-memory "
      "1GiB");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("--devices"), HasSubstr("--reserve"),
                             HasSubstr("--fix: found 'tp'"), HasSubstr("did you mean 'zero'")));
}

TEST(PlanCommand, MistakesInAnotherModelNameItsFlag) {
  const auto also = [](const std::string& text) {
    const Outcome run = orrery(
        "plan --model gpt2 --machine dgx-a100-80g --devices 16 --batch 8 --tokens 1B --also " +
        text);
    EXPECT_EQ(run.status, 2) << text;
    return run.err;
  };
  EXPECT_THAT(also("gpt2,zeroo=1"),
              AllOf(HasSubstr("--also gpt2: found 'zeroo'"), HasSubstr("'zero'")));
  EXPECT_THAT(also("gpt2,batch"), HasSubstr("--also gpt2: found 'batch', expected FIELD=VALUE"));
  EXPECT_THAT(also("gpt2,zero=1,zero=2"), HasSubstr("once: --also gpt2 says it too"));
  EXPECT_THAT(also("gpt2,tokens=1B,tokens=2B"), HasSubstr("tokens once"));
  EXPECT_THAT(also("''"), HasSubstr("--also: found nothing, expected MODEL"));
}

TEST(PlanCommand, SlowOfSeveralModelsTheOneWithoutAPlanIsNamed) {
  const Outcome run = orrery(
      "plan --model gpt2 --machine dgx-a100-80g --devices 16 --batch 8 --tokens 1B --also "
      "gpt2-large,tp=7");  // of 20 heads
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("--also gpt2-large: tp: found '7'"), HasSubstr("gpt2-large: no plan"),
                    ::testing::Not(HasSubstr("\ngpt2: no plan"))));
}

TEST(PlanCommand, AModuleThatTheModelLacksIsNamedBeforeTheSearch) {
  const Outcome run = orrery(
      "plan --model gpt2 --machine dgx-a100-80g --devices 8 --batch 8 --recompute-modules foo");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("found 'foo', expected a module"));
}

TEST(PlanCommand, ManyMachinesTakeNoFlagsOfOne) {
  const std::string command =
      "plan --model gpt2 --machine dgx-a100-80g --batch 8 --vary device.memory.0.capacity=40GiB "
      "--max-memory 20GiB --exhaustive";
  const Outcome run = orrery(command);
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("--devices: missing"),
                             HasSubstr("--vary: goes without --exhaustive\n"),
                             HasSubstr("--max-memory: is of one device; give --reserve")));
  const Outcome devices = orrery(
      "plan --model gpt2 --machine dgx-a100-80g --batch 8 --sequence 1024 --vary devices=1,2");
  EXPECT_EQ(devices.status, 0) << devices.err;  // says how many; --devices need not
  EXPECT_THAT(devices.out, HasSubstr("* 2"));
}

TEST(PlanCommand, WhatWouldBeDroppedIsRefused) {
  const Outcome none = orrery("plan --model gpt2 --machine dgx-a100-80g --max-memory 0");
  EXPECT_THAT(none.err, HasSubstr("--max-memory: found '0', expected a size above 0"));
  for (const char* other : {"--objective cost", "--top 2", "--layer-costs x.yaml"}) {
    const Outcome table = orrery(std::string("plan --table nosuch ") + other);
    EXPECT_EQ(table.status, 2);
    EXPECT_THAT(table.err, HasSubstr("--table: gives the work itself")) << other;
  }
  for (const char* other : {"--exhaustive", "--estimates 3", "--simulations 3", "--top 2"}) {
    const Outcome layers =
        orrery(std::string("plan --layer-costs nosuch --max-memory 1GiB ") + other);
    EXPECT_EQ(layers.status, 2);
    EXPECT_THAT(layers.err, HasSubstr("--layer-costs: goes with --max-memory and --json alone"))
        << other;
  }
}

TEST(PlanCommand, WhereNothingFitsItSaysWhatWouldHelp) {
  const std::string command =
      "plan --model llama-3-8b --machine dgx-a100-80g --devices 1 --batch 2 --sequence 2048 "
      "--only offload_optimizer=none";
  const Outcome text = orrery(command);
  EXPECT_EQ(text.status, 2);
  EXPECT_THAT(text.err, AllOf(HasSubstr("What would help"), HasSubstr("devices: 1 -> 2"),
                              HasSubstr("memory: 78 GiB -> ")));
  const Outcome run = orrery(command + " --json");
  EXPECT_EQ(run.status, 2);
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_TRUE(json.at("best").is_null());
  ASSERT_GE(json.at("remedies").size(), 2U);
  for (const auto& remedy : json.at("remedies")) {
    EXPECT_GE(remedy.at("change"), 1);
    EXPECT_GT(remedy.at("best").at("step_time_s"), 0);
  }
}

/// 6 N tokens = 6 x 124 million x 1,024 operations at 1 FLOP/s: 7.6e11 s; 106 days are 9.2e6 s.
TEST(PlanCommand, WhatTakesTooLongIsNotSaidNotToFit) {
  const Folder folder;
  std::string machine =
      content(std::string(ORRERY_SOURCE_DIR) + "/configs/machines/dgx-a100-80g.yaml");
  const std::size_t begin = machine.find("  peak: {");
  ASSERT_NE(begin, std::string::npos);
  machine.replace(begin, machine.find('}', begin) + 1 - begin,
                  "  peak: {fp32: 1 FLOP/s, tf32: 1 FLOP/s, bf16: 1 FLOP/s, fp16: 1 FLOP/s}");
  const Outcome run = orrery("plan --model gpt2 --devices 1 --batch 1 --sequence 1024 --machine " +
                             folder.write("slow.yaml", machine));
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("takes longer than 106 days"));
  EXPECT_THAT(run.err, ::testing::Not(HasSubstr("No plan fits")));
}

TEST(PlanCommand, SaysWhatIsAskedBeside) {
  const Folder folder;
  const std::string plot = folder / "memory.svg";
  const Outcome run = orrery(
      "plan --model gpt2 --machine dgx-a100-80g --devices 16 --batch 32 --pp 1 --cp 1 "
      "--only offload_optimizer=none --only offload_activations=0 --only microbatch=1,2 "
      "--explain --minmax-regret --elastic --json --plot " +
      plot);
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  const auto schema =
      nlohmann::json::parse(content(std::string(ORRERY_SOURCE_DIR) + "/docs/schema/plan.json"));
  for (const auto& [key, value] : json.items()) {
    EXPECT_TRUE(schema.at("properties").contains(key)) << key;
  }
  EXPECT_EQ(json.at("best").at("plan"), json.at("regret").at("plans").at(0).at("best").at("plan"));
  EXPECT_EQ(json.at("elastic").at("node_devices"), 8);
  EXPECT_GE(json.at("decisions").size(), 3U);
  const auto& frontier = json.at("frontier");
  for (std::size_t i = 1; i < frontier.size(); ++i) {
    EXPECT_LT(frontier[i - 1].at("memory_bytes"), frontier[i].at("memory_bytes"));
    EXPECT_GT(frontier[i - 1].at("step_time_s"), frontier[i].at("step_time_s"));
  }
  EXPECT_THAT(content(plot), AllOf(HasSubstr("<svg"), HasSubstr("GiB")));
}

TEST(PlanCommand, ChoosesAMachineWithinABudget) {
  const Folder folder;
  const std::string plot = folder / "design.svg";
  const std::string command =
      "plan --model gpt2 --machine dgx-a100-80g --batch 32 --pp 1 --cp 1 "
      "--only offload_optimizer=none --only offload_activations=0 --only microbatch=4 "
      "--vary network.1.bandwidth=12.5GB/s..50GB/s --vary devices=8,16 ";
  const Outcome run = orrery(command +
                             "--vary device.price_per_hour=2 --budget 40 "
                             "--price network.1.bandwidth=0.1/GB/s --json --plot " +
                             plot);
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  const auto schema = nlohmann::json::parse(
      content(std::string(ORRERY_SOURCE_DIR) + "/docs/schema/plan-vary.json"));
  ASSERT_EQ(json.at("points").size(), 6U);
  int best = 0;
  for (const auto& point : json.at("points")) {
    for (const auto& [key, value] : point.items()) {
      EXPECT_TRUE(schema.at("properties").at("points").at("items").at("properties").contains(key))
          << key;
    }
    EXPECT_EQ(point.at("affordable"), point.at("price_per_hour") <= 40);
    best += point.at("is_best") ? 1 : 0;
  }
  EXPECT_EQ(best, 1);
  EXPECT_THAT(content(plot), HasSubstr("GB/s"));
  // A value that no machine can have is one mistake, not a table without plans.
  const Outcome zero = orrery(
      "plan --model gpt2 --machine dgx-a100-80g --devices 16 --batch 16 --vary "
      "network.1.bandwidth=0");
  EXPECT_EQ(zero.status, 2);
  EXPECT_THAT(zero.err, AllOf(HasSubstr("network.1.bandwidth: found '0', expected a rate above 0"),
                              Not(HasSubstr("\n--vary")), Not(HasSubstr("memory tiers"))));
  const Outcome nothing = orrery(command + "--vary device.price_per_hour=2 --budget 1");
  EXPECT_EQ(nothing.status, 2);
  EXPECT_THAT(nothing.err, HasSubstr("above the budget"));
  const Outcome wrong =
      orrery(command + "--budget 1 --price network.1.bandwidth --save x --simulations 3");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("--vary: goes without --simulations\n"),
                               HasSubstr("one machine has --save\n")));
}

TEST(PlanCommand, GivesEveryLayerAStrategy) {
  const std::string costs = std::string(ORRERY_SOURCE_DIR) + "/examples/layer_costs/costs.yaml";
  double before = 0;
  for (const char* memory : {"60GB", "40GB", "25GB"}) {
    const Outcome run = orrery("plan --json --layer-costs " + costs + " --max-memory " + memory);
    ASSERT_EQ(run.status, 0) << run.err;
    const auto json = nlohmann::json::parse(run.out);
    EXPECT_EQ(json.at("layers").size(), 48U);
    EXPECT_EQ(json.at("bound_s"), json.at("time_s"));
    EXPECT_GT(json.at("time_s"), before);
    before = json.at("time_s");
  }
  const Outcome wrong = orrery("plan --layer-costs " + costs + " --tp 2 --model gpt2");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("--max-memory: missing"), HasSubstr("--tp"),
                               HasSubstr("--max-memory and --json alone")));
  EXPECT_EQ(orrery("plan --layer-costs " + costs + " --max-memory 60GB --top 3").status, 2);
  EXPECT_THAT(orrery("plan --layer-costs " + costs + " --max-memory 1GB").err,
              HasSubstr("the most frugal"));
}

/// examples/which_plan as its README says.
TEST(PlanCommand, SlowTheExampleAnswersWhyWhatElseAndWhatToBuy) {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string command = "ORRERY=" + std::string(ORRERY_BINARY) + " " + ORRERY_SOURCE_DIR +
                              "/examples/which_plan/run.sh >" + out;
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(content(out),
              AllOf(HasSubstr("devices: 1 -> 2 (2 times)"), HasSubstr("Time against memory"),
                    HasSubstr("zero 2\n  3 "), HasSubstr("Regret under rates"),
                    HasSubstr("dp: 16 -> 8"), HasSubstr("* 32       25 GB/s")));
}

}  // namespace
}  // namespace orrery::testing
