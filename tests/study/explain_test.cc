// SPDX-License-Identifier: Apache-2.0
#include "study/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace orrery::study {
namespace {

plan::Plan explained_plan() {
  plan::Plan plan;
  plan.tp = 1;
  plan.pp = 1;
  plan.dp = 1;
  plan.global_batch = 4;
  return plan;
}

Explanation explained(const plan::Plan& plan, const machine::Machine& machine,
                      ExplainOptions options = {}) {
  auto result = explain(zoo::load_model("gpt2").value(), machine, plan, 0, options);
  EXPECT_TRUE(result) << result.error().to_string();
  return std::move(*result);
}

machine::Machine a100() {
  return machine::load_machine("dgx-a100-80g").value();
}

const Sensitivity* find_knob(const Explanation& all, const std::string& name) {
  for (const Sensitivity& effect : all.sensitivities) {
    if (effect.resource.name == name) {
      return &effect;
    }
  }
  return nullptr;
}

TEST(Explain, OneDeviceIsAllKernels) {
  const auto all = explained(explained_plan(), a100(), {.next_bottleneck = false});
  EXPECT_EQ(all.path[PathKind::kernel], all.path.step_time);
}

TEST(Explain, ElasticitiesOfAllThatOneDeviceHasSumToMinusOne) {
  // Euler: the time is homogeneous of degree -1 in all rates and 1/times together; steps of 10 %
  // over the kinks of max() leave a few percent.
  const auto all = explained(explained_plan(), a100(), {.next_bottleneck = false});
  double sum = 0;
  for (const Sensitivity& effect : all.sensitivities) {
    sum += effect.elasticity;
  }
  EXPECT_NEAR(sum, -1, 0.03);
  EXPECT_EQ(find_knob(all, "nvlink bandwidth"), nullptr) << "there is no link on one device";
}

TEST(Explain, ElasticityIsThatOfTheTimesItStates) {
  const auto all = explained(explained_plan(), a100(), {.next_bottleneck = false});
  const Sensitivity& compute = *find_knob(all, "compute peak");
  const double ratio = compute.step_time / all.path.step_time;
  EXPECT_DOUBLE_EQ(compute.change, ratio - 1);
  EXPECT_DOUBLE_EQ(compute.elasticity, std::log(ratio) / std::log(1.1));
  const Sensitivity& launch = *find_knob(all, "kernel launch");
  EXPECT_DOUBLE_EQ(launch.elasticity,
                   std::log(launch.step_time / all.path.step_time) / std::log(1 / 0.9));
}

TEST(Explain, ASlowNetworkIsNamed) {
  plan::Plan plan = explained_plan();
  plan.dp = 16;
  plan.global_batch = 16;
  machine::Machine machine = a100();
  machine.network.back().bandwidth = Bandwidth(4e8);
  const auto all = explained(plan, machine);
  EXPECT_EQ(all.sensitivities.front().resource.name, "infiniband bandwidth");
  EXPECT_LT(all.sensitivities.front().elasticity, -0.9);
  EXPECT_EQ(all.path.categories.front().name, "dp all_reduce");
  ASSERT_TRUE(all.next);
  EXPECT_NE(all.next->resource.name, "infiniband bandwidth");
  EXPECT_GT(all.next->factor, 1);
  EXPECT_LT(all.next->step_time, all.path.step_time);
}

TEST(Explain, TheNextBottleneckLeadsAtItsFactorAndNotBefore) {
  const plan::Plan plan = explained_plan();
  const auto all = explained(plan, a100());
  ASSERT_TRUE(all.next);
  const Resource strongest = all.sensitivities.front().resource;
  const auto leader_at = [&](double factor) {
    machine::Machine machine = all.run.machine;
    plan::Plan scaled = plan;
    scale(strongest, factor, machine, scaled);
    return explained(scaled, machine, {.next_bottleneck = false})
        .sensitivities.front()
        .resource.name;
  };
  EXPECT_EQ(leader_at(all.next->factor), all.next->resource.name);
  EXPECT_EQ(leader_at(all.next->factor / std::pow(2, 1.0 / 15)), strongest.name);
}

TEST(Explain, ASlowHostIsTheBottleneck) {
  plan::Plan plan = explained_plan();
  plan.host_dispatch = 1_ms;
  const auto all = explained(plan, a100(), {.next_bottleneck = false});
  EXPECT_EQ(all.sensitivities.front().resource.name, "host dispatch");
  EXPECT_GT(all.path[PathKind::host] / all.path.step_time, 0.9);
}

TEST(Explain, TheNumberOfThreadsChangesNothing) {
  plan::Plan plan = explained_plan();
  plan.tp = 2;
  const auto one = explained(plan, a100(), {.threads = 1});
  const auto four = explained(plan, a100(), {.threads = 4});
  ASSERT_EQ(one.sensitivities.size(), four.sensitivities.size());
  for (std::size_t i = 0; i < one.sensitivities.size(); ++i) {
    EXPECT_EQ(one.sensitivities[i].resource, four.sensitivities[i].resource);
    EXPECT_EQ(one.sensitivities[i].step_time, four.sensitivities[i].step_time);
  }
  ASSERT_EQ(one.next.has_value(), four.next.has_value());
  EXPECT_EQ(one.next->factor, four.next->factor);
}

TEST(Explain, MistakesAreThoseOfTheRun) {
  plan::Plan plan = explained_plan();
  plan.tp = 7;  // does not divide 12 heads
  EXPECT_FALSE(explain(zoo::load_model("gpt2").value(), a100(), plan, 0));
}

TEST(Resource, ScalingTouchesNothingElse) {
  machine::Machine machine = a100();
  machine.remote_memory = machine::load_machine("hiermem-opt").value().remote_memory;
  plan::Plan plan = explained_plan();
  plan.host_dispatch = 5_us;
  for (const Resource& resource : resources_of(machine, plan)) {
    machine::Machine scaled = machine;
    plan::Plan scaled_plan = plan;
    scale(resource, 2, scaled, scaled_plan);
    EXPECT_FALSE(scaled == machine && scaled_plan == plan) << resource.name;
    scale(resource, 0.5, scaled, scaled_plan);
    EXPECT_TRUE(scaled == machine && scaled_plan == plan) << resource.name;
  }
}

TEST(Explain, ASlowRemoteMemoryIsTheBottleneck) {
  // States of 12 bytes a parameter at 1 GB/s each way, far slower than all kernels.
  machine::Machine machine = machine::load_machine("zero-infinity").value();
  machine.remote_memory.bandwidth = 1_GBps;
  plan::Plan plan = explained_plan();
  plan.offload_optimizer = plan::Offload::remote;
  const auto all = explained(plan, machine, {.next_bottleneck = false});
  EXPECT_LT(find_knob(all, "remote memory bandwidth")->elasticity, -0.9);
  EXPECT_EQ(find_knob(all, "pool fabric bandwidth"), nullptr)
      << "a memory per device has no fabric";
}

/// More of anything never hurts a step without shared links (for others: Sensitivity::anomaly).
void expect_more_is_not_slower(const plan::Plan& plan) {
  const auto all = explained(plan, a100(), {.next_bottleneck = false, .threads = 1});
  for (const Sensitivity& effect : all.sensitivities) {
    EXPECT_FALSE(effect.anomaly()) << effect.resource.name;
    EXPECT_GT(effect.elasticity, -1.02) << effect.resource.name;
  }
}

TEST(Explain, MoreOfAResourceIsNeverSlower) {
  plan::Plan plan = explained_plan();
  for (const std::int64_t tp : {1, 2, 4}) {
    for (const std::int64_t dp : {1, 2}) {
      plan.tp = tp;
      plan.dp = dp;
      plan.global_batch = 2 * dp;
      for (const Time dispatch : {0_us, 5_us, 60_us}) {
        plan.host_dispatch = dispatch;
        plan.sequence = dispatch == 5_us ? 1024 : 128;
        expect_more_is_not_slower(plan);
      }
    }
  }
}

TEST(Explain, ItsProgressNeverGoesBackAndEndsAtOne) {
  std::vector<double> shares;
  ExplainOptions options;
  options.threads = 1;
  options.progress = [&](double share) { shares.push_back(share); };
  explained(explained_plan(), a100(), options);
  ASSERT_FALSE(shares.empty());
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_DOUBLE_EQ(shares.back(), 1);
}

}  // namespace
}  // namespace orrery::study
