// SPDX-License-Identifier: Apache-2.0
#include "study/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "machine/device_groups.h"
#include "study/energy.h"

namespace orrery::study {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// GPT-2: L = 12, H = 768, S = 1024, V = 50257. Forward FLOPs of one token:
constexpr double kLayers = 12.0 * (24 * 768 * 768 + 4 * 1024 * 768);  // 24 H^2 + 4 S H each
constexpr double kAttentionCores = 12.0 * (4 * 1024 * 768);           // scores and context
constexpr double kForward = kLayers + 2.0 * 768 * 50257;              // + logits
constexpr double kPerSequence = 3 * kForward * 1024;                  // backward is twice forward

plan::Plan small_plan() {
  plan::Plan plan;
  plan.tp = 2;
  plan.pp = 2;
  plan.dp = 2;
  plan.global_batch = 16;
  return plan;
}

Result<Run> run_with(const plan::Plan& plan, const RunOptions& options = {},
                     std::int64_t devices = 0, const std::string& model = "gpt2") {
  return run_step(zoo::load_model(model).value(), machine::load_machine("dgx-a100-80g").value(),
                  plan, devices, options);
}

Run must_run(const plan::Plan& plan, const RunOptions& options = {}) {
  auto run = run_with(plan, options);
  EXPECT_TRUE(run) << run.error().to_string();
  return run.value();
}

TEST(Run, RatesAreWorkOverTime) {
  // 16 sequences of 1024 tokens on 8 devices of 312 TFLOP/s.
  const auto run = must_run(small_plan());
  const double seconds = to_seconds(run.timeline.step_time);
  ASSERT_GT(seconds, 0);
  EXPECT_DOUBLE_EQ(run.tokens_per_s * seconds, 16 * 1024);
  EXPECT_DOUBLE_EQ(run.model_flops_per_device.value() * seconds * 8, 16 * kPerSequence);
  EXPECT_DOUBLE_EQ(run.mfu, run.model_flops_per_device.value() / 312e12);
}

std::string refusal(const machine::Machine& machine, const plan::Plan& plan) {
  const auto run = run_step(zoo::load_model("gpt2").value(), machine, plan, 0, {});
  EXPECT_FALSE(run);
  return run ? "" : run.error().to_string();
}

TEST(Run, TimeBeyondItsRangeIsNoDeadlock) {
  // 6 x 124 M parameters x 1024 tokens at 1 FLOP/s: 24,000 years; the range is 106 days.
  machine::Machine slow = machine::load_machine("dgx-a100-80g").value();
  slow.device.peak.fill(FlopRate(1));
  const std::string nodes = refusal(slow, {});
  EXPECT_THAT(nodes,
              AllOf(HasSubstr("forward: token_embedding"), HasSubstr("longer than 106 days")));
  EXPECT_THAT(nodes, Not(HasSubstr("deadlock")));

  machine::Machine narrow = machine::load_machine("dgx-a100-80g").value();
  for (topology::NetworkDimension& dimension : narrow.network) {
    dimension.bandwidth = Bandwidth(1e-300);
  }
  EXPECT_THAT(refusal(narrow, {.tp = 2}),
              AllOf(HasSubstr("all_reduce"), HasSubstr("longer than 106 days")));

  // 10^9 sequences of 13 ms each: no node is long, all of them together are.
  const machine::Machine machine = machine::load_machine("dgx-a100-80g").value();
  EXPECT_THAT(refusal(machine, {.global_batch = 1'000'000'000}),
              AllOf(HasSubstr("stage 0"), HasSubstr("longer than 106 days")));

  // The jump over the steady state of this plan, 20 s per 1,536 sequences, went beyond the end of
  // time in the middle of chains of nodes.
  plan::Plan plan = plan::load_plan("gpt3-175b-1024").value();
  plan.global_batch = 1'000'000'000;
  const auto run = run_step(zoo::load_model("gpt3-175b").value(), machine, plan, 0, {});
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().to_string(), HasSubstr("longer than 106 days"));
}

TEST(Run, UtilizationIsOfThePeakThatTheGemmsRunAt) {
  // H100: fp8 1978.9 TFLOP/s, not the 989.4 of compute_type.
  plan::Plan plan = small_plan();
  plan.compute_type = graph::DataType::bf16;
  plan.quantization = plan::Quantization::fp8_current;
  const auto run = run_step(zoo::load_model("gpt2").value(),
                            machine::load_machine("dgx-h100").value(), plan, 0, {});
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(run->peak_type, graph::DataType::fp8);
  EXPECT_DOUBLE_EQ(run->mfu, run->model_flops_per_device.value() / 1978.9e12);
}

TEST(Run, WithoutRecomputeHardwareDoesModelFlopsOnly) {
  const auto run = must_run(small_plan());
  EXPECT_EQ(run.hfu, run.mfu);
  EXPECT_EQ(run.hardware_flops_per_device, run.model_flops_per_device);
}

TEST(Run, FullRecomputeCountsOneMoreForwardOfTheLayers) {
  plan::Plan plan = small_plan();
  plan.recompute = plan::Recompute::full;
  const auto run = must_run(plan);
  EXPECT_NEAR(run.hfu / run.mfu, 1 + kLayers / (3 * kForward), 1e-12);
}

TEST(Run, SelectiveRecomputeCountsTheAttentionCores) {
  plan::Plan plan = small_plan();
  plan.recompute = plan::Recompute::selective;
  const auto run = must_run(plan);
  EXPECT_NEAR(run.hfu / run.mfu, 1 + kAttentionCores / (3 * kForward), 1e-12);
}

TEST(Run, BreakdownPartitionsTheStep) {
  const auto run = must_run(small_plan());
  for (const simulate::Breakdown& breakdown : run.timeline.by_rank) {
    EXPECT_EQ(std::accumulate(breakdown.time.begin(), breakdown.time.end(), Time(0)),
              run.timeline.step_time);
  }
}

TEST(Run, IsAPureFunctionOfItsInput) {
  const auto a = must_run(small_plan());
  const auto b = must_run(small_plan());
  EXPECT_EQ(a.timeline.step_time, b.timeline.step_time);
  EXPECT_EQ(a.timeline.breakdown.time, b.timeline.breakdown.time);
  EXPECT_EQ(a.timeline.events, b.timeline.events);
}

TEST(Run, FoldingChangesNothingButTheWork) {
  const auto folded = must_run(small_plan());
  const auto unfolded = must_run(small_plan(), {.fold = false});
  EXPECT_LT(folded.timeline.fold.simulated, unfolded.timeline.fold.simulated);
  EXPECT_EQ(unfolded.timeline.fold.simulated, 8);
  EXPECT_EQ(folded.timeline.step_time, unfolded.timeline.step_time);
  EXPECT_EQ(folded.timeline.breakdown.time, unfolded.timeline.breakdown.time);
}

TEST(Run, ExchangesHideBehindAnotherMicrobatchNotBeyondItsCompute) {
  const zoo::Model model = zoo::load_model("mixtral-8x7b").value();
  const machine::Machine machine = machine::load_machine("dgx-h100").value();
  plan::Plan plan;
  plan.dp = plan.ep = 8;
  plan.zero = 1;
  plan.attention = zoo::AttentionKernel::flash;
  plan.sequence = 2048;
  plan.global_batch = 8 * 12;
  const auto run = [&](plan::OverlapExperts overlap, double slower) {
    plan.overlap_ep = overlap;
    machine::Machine slow = machine;
    slow.network[0].bandwidth = slow.network[0].bandwidth * (1 / slower);
    return run_step(model, slow, plan, 0, {.allow_oom = true}).value();
  };
  for (const double slower : {1.0, 10.0}) {
    const auto alone = run(plan::OverlapExperts::off, slower);
    const auto pairs = run(plan::OverlapExperts::microbatch, slower);
    const Time exchange = alone.timeline.time("ep_exposed");
    EXPECT_LT(pairs.timeline.time("ep_exposed"), exchange) << slower;
    EXPECT_LT(pairs.timeline.step_time, alone.timeline.step_time) << slower;
    // Neither the compute of the step nor its exchanges take less time than they do alone.
    EXPECT_GE(pairs.timeline.step_time, alone.timeline.step_time - exchange) << slower;
    EXPECT_GE(pairs.timeline.step_time, exchange) << slower;
  }
}

TEST(Run, ClocksOfAJobSlowMatrixKernelsAndNothingElse) {
  plan::Plan plan = small_plan();
  const auto sustained = must_run(plan);
  plan.clocks = plan::Clocks::boost;
  const auto boost = must_run(plan);
  EXPECT_LT(boost.timeline.step_time, sustained.timeline.step_time);
  EXPECT_EQ(boost.timeline.time("optimizer"), sustained.timeline.time("optimizer"));
  const double share =
      to_seconds(boost.timeline.step_time) / to_seconds(sustained.timeline.step_time);
  EXPECT_GT(share, sustained.machine.device.clock);  // others do not wait for the clock
  EXPECT_EQ(boost.machine.device.clock, 1);
}

TEST(Run, ALowerPowerCapIsNeverFasterAndNeverPassed) {
  zoo::Model model = zoo::load_model("llama-3-8b").value();
  const machine::Machine machine = machine::load_machine("dgx-h200").value();
  plan::Plan plan;
  plan.tp = 8;
  plan.global_batch = 4;
  plan.sequence_parallel = true;
  plan.attention = zoo::AttentionKernel::flash;
  Time before{0};
  for (const double watts : {700.0, 600.0, 500.0, 400.0, 300.0}) {
    const auto capped = machine::with_power_cap(machine, Power(watts)).value();
    const study::Run run = run_step(model, capped, plan, 0, {}).value();
    EXPECT_GE(run.timeline.step_time, before) << watts;
    EXPECT_LE(energy_of(run)->average_power(run), Power(watts)) << watts;
    EXPECT_GT(energy_of(run)->average_power(run), machine.device.idle_power) << watts;
    before = run.timeline.step_time;
  }
}

TEST(Run, AnH200KeepsTheRateInLayersOfLlamaThatOneWasMeasuredWith) {
  // A loop of Llama-3 8B's layers, forward and backward, kept 0.88 of what the coefficients say
  // (docs/models/compute.md); no constant is fitted to it.
  plan::Plan plan;
  plan.attention = zoo::AttentionKernel::flash;
  const study::Run run =
      run_step(zoo::load_model("llama-3-8b").value(), machine::load_machine("dgx-h200").value(),
               plan, 0, {.allow_oom = true})
          .value();
  EXPECT_NEAR(run.machine.device.clock, 0.88, 0.02);
}

TEST(Run, SkippedPassLeavesItsTimeOut) {
  EXPECT_GT(must_run(small_plan()).timeline.time("optimizer"), Time(0));
  const auto run = must_run(small_plan(), {.skip = {"optimizer"}});
  EXPECT_EQ(run.timeline.time("optimizer"), Time(0));
}

TEST(Run, EveryStepIsTimed) {
  const auto run = must_run(small_plan());
  ASSERT_GT(run.passes.size(), 1U);
  EXPECT_EQ(run.passes.back().name, "simulate");
  double sum = 0;
  for (const PassTime& pass : run.passes) {
    sum += pass.seconds;
  }
  EXPECT_LE(sum, run.wall_s);
}

TEST(Run, PlanDevicesAndDataTypeAreRefusedTogether) {
  plan::Plan plan = small_plan();
  plan.tp = 5;  // does not divide 12 heads
  plan.compute_type = graph::DataType::fp8;
  const auto run = run_with(plan, {}, 40);
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().to_string(),
              AllOf(HasSubstr("tp"),
                    HasSubstr("devices: found '40', expected tp x cp x pp x dp = "
                              "5 x 1 x 2 x 2 = 20, or dp 4 in the plan"),
                    HasSubstr("compute_type: found 'fp8', expected a data type that")));
}

TEST(Run, DevicesCountContextParallelRanks) {
  // 16 devices hold 2 replicas of tp 2 x cp 4.
  const auto run = run_with({.tp = 2, .cp = 4, .attention = zoo::AttentionKernel::flash}, {}, 16);
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().to_string(), HasSubstr("tp x cp x pp x dp = 2 x 4 x 1 x 1 = 8, "
                                                 "or dp 2 in the plan"));
}

TEST(Run, DegreesThatOverflowAreAMistake) {
  plan::Plan plan = small_plan();
  plan.tp = plan.pp = plan.dp = std::int64_t{1} << 40;
  EXPECT_FALSE(run_with(plan));
  plan.tp = plan.pp = plan.dp = std::int64_t{1} << 20;
  plan.cp = 16;  // 2^64 devices, 0 in 64 bits
  EXPECT_FALSE(run_with(plan, {}, 8));
  plan.tp = 0;
  EXPECT_FALSE(run_with(plan));
}

TEST(Run, WhatDoesNotFitIsRefusedUnlessAllowed) {
  // 175 billion parameters x 18 bytes / 8 devices = 394 GB a device, of 80 GiB.
  plan::Plan plan;
  plan.tp = 8;
  const auto refused = run_with(plan, {}, 0, "gpt3-175b");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(), HasSubstr("stage"));
  const auto allowed = run_with(plan, {.allow_oom = true}, 0, "gpt3-175b");
  ASSERT_TRUE(allowed) << allowed.error().to_string();
  EXPECT_FALSE(allowed->fits);
  EXPECT_GT(allowed->memory[0].total(), allowed->capacity);
}

}  // namespace
}  // namespace orrery::study
