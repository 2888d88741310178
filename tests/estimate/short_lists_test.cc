// SPDX-License-Identifier: Apache-2.0
// A plan's lists without most rounds of their repetition: the same lists, times and bounds as
// whole.
#include <gtest/gtest.h>

#include <vector>

#include "estimate/issue_lists.h"
#include "estimate/lower_bound.h"
#include "estimate/pass_map.h"
#include "estimate/replay.h"
#include "estimate/template_tables.h"
#include "random_plans.h"
#include "workload/parallel/outline.h"
#include "workload/plan/layout.h"

namespace orrery::estimate {
namespace {

IssueLists listed(const zoo::Model& model, const plan::Plan& plan) {
  const auto outline = parallel::outline(model, plan);
  EXPECT_TRUE(outline);
  return issue_lists(*outline->lists.source, outline->lists.program_of.size());
}

/// The lists with the rounds that they lack before the last one of their repetition.
std::vector<std::vector<int>> made_whole(const IssueLists& lists) {
  std::vector<std::vector<int>> whole;
  for (std::size_t s = 0; s < lists.templates.size(); ++s) {
    const std::vector<int>& list = lists.templates[s];
    const auto end = list.begin() + lists.repetition.until[s];
    const std::vector<int> round(end - lists.repetition.length, end);
    std::vector<int>& all = whole.emplace_back(list.begin(), end);
    for (std::int64_t i = 0; i < lists.repetition.omitted; ++i) {
      all.insert(all.end(), round.begin(), round.end());
    }
    all.insert(all.end(), end, list.end());
  }
  return whole;
}

/// With more microbatches than a random plan has.
testing::RandomPlans::Drawn long_plan(testing::RandomPlans& plans, int number) {
  for (;;) {
    auto drawn = plans.next();
    drawn.plan.plan.global_batch *= 9 + number % 7;
    if (plan::check(drawn.plan.plan, drawn.plan.model) && shortened(drawn.plan.plan).omitted > 0) {
      return drawn;
    }
  }
}

TEST(ShortLists, ReplayAndBoundAsTheWholeOnes) {
  testing::RandomPlans plans({.seed = 8, .machines = testing::kSwitchedMachines});
  int skipped = 0;
  for (int i = 0; i < 60; ++i) {
    const auto drawn = long_plan(plans, i);
    const zoo::Model& model = drawn.plan.model;
    const plan::Plan& plan = drawn.plan.plan;
    const auto told = drawn.plan.name + "\n" + plan::to_yaml(plan);
    const ShortPlan shorter = shortened(plan);
    IssueLists few = listed(model, shorter.plan);
    few.repetition.omitted = shorter.omitted;
    const IssueLists whole = listed(model, plan);
    ASSERT_EQ(few.repetition.length, whole.repetition.length) << told;
    ASSERT_GT(few.repetition.length, 0) << told;
    EXPECT_EQ(few.repetition.from, whole.repetition.from) << told;
    EXPECT_EQ(made_whole(few), whole.templates) << told;

    const auto outline = parallel::outline(model, shorter.plan);
    Placement placement(plan::layout_of(plan, model.experts > 0), drawn.machine);
    const collective::AlgorithmChoice algorithms = plan::algorithms_of(plan);
    Prices prices;
    TemplateTables tables;
    TimedWorkload timed = time_outline(
        *outline, {.placement = placement, .algorithms = algorithms, .prices = prices}, tables);
    map_templates(timed, Works::slowed);
    map_templates(timed, Works::least);
    EXPECT_EQ(least_time({timed, few}), least_time({timed, whole})) << told;
    const auto by_few = replay({timed, few});
    const auto by_whole = replay({timed, whole});
    ASSERT_TRUE(by_few && by_whole) << told;
    EXPECT_TRUE(by_whole->whole);
    if (by_few->whole && by_few->exact) {
      ++skipped;
      EXPECT_EQ(by_few->step_time, by_whole->step_time) << told;
      for (std::size_t s = 0; s < by_few->stages.size(); ++s) {
        EXPECT_EQ(by_few->stages[s].end, by_whole->stages[s].end) << told;
        EXPECT_EQ(by_few->stages[s].busy, by_whole->stages[s].busy) << told;
        EXPECT_EQ(by_few->stages[s].kernels, by_whole->stages[s].kernels) << told;
      }
    }
  }
  EXPECT_GE(skipped, 45);  // in the others no period shows within eight rounds
}

/// Reduces gradients after every microbatch, more than the network can take meanwhile.
plan::Plan plan_that_falls_behind(std::int64_t chunks, std::int64_t microbatches) {
  plan::Plan plan{.tp = 4, .pp = 2, .dp = 1, .cp = 8, .chunks = chunks, .microbatch = 1};
  plan.schedule = plan::Schedule::interleaved;
  plan.global_batch = microbatches;
  plan.sequence = 2048;
  plan.attention = zoo::AttentionKernel::flash;
  plan.zero = 2;
  plan.overlap_grad_reduce = plan.overlap_param_gather = plan.overlap_p2p = true;
  return plan;
}

TEST(ShortLists, GoOnAsBeforeWhereNoRoundRepeatsAnother) {
  // 20 rounds: few enough for the whole lists to be evaluated to the end.
  const auto model = zoo::load_model("gpt-22b");
  const auto open = machine::load_machine("dgx-a100-80g");
  ASSERT_TRUE(model && open);
  const auto machine = machine::with_devices(*open, 64);
  ASSERT_TRUE(machine);
  for (const std::int64_t chunks : {2, 4}) {
    const plan::Plan plan = plan_that_falls_behind(chunks, 40);
    ASSERT_TRUE(plan::check(plan, *model)) << plan::check(plan, *model).error().to_string();
    const ShortPlan shorter = shortened(plan);
    ASSERT_GT(shorter.omitted, 0);
    IssueLists few = listed(*model, shorter.plan);
    few.repetition.omitted = shorter.omitted;
    const IssueLists whole = listed(*model, plan);
    const auto outline = parallel::outline(*model, shorter.plan);
    ASSERT_TRUE(outline);
    Placement placement(plan::layout_of(plan, false), *machine);
    const collective::AlgorithmChoice algorithms = plan::algorithms_of(plan);
    Prices prices;
    TemplateTables tables;
    TimedWorkload timed = time_outline(
        *outline, {.placement = placement, .algorithms = algorithms, .prices = prices}, tables);
    map_templates(timed, Works::slowed);
    const auto by_few = replay({timed, few});
    const auto by_whole = replay({timed, whole});
    ASSERT_TRUE(by_few && by_whole);
    ASSERT_TRUE(by_few->whole && by_whole->exact);
    EXPECT_FALSE(by_few->exact);
    EXPECT_LT(by_few->evaluated, by_whole->evaluated / 2);
    EXPECT_NEAR(by_few->step_time / by_whole->step_time, 1, 0.01) << chunks << " chunks";
  }
}

TEST(ShortLists, AreWhatTheSourceIssues) {
  // Lists copy what repeats (IssueList::period); the source says every instance.
  testing::RandomPlans plans({.seed = 9, .machines = testing::kSwitchedMachines});
  for (int i = 0; i < 60; ++i) {
    const auto drawn = plans.next();
    const auto outline = parallel::outline(drawn.plan.model, drawn.plan.plan);
    ASSERT_TRUE(outline);
    const graph::IssueList& source = *outline->lists.source;
    const IssueLists lists = issue_lists(source, outline->lists.program_of.size());
    for (std::size_t s = 0; s < lists.templates.size(); ++s) {
      const int role = static_cast<int>(s);
      ASSERT_EQ(std::ssize(lists.templates[s]), source.length(role));
      for (std::int64_t index = 0; index < source.length(role); ++index) {
        ASSERT_EQ(lists.templates[s][at(index)], source.at(role, index).template_index)
            << plan::to_yaml(drawn.plan.plan);
      }
    }
  }
}

TEST(ShortLists, OfFewMicrobatchesAndOtherSchedulesAreWhole) {
  plan::Plan plan{.pp = 4, .dp = 1, .chunks = 2, .microbatch = 1, .global_batch = 32};
  plan.schedule = plan::Schedule::interleaved;
  EXPECT_EQ(shortened(plan).omitted, 0);
  plan.global_batch = 36;  // nine rounds of four
  EXPECT_EQ(shortened(plan).omitted, 1);
  EXPECT_EQ(shortened(plan).plan.global_batch, 32);
  plan.schedule = plan::Schedule::gpipe;
  EXPECT_EQ(shortened(plan).omitted, 0);
}

}  // namespace
}  // namespace orrery::estimate
