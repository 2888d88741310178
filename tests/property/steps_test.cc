// SPDX-License-Identifier: Apache-2.0
// Runs of several training steps: what a step takes among others, rounds with an all-reduce beside
// the next round, and shortcuts that change nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "../simulate/builder.h"
#include "../workload/parallel/cases.h"
#include "../workload/parallel/outer.h"
#include "simulate/simulate.h"

namespace orrery {
namespace {

machine::Machine nodes_of(std::int64_t ranks) {
  const std::int64_t inner = ranks % 2 == 0 ? ranks / 2 : ranks;
  return testing::machine_of(
      {testing::dimension(topology::DimensionKind::switched, inner),
       testing::dimension(topology::DimensionKind::switched, ranks / inner)});
}

simulate::Timeline run_of(const graph::Workload& workload, std::int64_t warm = 0,
                          bool shortcuts = true) {
  simulate::SimulateOptions options;
  options.shortcuts = shortcuts;
  options.warm_steps = warm;
  return simulate::simulate(workload, nodes_of(workload.ranks), options).value();
}

Time total(const simulate::Breakdown& breakdown) {
  Time sum{0};
  for (const Time time : breakdown.time) {
    sum += time;
  }
  return sum;
}

graph::Workload steps_of(const plan::Plan& plan, std::int64_t steps) {
  parallel::LowerOptions options;
  options.steps = steps;
  return cases::lowered(cases::small_gpt(4), plan, options);
}

TEST(Steps, OfOneStageTakeTheirTimeOneAfterTheOther) {
  // Also where the next step begins with gathers of what this one has updated, or loads a batch.
  plan::Plan ahead{.tp = 2, .dp = 2};
  ahead.global_batch = 12;
  ahead.zero = 1;
  ahead.sequence_parallel = ahead.overlap_grad_reduce = ahead.overlap_param_gather = true;
  plan::Plan sharded{.dp = 2};
  sharded.global_batch = 8;
  sharded.zero = 3;
  sharded.overlap_param_gather = true;
  plan::Plan plain = sharded;
  plain.zero = 1;
  plain.overlap_param_gather = false;
  for (const plan::Plan& plan : {plan::Plan{.global_batch = 6}, plain, ahead, sharded}) {
    const Time one = run_of(steps_of(plan, 1)).step_time;
    const simulate::Timeline five = run_of(steps_of(plan, 5), 2);
    EXPECT_EQ(five.run_time, 5 * one);
    EXPECT_EQ(five.step_time, one);
    EXPECT_EQ(five.step_ends, (std::vector<Time>{one, 2 * one, 3 * one, 4 * one, 5 * one}));
    EXPECT_EQ(total(five.breakdown), one);
  }
}

TEST(Steps, AreAveragedAfterTheWarmUp) {
  // A host that dispatches in 40 us begins the first step late; from the second on it is ahead.
  plan::Plan plan{.global_batch = 4};
  plan.host_dispatch = 40_us;
  const simulate::Timeline all = run_of(steps_of(plan, 4));
  const simulate::Timeline late = run_of(steps_of(plan, 4), 1);
  EXPECT_EQ(all.step_ends, late.step_ends);
  EXPECT_EQ(all.step_time.value(), all.step_ends[3].value() / 4);
  EXPECT_EQ(late.step_time.value(), (late.step_ends[3] - late.step_ends[0]).value() / 3);
  EXPECT_EQ(total(late.breakdown), late.step_time);
  EXPECT_EQ(run_of(steps_of(plan, 1)).step_time, all.step_ends[0]);
}

TEST(Steps, ARoundTakesItsStepsOrItsAllReduce) {
  // T_round = max(tau t + t_outer, T_allreduce); from the third round on nothing is new.
  const zoo::Model model = cases::small_gpt(2);
  const plan::Plan plan{.dp = 2, .global_batch = 4};
  constexpr std::int32_t kTau = 3;
  constexpr std::int64_t kRounds = 6;
  const Time step =
      run_of(cases::lowered_with_outer(model, plan, 1, {.every = 2}, "gradients")).step_time;
  for (const double share : {0.2, 0.9, 1.1, 4.0}) {
    const Time update = step / 10;
    const Bytes bytes(static_cast<std::int64_t>(share * to_seconds(kTau * step) * 1e9));
    const Time all_reduce =
        run_of(
            testing::workload_of({{{plan::Axis::tp, 1}, {plan::Axis::dp, 2}, {plan::Axis::pp, 1}}},
                                 {{testing::collective_node("a", plan::Axis::dp, bytes)}}))
            .step_time;
    const cases::Outer outer{.every = kTau, .bytes = bytes, .update = update};
    const graph::Workload workload =
        cases::lowered_with_outer(model, plan, kTau * kRounds, outer, "gradients");
    const auto verified = graph::verify(workload);
    ASSERT_TRUE(verified) << (verified ? "" : verified.error().to_string());
    const simulate::Timeline run = run_of(workload);
    const Time round = std::max(kTau * step + update, all_reduce);
    for (std::size_t r = 2; r < kRounds; ++r) {
      EXPECT_EQ(run.step_ends[(r + 1) * kTau - 1] - run.step_ends[r * kTau - 1], round)
          << share << " round " << r;
    }
    // The last all-reduce begins when the last round and the one before it are done.
    EXPECT_EQ(run.run_time, run.step_ends.back() - update + std::max(all_reduce, update));
    // The two rounds that end late are half of the warm-up.
    EXPECT_EQ(run_of(workload, 2 * kTau).step_time.value(),
              (run.step_ends.back() - run.step_ends[2 * kTau - 1]).value() / (4 * kTau));
  }
}

TEST(Steps, OneOfARunIsTheStep) {
  EXPECT_EQ(run_of(steps_of({.global_batch = 2}, 1)).step_ends.size(), 1U);
  const graph::Workload alone = cases::lowered(cases::small_gpt(4), {.global_batch = 2});
  EXPECT_EQ(steps_of({.global_batch = 2}, 1).programs[0].templates, alone.programs[0].templates);
}

// ---- Random runs.

std::int64_t pick_of(std::initializer_list<std::int64_t> values) {
  return *rc::gen::elementOf(std::vector<std::int64_t>(values));
}
bool toss() {
  return *rc::gen::arbitrary<bool>();
}

plan::Plan any_step_plan() {
  plan::Plan plan;
  plan.pp = pick_of({1, 2, 4});
  plan.tp = pick_of({1, 2});
  plan.dp = pick_of({1, 2});
  plan.zero = pick_of({0, 1, 3});
  plan.sequence_parallel = plan.tp > 1 && toss();
  plan.overlap_p2p = toss();
  plan.overlap_grad_reduce = toss();
  plan.overlap_param_gather = toss();
  plan.host_dispatch = 1_us * pick_of({0, 0, 40});
  plan.global_batch = plan.dp * *rc::gen::inRange<std::int64_t>(1, 12);
  return plan;
}

TEST(Steps, OfAnyPlanTakeNoLongerThanEachAlone) {
  const zoo::Model model = cases::small_gpt(8);
  int compared = 0;
  EXPECT_TRUE(rc::check("a run takes no longer than its steps", [&] {
    const plan::Plan plan = any_step_plan();
    RC_PRE(plan::check(plan, model).has_value());
    parallel::LowerOptions options;
    const Time one = run_of(cases::lowered(model, plan, options)).step_time;
    options.steps = 4;
    const simulate::Timeline four = run_of(cases::lowered(model, plan, options));
    RC_ASSERT(four.run_time <= 4 * one);
    RC_ASSERT(plan.pp > 1 || plan.host_dispatch > Time(0) || four.run_time == 4 * one);
    ++compared;
  }));
  EXPECT_GT(compared, 40);
}

TEST(Steps, ShortcutsChangeNothingInARun) {
  const zoo::Model model = cases::small_gpt(8);
  int compared = 0;
  EXPECT_TRUE(rc::check("shortcuts change nothing in a run", [&] {
    plan::Plan plan = any_step_plan();
    plan.global_batch *= pick_of({1, 6});
    RC_PRE(plan::check(plan, model).has_value());
    const std::int64_t steps = pick_of({2, 9, 40});
    const cases::Outer outer{.every = static_cast<std::int32_t>(pick_of({1, 2, 3})),
                             .bytes = Bytes(pick_of({1'000, 3'000'000, 40'000'000})),
                             .update = 1_us * pick_of({1, 500})};
    const graph::Workload workload = cases::lowered_with_outer(model, plan, steps, outer);
    RC_ASSERT(graph::verify(workload).has_value());
    const std::int64_t warm = pick_of({0, 1, steps / 2});
    RC_LOG(fmt::format("tp {} pp {} dp {} zero {} batch {} host {} us, {} steps, {} warm, every {}",
                       plan.tp, plan.pp, plan.dp, plan.zero, plan.global_batch,
                       plan.host_dispatch / 1_us, steps, warm, outer.every));
    const simulate::Timeline taken = run_of(workload, warm);
    const simulate::Timeline single = run_of(workload, warm, false);
    RC_ASSERT(taken.run_time == single.run_time);
    RC_ASSERT(taken.step_ends == single.step_ends);
    RC_ASSERT(taken.step_time == single.step_time);
    RC_ASSERT(taken.finish == single.finish);
    RC_ASSERT(taken.by_rank == single.by_rank);
    RC_ASSERT(taken.events == single.events);
    RC_ASSERT(total(taken.breakdown) == taken.step_time);
    ++compared;
  }));
  EXPECT_GT(compared, 40);
}

TEST(Steps, AreJumpedOnceTheyRepeat) {
  // A hundred times the steps, as many events handled: of which the calls of progress tell.
  const auto run = [&](std::int64_t steps, int& calls) {
    const graph::Workload workload = steps_of({.pp = 2, .global_batch = 20}, steps);
    simulate::SimulateOptions options;
    options.progress = [&](double, std::uint64_t) { ++calls; };
    return simulate::simulate(workload, nodes_of(workload.ranks), options).value();
  };
  int few = 0;
  int many = 0;
  const simulate::Timeline before = run(100, few);
  const simulate::Timeline after = run(10'000, many);
  EXPECT_EQ(many, few);
  EXPECT_EQ(after.step_ends.size(), 10'000U);
  EXPECT_GT(after.run_time, before.run_time * 99);
}

}  // namespace
}  // namespace orrery
