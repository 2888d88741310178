// SPDX-License-Identifier: Apache-2.0
// The interval holds the simulation, which shares no code with it but the lowering of blocks and
// the models of kernels, collectives and links: its lower end is never above it, its value is near
// it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cases.h"
#include "estimate/estimate.h"
#include "random_plans.h"
#include "simulate/simulate.h"
#include "workload/parallel/lower.h"
#include "workload/plan/layout.h"

namespace orrery::estimate {
namespace {

using testing::Case;

Result<double> simulated(const zoo::Model& model, const plan::Plan& plan,
                         const machine::Machine& machine) {
  const auto workload = parallel::lower(model, plan, {.machine = &machine});
  if (!workload) {
    return fail(workload.error());
  }
  simulate::SimulateOptions options;
  options.algorithms = plan::algorithms_of(plan);
  const auto timeline = simulate::simulate(*workload, machine, options);
  if (!timeline) {
    return fail(timeline.error());
  }
  return to_seconds(timeline->step_time);
}

Result<double> simulated(const Case& c) {
  return machine::load_machine(c.machine)
      .and_then([&](const machine::Machine& open) {
        return machine::with_devices(open, c.plan.devices());
      })
      .and_then(
          [&](const machine::Machine& machine) { return simulated(c.model, c.plan, machine); });
}

/// Values are within `tolerance` of the simulation.
void compare(const std::vector<Case>& cases, double tolerance) {
  double worst = 0;
  for (const Case& c : cases) {
    const auto truth = simulated(c);
    ASSERT_TRUE(truth) << c.name << ": " << truth.error().to_string();
    const auto machine = machine::load_machine(c.machine);
    ASSERT_TRUE(machine);
    const auto interval = Estimator(c.model, *machine).interval(c.plan);
    ASSERT_TRUE(interval) << c.name << ": " << interval.error().to_string();
    const double difference = to_seconds(interval->value) / *truth - 1;
    worst = std::max(worst, std::abs(difference));
    fmt::print("{:<36} simulate {:9.4f} s  at least {:5.1f} %  value {:+6.2f} %\n", c.name, *truth,
               100 * to_seconds(interval->least) / *truth, 100 * difference);
    EXPECT_LE(to_seconds(interval->least), *truth) << c.name;
    EXPECT_LE(std::abs(difference), tolerance) << c.name;
    EXPECT_EQ(interval->compute + interval->exposed + interval->bubble + interval->tail,
              interval->value)
        << c.name;
  }
  fmt::print("largest difference {:.2f} %\n", 100 * worst);
}

/// A pipeline in which nothing runs beside kernels but its messages.
plan::Plan quiet_pipeline(std::int64_t batch) {
  plan::Plan plan{.tp = 8, .pp = 4, .dp = 1, .microbatch = 1, .global_batch = batch};
  plan.sequence = 2048;
  plan.overlap_p2p = true;
  return plan;
}

TEST(Interval, IsNarrowWhereNothingContends) {
  const auto model = *zoo::load_model("gpt-7.5b");
  const auto machine = *machine::load_machine("dgx-h100");
  for (const plan::Schedule schedule :
       {plan::Schedule::one_f_one_b, plan::Schedule::zb_h1, plan::Schedule::gpipe}) {
    plan::Plan plan = quiet_pipeline(16);
    plan.schedule = schedule;
    const auto truth = simulated({"quiet", "dgx-h100", model, plan});
    const auto interval = Estimator(model, machine).interval(plan);
    ASSERT_TRUE(truth && interval);
    EXPECT_LE(to_seconds(interval->least), *truth) << name_of(schedule);
    EXPECT_GE(to_seconds(interval->least) / *truth, 0.97) << name_of(schedule);
    EXPECT_NEAR(to_seconds(interval->value) / *truth, 1, 0.02) << name_of(schedule);
  }
}

/// In the steady state a microbatch more is a period more: from 64 to 128 as long as from 60,032 to
/// 60,096, of which only some are run.
TEST(Interval, GrowsByTheSameForEveryMicrobatch) {
  Estimator estimator(*zoo::load_model("gpt-7.5b"), *machine::load_machine("dgx-h100"));
  const auto of = [&](std::int64_t batch) { return *estimator.interval(quiet_pipeline(batch)); };
  const Time few = of(128).value - of(64).value;
  EXPECT_GT(few, Time(0));
  EXPECT_NEAR((of(60'096).value - of(60'032).value) / few, 1, 1e-6);
  EXPECT_GT(of(60'096).least, of(60'032).least);
}

TEST(Interval, WithinThreePercentOnTheRunsOfSC21) {
  compare(testing::sc21_cases());
}

TEST(Interval, WithinThreePercentOnTheRunsOfKorthikanti2022) {
  compare(testing::korthikanti_cases());
}

TEST(Interval, WithinThreePercentOnVTrainsClusters) {
  compare(testing::vtrain_multi_cases());
}

TEST(Interval, WithinThreePercentOnVTrainsNodesWhereTheHostIsTheLimit) {
  compare(testing::vtrain_single_cases());
}

TEST(Interval, WithinFourPercentOnEveryOverlapAndSchedule) {
  compare(testing::planner_cases());
}

TEST(Interval, HoldsForAnyNumberOfChunks) {
  // Two microbatches of up to 48 chunks each, whose messages and reductions share the network's
  // ports: a closed form of the schedule was 29 % short of the last of these.
  std::vector<Case> cases;
  for (const std::int64_t chunks : {1, 2, 4, 8, 12, 24}) {
    Case c{"gpt-22b chunks " + std::to_string(chunks),
           "dgx-a100-80g",
           *zoo::load_model("gpt-22b"),
           {}};
    c.plan = {.tp = 8, .pp = 2, .dp = 4, .chunks = chunks, .microbatch = 8, .global_batch = 64};
    c.plan.schedule = chunks > 1 ? plan::Schedule::interleaved : plan::Schedule::one_f_one_b;
    c.plan.recompute = plan::Recompute::full;
    c.plan.zero = 1;
    c.plan.overlap_p2p = c.plan.overlap_grad_reduce = true;
    c.plan.sequence = 2048;
    cases.push_back(std::move(c));
  }
  compare(cases);
}

TEST(Interval, HoldsWhereReductionsFallFurtherAndFurtherBehind) {
  // No round is like another, and most are not evaluated (replay.h).
  std::vector<Case> cases;
  for (const std::int64_t chunks : {1, 2, 4}) {
    Case c{"gpt-22b zero 2 chunks " + std::to_string(chunks),
           "dgx-a100-80g",
           *zoo::load_model("gpt-22b"),
           {}};
    c.plan = {.tp = 4, .pp = 2, .dp = 1, .cp = 8, .chunks = chunks, .microbatch = 1};
    c.plan.schedule = chunks > 1 ? plan::Schedule::interleaved : plan::Schedule::one_f_one_b;
    c.plan.global_batch = 96;
    c.plan.sequence = 2048;
    c.plan.attention = zoo::AttentionKernel::flash;
    c.plan.zero = 2;
    c.plan.overlap_grad_reduce = c.plan.overlap_p2p = true;
    cases.push_back(std::move(c));
  }
  compare(cases);
}

TEST(Interval, HoldsWhereCopiesToTheHostShareThePortOfCollectives) {
  std::vector<Case> cases;
  for (const char* machine : {"l40s", "rtx-pro-6000", "rtx4080-pcie4-8"}) {
    for (const double share : {0.5, 1.0}) {
      for (const std::int64_t tp : {2, 8}) {
        Case c{fmt::format("gpt2-medium on {}, tp {}, {} of activations", machine, tp, share),
               machine,
               *zoo::load_model("gpt2-medium"),
               {}};
        c.plan = {.tp = tp, .dp = 8 / tp, .global_batch = 16};
        c.plan.zero = tp == 2 ? 1 : 0;
        c.plan.overlap_grad_reduce = tp == 2;
        c.plan.offload_activations = share;
        c.plan.sequence = 1024;
        cases.push_back(std::move(c));
      }
    }
  }
  compare(cases, 0.04);          // 3.6 % where reductions, copies and tp share one port
  for (const Case& c : cases) {  // nothing gets faster by sharing
    auto machine = machine::load_machine(c.machine);
    const auto shared = machine::with_devices(*machine, 8);
    for (compute::MemoryTier& tier : machine->device.memory) {
      tier.through.clear();
    }
    const auto apart = machine::with_devices(*machine, 8);
    const auto with = simulated(c.model, c.plan, *shared);
    const auto without = simulated(c.model, c.plan, *apart);
    ASSERT_TRUE(with && without);
    EXPECT_GE(*with, *without * (1 - 1e-9)) << c.name;
  }
}

TEST(Interval, FollowsThePlansOrder) {
  // With dp innermost the tp groups cross nodes: half as fast again.
  std::vector<Case> cases;
  for (const char* order : {"tp-cp-dp-pp", "tp-cp-pp-dp", "dp-tp-cp-pp"}) {
    Case c{std::string("gpt-7.5b ") + order, "dgx-a100-80g", *zoo::load_model("gpt-7.5b"), {}};
    c.plan = {.tp = 4, .pp = 4, .dp = 8, .global_batch = 128};
    c.plan.order = order;
    cases.push_back(std::move(c));
  }
  compare(cases);
}

/// What random plans showed to be up to 15 % off while nodes took ports and the host in the order
/// in which they are issued, messages did not meet, and fused communication was left out.
TEST(Interval, HoldsWherePortsAndTheHostAreTakenInTheOrderOfTime) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& model, const std::string& machine, plan::Plan plan) {
    plan.schedule = plan.chunks > 1 ? plan::Schedule::interleaved : plan::Schedule::one_f_one_b;
    cases.push_back({model + " on " + machine, machine, *zoo::load_model(model), std::move(plan)});
  };
  plan::Plan plan{.tp = 2, .dp = 2, .ep = 4, .etp = 1, .sequence_parallel = true};
  plan.microbatch = 2;
  plan.global_batch = 64;
  plan.sequence = 1024;
  plan.overlap_ep = plan::OverlapExperts::shared;  // token exchange beside the shared expert's sums
  add("deepseek-v2-lite", "l40s", plan);
  plan = {.dp = 4, .global_batch = 4};
  plan.sequence = 1024;
  plan.expert_gemms = plan::ExpertGemms::per_expert;
  plan.overlap_grad_reduce = true;  // beside kernels that wait for the host
  plan.host_dispatch = 40_us;
  add("gpt-oss-20b", "gb200-nvl72", plan);
  plan = {.tp = 2, .pp = 4, .dp = 2, .sequence_parallel = true, .global_batch = 8};
  plan.sequence = 1024;
  plan.zero = 3;
  plan.overlap_param_gather = plan.host_sync = true;  // gathers ahead of a host that waits
  add("gpt-oss-20b", "mi300x", plan);
  plan = {.tp = 8, .pp = 8, .chunks = 4, .global_batch = 32};  // messages longer than passes
  add("llama-3-8b", "dgx-h100", plan);
  plan = {.tp = 4, .pp = 8, .global_batch = 24};
  plan.sequence = 2048;
  plan.fuse_communication = true;
  add("llama-3-8b", "dgx-b200", plan);
  compare(cases);
  for (const Case& c : cases) {
    const auto bound = Estimator(c.model, *machine::load_machine(c.machine)).lower_bound(c.plan);
    const auto truth = simulated(c);
    ASSERT_TRUE(bound && truth) << c.name;
    EXPECT_LE(to_seconds(*bound), *truth) << c.name;
  }
}

/// Differences of random plans, and the bound of each.
struct Sample {
  std::vector<double> differences;  ///< absolute, ascending
  int plans = 0;

  double share_above(double tolerance) const {
    const auto above = std::upper_bound(differences.begin(), differences.end(), tolerance);
    return static_cast<double>(differences.end() - above) / static_cast<double>(plans);
  }
  double at(double share) const {
    return differences[static_cast<std::size_t>(share * (static_cast<double>(plans) - 1))];
  }
};

Sample sample(testing::RandomPlans& plans, int count) {
  Sample sample;
  for (; sample.plans < count; ++sample.plans) {
    const auto drawn = plans.next();
    const Case& c = drawn.plan;
    const auto truth = simulated(c.model, c.plan, drawn.machine);
    EXPECT_TRUE(truth) << c.name << plan::to_yaml(c.plan) << truth.error().to_string();
    if (!truth) {
      continue;
    }
    Estimator estimator(c.model, drawn.machine);
    const auto estimate = estimator.estimate(c.plan);
    const auto bound = estimator.lower_bound(c.plan);
    EXPECT_TRUE(estimate && bound) << c.name << plan::to_yaml(c.plan);
    if (estimate && bound) {
      sample.differences.push_back(std::abs(to_seconds(estimate->step_time) / *truth - 1));
      EXPECT_LE(to_seconds(*bound), *truth) << c.name << plan::to_yaml(c.plan);
    }
  }
  std::sort(sample.differences.begin(), sample.differences.end());
  fmt::print("{} random plans: median {:.3f} %, 95th percentile {:.2f} %, largest {:.2f} %\n",
             sample.plans, 100 * sample.at(0.5), 100 * sample.at(0.95), 100 * sample.at(1));
  return sample;
}

TEST(Interval, HoldsForNineteenOfTwentyRandomPlans) {
  testing::RandomPlans plans({.seed = 2026, .machines = testing::kSwitchedMachines});
  const Sample of_switches = sample(plans, 150);
  EXPECT_LE(of_switches.share_above(kTolerance), 0.05);
  EXPECT_LE(of_switches.at(1), 0.1);
}

TEST(Interval, HoldsForEveryRandomPlanOnATorus) {
  // Groups of all stages cross one another's links: run by events, of more microbatches than two
  // fills of the pipeline and some by the difference of two such runs (estimate/event_run.h).
  testing::RandomPlans plans({.seed = 2026, .machines = testing::kTorusMachines});
  const Sample of_tori = sample(plans, 40);
  EXPECT_LE(of_tori.at(1), 0.01);
}

/// How many of `count` plans are answered by maps where they are far beyond a limit. What is
/// answered depends on the limit, not on what was asked before.
int far_beyond(testing::RandomPlans& plans, int count) {
  int far = 0;
  for (int i = 0; i < count;) {
    const auto drawn = plans.next();
    Estimator estimator(drawn.plan.model, drawn.machine);
    const auto events = estimator.estimate(drawn.plan.plan);
    if (!events || events->at_least == Time(0)) {
      continue;
    }
    ++i;
    EXPECT_LE(events->at_least, events->step_time) << drawn.plan.name;
    for (const double share : {0.95, 1.05}) {
      const Time limit = events->at_least * share;
      const auto again = estimator.estimate(drawn.plan.plan, limit);
      const auto first =
          Estimator(drawn.plan.model, drawn.machine).estimate(drawn.plan.plan, limit);
      EXPECT_EQ(again->step_time, first->step_time);
      if (share > 1) {
        EXPECT_EQ(first->step_time, events->step_time);
      } else {
        EXPECT_GT(first->step_time, limit);
        far += first->step_time != events->step_time ? 1 : 0;
      }
    }
  }
  return far;
}

TEST(Interval, PlansFarBeyondTheLimitAreNotRunByEvents) {
  // Maps alone say so of several stages: 1.3 times the limit where groups cross one another's
  // links, 1.1 times where messages are long.
  testing::RandomPlans of_tori({.seed = 11, .machines = testing::kTorusMachines});
  EXPECT_GT(far_beyond(of_tori, 16), 0);  // maps and events differ
  testing::RandomPlans of_switches({.seed = 11, .machines = testing::kSwitchedMachines});
  EXPECT_GT(far_beyond(of_switches, 16), 0);
}

TEST(Interval, HoldsForManyMicrobatchesOnATorus) {
  // 40 of each replica, 4 stages inside: gpipe runs 12 and 24, interleaved 12 and 28 of them.
  std::vector<Case> cases;
  for (const auto schedule : {plan::Schedule::gpipe, plan::Schedule::one_f_one_b,
                              plan::Schedule::interleaved, plan::Schedule::zb_h1}) {
    Case c{fmt::format("llama-3-8b on tpu-v4, schedule {}", static_cast<int>(schedule)),
           "tpu-v4",
           *zoo::load_model("llama-3-8b"),
           {}};
    c.plan = {.tp = 2, .pp = 4, .dp = 2, .global_batch = 80};
    c.plan.schedule = schedule;
    c.plan.chunks = schedule == plan::Schedule::interleaved ? 2 : 1;
    c.plan.order = "pp-tp-cp-dp";
    c.plan.sequence = 1024;
    cases.push_back(std::move(c));
  }
  compare(cases, 0.01);
}

}  // namespace
}  // namespace orrery::estimate
