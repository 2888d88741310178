// SPDX-License-Identifier: Apache-2.0
// Clusters of several sorts of devices, and uneven shares of a batch.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "machine/device_groups.h"
#include "study/estimate_step.h"
#include "study/run.h"
#include "workload/parallel/proportion.h"
#include "workload/plan/shares.h"

namespace orrery::study {
namespace {

using ::testing::HasSubstr;

machine::Machine plain(const std::string& name = "dgx-h100") {
  return *machine::load_machine(name);
}

/// dgx-h100's network; devices of these machines, or of the first with their rates by a factor.
machine::Machine mixed(std::int64_t first, std::int64_t second, const compute::Device& other) {
  machine::Machine machine = plain();
  machine.parts = {{"h", first, machine.device}, {"other", second, other}};
  machine.device = machine::mean_device(machine.parts);
  return machine;
}

/// Equal but for its name, so that it is another part.
compute::Device renamed(compute::Device device) {
  device.name += "'";
  return device;
}

Time step_of(const machine::Machine& machine, const plan::Plan& plan, bool fold = true,
             bool shortcuts = true) {
  RunOptions options;
  options.fold = fold;
  options.shortcuts = shortcuts;
  options.allow_oom = true;
  const auto run = run_step(*zoo::load_model("gpt2"), machine, plan, 0, options);
  EXPECT_TRUE(run) << run.error().to_string();
  return run ? run->timeline.step_time : Time(0);
}

plan::Plan plan_of(std::int64_t tp, std::int64_t pp, std::int64_t dp, std::int64_t batch) {
  plan::Plan plan;
  plan.tp = tp;
  plan.pp = pp;
  plan.dp = dp;
  plan.global_batch = batch;
  plan.attention = zoo::AttentionKernel::flash;
  return plan;
}

plan::Plan any_mixed_plan() {
  plan::Plan plan = plan_of(*rc::gen::elementOf(std::vector<std::int64_t>{1, 2, 4}),
                            *rc::gen::elementOf(std::vector<std::int64_t>{1, 2, 4}), 1, 32);
  plan.dp = 16 / (plan.tp * plan.pp);
  plan.order = *rc::gen::elementOf(std::vector<std::string>{"tp-cp-dp-pp", "tp-cp-pp-dp"});
  plan.zero = *rc::gen::inRange<std::int64_t>(0, 2);
  plan.overlap_grad_reduce = *rc::gen::arbitrary<bool>();
  plan.overlap_p2p = *rc::gen::arbitrary<bool>();
  if (plan.pp > 1 && *rc::gen::arbitrary<bool>()) {
    plan.schedule = plan::Schedule::interleaved;
    plan.chunks = 12 / plan.pp > 3 ? 2 : 3;
    plan.global_batch = 16 * plan.pp * plan.dp;
  }
  return plan;
}

RC_GTEST_PROP(Mixed, PartsOfEqualDevicesAreThePlainMachine, ()) {
  const plan::Plan plan = any_mixed_plan();
  const std::int64_t first = *rc::gen::elementOf(std::vector<std::int64_t>{8, 4, 12});
  const machine::Machine alike = mixed(first, 16 - first, renamed(plain().device));
  RC_ASSERT(step_of(alike, plan) == step_of(plain(), plan));
}

RC_GTEST_PROP(Mixed, RunsBetweenTheFasterAndTheSlowerDeviceAlone, ()) {
  const plan::Plan plan = any_mixed_plan();
  const compute::Device slow = plain("dgx-a100-80g").device;
  machine::Machine all_slow = plain();
  all_slow.device = slow;
  const Time step = step_of(mixed(8, 8, slow), plan);
  RC_ASSERT(step >= step_of(plain(), plan));
  RC_ASSERT(step <= step_of(all_slow, plan));
}

RC_GTEST_PROP(Mixed, FoldingAndShortcutsChangeNothing, ()) {
  plan::Plan plan = any_mixed_plan();
  if (plan.dp > 1 && plan.schedule != plan::Schedule::interleaved && *rc::gen::arbitrary<bool>()) {
    std::vector<std::int64_t> shares(static_cast<std::size_t>(plan.dp), 2);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      shares[i] = i < shares.size() / 2 ? 5 : 3;
      sum += shares[i];
    }
    plan.batch_shares = plan::to_batch_shares(shares);
    plan.global_batch = sum;
  }
  const machine::Machine machine = mixed(8, 8, plain("dgx-a100-80g").device);
  const Time step = step_of(machine, plan);
  RC_ASSERT(step == step_of(machine, plan, false));
  RC_ASSERT(step == step_of(machine, plan, false, false));
}

RC_GTEST_PROP(Mixed, EstimateAndBoundFollow, ()) {
  plan::Plan plan = any_mixed_plan();
  if (*rc::gen::arbitrary<bool>() && plan.dp > 1) {
    plan.batch_shares = "auto";
  }
  if (*rc::gen::arbitrary<bool>()) {
    plan.stage_layers = "auto";
  }
  const machine::Machine machine = mixed(8, 8, plain("dgx-a100-80g").device);
  const auto estimate = estimate_step(*zoo::load_model("gpt2"), machine, plan, 0);
  RC_ASSERT(estimate.has_value());
  const Time step = step_of(machine, plan);
  RC_ASSERT(estimate->time.least <= step);
  const double ratio = to_seconds(estimate->time.value) / to_seconds(step);
  RC_LOG() << plan::to_yaml(plan) << ratio;
  RC_ASSERT(ratio > 0.8 && ratio < 1.2);  // small kernels: messages and waits are most of the step
}

/// One of two equal replicas computes 6 microbatches, the other 2: nothing is exchanged before both
/// are done, so the step is that of 6 each.
TEST(BatchShares, TheLongestShareIsTheStep) {
  plan::Plan uneven = plan_of(1, 1, 2, 8);
  uneven.batch_shares = "6,2";
  EXPECT_EQ(step_of(plain(), uneven), step_of(plain(), plan_of(1, 1, 2, 12)));
  uneven.batch_shares = "2,6";
  EXPECT_EQ(step_of(plain(), uneven), step_of(plain(), plan_of(1, 1, 2, 12)));
}

TEST(BatchShares, EvenOnesAreThePlainPlan) {
  plan::Plan even = plan_of(2, 2, 2, 8);
  even.batch_shares = "4,4";
  EXPECT_EQ(step_of(plain(), even), step_of(plain(), plan_of(2, 2, 2, 8)));
}

TEST(BatchShares, MistakesSayWhatIsRight) {
  const auto refusal = [](const std::string& shares, std::int64_t zero = 0) {
    plan::Plan plan = plan_of(1, 1, 4, 16);
    plan.batch_shares = shares;
    plan.zero = zero;
    const auto ok = plan::check(plan, *zoo::load_model("gpt2"));
    EXPECT_FALSE(ok) << shares;
    return ok ? std::string() : ok.error().to_string();
  };
  EXPECT_THAT(refusal("4*3"), HasSubstr("shares of dp = 4 replicas (here 3)"));
  EXPECT_THAT(refusal("4*5"), HasSubstr("shares of dp = 4 replicas"));
  EXPECT_THAT(refusal("5*2,4*2"), HasSubstr("here 18 sequences"));
  EXPECT_THAT(refusal("0,8*2"), HasSubstr("each 1 or more"));
  EXPECT_THAT(refusal("six"), HasSubstr("'12*8,4*8'"));
  EXPECT_THAT(refusal("6*2,2*2", 3), HasSubstr("zero 2 and 3"));
}

/// On a device whose every rate is half everything takes twice as long. Llama 3 8B: a layer has
/// 218 M parameters and, of 8,192 tokens, attention as of 32 M more; its head (128,256 x 4096)
/// takes as long as 2.1 layers. Of 34.1 layers' worth the fast stage, the first, has 2/3 = 22.7: 23
/// layers, 23 / 1 against (9 + 2.1) / 0.5 = 22.2. Of 12 microbatches the fast replicas have 4 each
/// of two, the others 2.
TEST(Proportion, FollowsWhatDevicesDo) {
  compute::Device half = renamed(plain().device);
  for (FlopRate& peak : half.peak) {
    peak = peak * 0.5;
  }
  half.memory[0].bandwidth = half.memory[0].bandwidth * 0.5;
  half.kernels.gemm_launch = half.kernels.gemm_launch * 2;
  half.kernels.stream_launch = half.kernels.stream_launch * 2;
  half.kernels.attention_launch = half.kernels.attention_launch * 2;
  half.kernels.gemm_split_latency = half.kernels.gemm_split_latency * 2;
  const machine::Machine machine = mixed(8, 8, half);
  const zoo::Model model = *zoo::load_model("llama-3-8b");
  plan::Plan stages = plan_of(8, 2, 1, 8);
  stages.tp = 4;
  stages.dp = 2;
  stages.stage_layers = "auto";
  EXPECT_EQ(parallel::in_proportion(stages, model, machine).stage_layers, "23,9");
  plan::Plan replicas = plan_of(8, 1, 2, 12);
  replicas.tp = 4;
  replicas.dp = 4;
  replicas.batch_shares = "auto";
  EXPECT_EQ(parallel::in_proportion(replicas, model, machine).batch_shares, "4*2,2*2");
}

/// Never slower than the even split of the same plan where kernels are all there is.
TEST(Proportion, SharesOfTheBatchAreFasterThanEvenOnes) {
  const machine::Machine machine = mixed(8, 8, plain("dgx-a100-80g").device);
  plan::Plan plan = plan_of(1, 1, 16, 256);
  const Time even = step_of(machine, plan);
  plan.batch_shares = "auto";
  const Time follows = step_of(machine, plan);
  EXPECT_LT(follows, even * 0.85);
  EXPECT_GE(follows, step_of(plain(), plan_of(1, 1, 16, 256)));
}

TEST(Mixed, MemoryIsThatOfTheRanksOwnDevice) {
  compute::Device small = renamed(plain().device);
  small.memory[0].capacity = 4_GiB;
  const plan::Plan plan = plan_of(1, 2, 8, 32);
  const auto run = run_step(*zoo::load_model("gpt2"), mixed(8, 8, small), plan, 0, {});
  if (run) {
    EXPECT_EQ(run->memory[1].capacity, 4_GiB);
    EXPECT_LE(run->memory[1].total(), 4_GiB);
  } else {
    EXPECT_THAT(run.error().to_string(), HasSubstr("stage 1"));
    EXPECT_THAT(run.error().to_string(), HasSubstr("4 GiB"));
  }
  small.memory[0].capacity = 80_GiB;
  const auto roomy = run_step(*zoo::load_model("gpt2"), mixed(8, 8, small), plan, 0, {});
  ASSERT_TRUE(roomy) << roomy.error().to_string();
  EXPECT_EQ(roomy->memory[0].capacity, plain().device.memory[0].capacity);
  EXPECT_LT(roomy->memory[0].capacity, 80_GiB);  // what the driver shows of an H100's 80 GB
  EXPECT_EQ(roomy->memory[1].capacity, 80_GiB);
}

/// The first of three replicas of each stage has its first four ranks on one part: 4 and 6 do not
/// divide one another, so roles are listed by rank.
TEST(Mixed, PartsMayStraddleStages) {
  machine::Machine machine = mixed(4, 8, plain("dgx-a100-80g").device);
  machine.network.erase(machine.network.begin());  // one switch
  machine::Machine fast = plain();
  fast.network.erase(fast.network.begin());
  const plan::Plan plan = plan_of(2, 2, 3, 12);
  const Time step = step_of(machine, plan);
  EXPECT_GT(step, step_of(fast, plan));
  EXPECT_EQ(step, step_of(machine, plan, false, false));
  machine.parts[1].device = renamed(machine.parts[0].device);
  machine.device = machine::mean_device(machine.parts);
  EXPECT_EQ(step_of(machine, plan), step_of(fast, plan));
}

TEST(Mixed, PartsAreTakenInTheOrderOfThePlan) {
  const machine::Machine machine = mixed(8, 8, plain("dgx-a100-80g").device);
  plan::Plan plan = plan_of(1, 1, 8, 32);
  plan.parts = "h";
  EXPECT_EQ(step_of(machine, plan), step_of(plain(), plan_of(1, 1, 8, 32)));
  plan.parts = "none";
  const auto refused = run_step(*zoo::load_model("gpt2"), machine, plan, 0, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(), HasSubstr("parts"));
}

}  // namespace
}  // namespace orrery::study
