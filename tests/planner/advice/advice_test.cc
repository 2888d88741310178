// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "../task.h"
#include "machine/device_groups.h"
#include "planner/advice/decisions.h"
#include "planner/advice/elastic.h"
#include "planner/advice/least_memory.h"
#include "planner/advice/memory_frontier.h"
#include "planner/advice/regret.h"
#include "planner/advice/remedies.h"
#include "planner/advice/ties.h"
#include "planner/full/space.h"
#include "study/run.h"

namespace orrery::advice {
namespace {

using testing::task;

/// Few enough plans to simulate all of them.
full::Task small_task() {
  full::Task small = task("gpt2-medium", "dgx-a100-80g", 4, 16, 1024);
  small.only = {{"recompute", {"none", "full"}},
                {"recompute_modules", {""}},
                {"recompute_layers", {"0"}},
                {"zero", {"0", "3"}},
                {"offload_optimizer", {"none"}},
                {"offload_activations", {"0"}},
                {"microbatch", {"1", "4"}},
                {"schedule", {"1f1b"}},
                {"cp", {"1"}}};
  return small;
}

struct Simulated {
  plan::Plan plan;
  Time time{0};
  Bytes memory{0};
};

std::vector<Simulated> every_plan(const full::Task& task) {
  const auto space = full::Space::of(task);
  std::vector<Simulated> plans;
  for (const plan::Plan& group : space->groups()) {
    for (const plan::Plan& shape : space->shapes(group)) {
      for (const plan::Plan& plan : space->variants(shape)) {
        const auto run = study::run_step(task.model, task.machine, plan, task.devices, {});
        if (run) {
          plans.push_back({plan, run->timeline.step_time,
                           footprint::fullest(task.model, plan, task.machine).total});
        }
      }
    }
  }
  return plans;
}

void no_progress(double) {}

TEST(Remedies, TheLeastMemoryIsEnoughAndLittleLessIsNot) {
  // 8.03 billion parameters of 18 bytes are 134.6 GiB: more than the 80 GiB of one device.
  full::Task large = task("llama-3-8b", "dgx-a100-80g", 1, 4, 2048);
  large.only["offload_optimizer"] = {"none"};
  auto answer = full::search(large, {});
  ASSERT_TRUE(answer && answer->top.empty());
  double last = 0;
  const auto found = remedies(large, {}, answer, [&](double share) {
    EXPECT_GE(share, last);
    last = share;
  });
  EXPECT_EQ(last, 1);
  ASSERT_GE(found.size(), 2U);
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end(), [](const Remedy& a, const Remedy& b) {
    return a.change() < b.change();
  }));
  std::map<Remedied, Remedy> by_change;
  for (const Remedy& remedy : found) {
    by_change[remedy.changed] = remedy;
  }
  ASSERT_TRUE(by_change.contains(Remedied::memory) && by_change.contains(Remedied::devices));
  const Remedy& memory = by_change[Remedied::memory];
  EXPECT_EQ(memory.from, (80_GiB).value());
  EXPECT_GT(memory.to, (134_GiB).value());
  EXPECT_LE(memory.best.memory.value(), memory.to);
  // What the answer calls the most frugal plan is that of the remedy, and says what it lacks.
  EXPECT_LE(answer->least_memory.value(), memory.to);
  EXPECT_EQ(footprint::fullest(large.model, answer->frugal, large.machine).total,
            answer->least_memory);
  EXPECT_FALSE(answer->missing.empty());
  full::Task other = large;
  full::Options options;
  use_memory(other, options, Bytes(memory.to));
  EXPECT_TRUE(any_plan(other, options));
  use_memory(other, options, Bytes(memory.to) * 0.98);
  EXPECT_FALSE(any_plan(other, options));
  EXPECT_EQ(by_change[Remedied::devices].to, 2);  // the nearest number, half of 135 GiB each
}

TEST(Remedies, WhereNothingDividesTheNearestThatDoes) {
  full::Task odd = task("gpt2", "dgx-a100-80g", 8, 7, 1024);
  for (const char* degree : {"tp", "cp", "pp"}) {
    odd.fixed.places[degree] = "--fix";  // 1 each, so that dp = devices has to divide the batch
  }
  auto answer = full::search(odd, {});
  ASSERT_FALSE(answer);
  const auto found = remedies(odd, {}, answer);
  ASSERT_EQ(found.size(), 2U);
  std::map<Remedied, std::int64_t> to;
  for (const Remedy& remedy : found) {
    to[remedy.changed] = remedy.to;
    EXPECT_NEAR(remedy.change(), 8.0 / 7, 1e-12);
  }
  EXPECT_EQ(to[Remedied::devices], 7);
  EXPECT_EQ(to[Remedied::batch], 8);
}

TEST(MemoryFrontier, NoPlanOfASmallSpaceIsBetterInBoth) {
  const full::Task small = small_task();
  const auto answer = full::search(small, {});
  ASSERT_TRUE(answer && !answer->top.empty());
  const auto frontier = memory_frontier(small, {}, *answer, no_progress);
  ASSERT_GE(frontier.size(), 3U);
  EXPECT_EQ(frontier.back().plan, answer->top.front().plan);
  const std::vector<Simulated> plans = every_plan(small);
  ASSERT_GE(plans.size(), 40U);
  Bytes least = Bytes::max();
  for (const Simulated& plan : plans) {
    least = std::min(least, plan.memory);
  }
  EXPECT_LE(frontier.front().memory, least * 1.05);
  for (std::size_t i = 0; i < frontier.size(); ++i) {
    for (const Simulated& plan : plans) {
      EXPECT_FALSE(plan.memory <= frontier[i].memory && plan.time < frontier[i].step_time * 0.995)
          << plan::to_yaml(plan.plan);
    }
    if (i > 0) {
      EXPECT_GT(frontier[i].memory, frontier[i - 1].memory);
      EXPECT_LT(frontier[i].step_time, frontier[i - 1].step_time);
    }
  }
}

TEST(Decisions, EveryOtherValueCostsWhatItsBestPlanTakes) {
  const full::Task small = small_task();
  const auto answer = full::search(small, {});
  ASSERT_TRUE(answer && !answer->top.empty());
  const std::vector<Simulated> plans = every_plan(small);
  const auto found = decisions(small, {}, *answer, no_progress);
  int compared = 0;
  for (const Decision& decision : found) {
    for (const Alternative& other : decision.others) {
      if (decision.field != "tp" || !other.best) {
        continue;
      }
      Time best = Time::max();
      for (const Simulated& plan : plans) {
        best = std::to_string(plan.plan.tp) == other.value ? std::min(best, plan.time) : best;
      }
      EXPECT_LE(other.best->step_time, best * 1.005) << other.value;
      EXPECT_LE(other.bound, best) << other.value;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 2);  // of 1, 2 and 4 one is chosen
}

TEST(Decisions, WhatCannotBeOrDoesNotFitSaysWhy) {
  full::Task six = task("gpt2-medium", "dgx-a100-80g", 6, 12, 1024);  // 16 heads over 3
  six.only = {{"tp", {"1", "3"}},
              {"zero", {"1"}},
              {"pp", {"1"}},
              {"cp", {"1"}},
              {"microbatch", {"1"}},
              {"recompute", {"none"}},
              {"offload_optimizer", {"none"}},
              {"offload_activations", {"0"}}};
  auto answer = full::search(six, {});
  ASSERT_TRUE(answer && !answer->top.empty());
  bool refused = false;
  for (const Decision& decision : decisions(six, {}, *answer, no_progress)) {
    for (const Alternative& other : decision.others) {
      refused =
          refused || (decision.field == "tp" && other.refused.find("tp") != std::string::npos);
    }
  }
  EXPECT_TRUE(refused);
  // One device: all 134.6 GiB of states.
  full::Task large = task("llama-3-8b", "dgx-a100-80g", 2, 4, 2048);
  large.only = {{"offload_optimizer", {"none"}},
                {"zero", {"0", "3"}},
                {"tp", {"1"}},
                {"pp", {"1"}},
                {"cp", {"1"}},
                {"offload_activations", {"0"}},
                {"recompute", {"full"}}};
  answer = full::search(large, {});
  ASSERT_TRUE(answer && !answer->top.empty());
  for (const Decision& decision : decisions(large, {}, *answer, no_progress)) {
    if (decision.field == "zero") {
      ASSERT_EQ(decision.others.size(), 1U);
      EXPECT_FALSE(decision.others.front().best);
      EXPECT_GT(decision.others.front().least_memory, 80_GiB);
    }
  }
}

/// Two H100 and two A100, few plans.
full::Task mixed_task() {
  full::Task mixed = small_task();
  mixed.machine = *machine::load_machine("dgx-h100");
  mixed.machine.parts = {{"h100", 2, mixed.machine.device},
                         {"a100", 2, machine::load_machine("dgx-a100-80g")->device}};
  mixed.machine.device = machine::mean_device(mixed.machine.parts);
  return mixed;
}

/// A rate is that of one sort: the others keep theirs, the mean follows.
TEST(Regret, EverySortOfDevicesHasItsOwnRates) {
  const machine::Machine before = mixed_task().machine;
  const std::vector<Rate> all = rates(before);
  const auto one = std::find_if(all.begin(), all.end(),
                                [](const Rate& rate) { return rate.name == "a100 compute"; });
  ASSERT_NE(one, all.end());
  machine::Machine after = before;
  one->scale(after, 0.5);
  for (std::size_t type = 0; type < before.device.peak.size(); ++type) {
    EXPECT_EQ(after.parts[0].device.peak[type], before.parts[0].device.peak[type]);
    EXPECT_EQ(after.parts[1].device.peak[type], before.parts[1].device.peak[type] * 0.5);
  }
  const auto bf16 = static_cast<std::size_t>(graph::DataType::bf16);
  EXPECT_LT(after.device.peak[bf16], before.device.peak[bf16]);
  EXPECT_TRUE(std::any_of(all.begin(), all.end(),
                          [](const Rate& rate) { return rate.name == "h100 compute"; }));
}

/// Less memory on every device of two sorts: slower plans that need less, each of which runs.
TEST(MemoryFrontier, OfSeveralSortsOfDevicesIsOfPlansThatRun) {
  const full::Task mixed = mixed_task();
  full::Options few;
  few.most_estimates = 60;
  few.most_simulations = 12;
  const auto answer = full::search(mixed, few);
  ASSERT_TRUE(answer && !answer->top.empty());
  const auto frontier = memory_frontier(mixed, few, *answer, no_progress);
  ASSERT_GE(frontier.size(), 2U);
  for (std::size_t i = 0; i < frontier.size(); ++i) {
    const auto run = study::run_step(mixed.model, mixed.machine, frontier[i].plan, 0, {});
    ASSERT_TRUE(run) << run.error().to_string();
    EXPECT_EQ(run->timeline.step_time, frontier[i].step_time);
    EXPECT_TRUE(i == 0 || frontier[i].memory > frontier[i - 1].memory);
  }
}

TEST(Regret, IsTheSimulatedTimeOverTheBestInEachScenario) {
  full::Task slow = task("gpt-7.5b", "dgx-a100-80g", 16, 32, 2048);
  slow.only = {{"zero", {"1", "3"}},
               {"offload_activations", {"0"}},
               {"offload_optimizer", {"none"}},
               {"cp", {"1"}},
               {"recompute", {"none"}},
               {"schedule", {"1f1b"}},
               {"microbatch", {"1", "2"}}};
  for (auto& dimension : slow.machine.network) {
    dimension.bandwidth = dimension.bandwidth / 16;
  }
  const auto answer = full::search(slow, {.top = 3});
  ASSERT_TRUE(answer && !answer->top.empty());
  const RegretTable table = regret_table(slow, {}, *answer, no_progress);
  const std::size_t rate_count = rates(slow.machine).size();
  ASSERT_EQ(table.scenarios.size(), 1 + 2 * rate_count);
  std::size_t network = 0;
  for (std::size_t s = 0; s < table.scenarios.size(); ++s) {
    double least = 1;
    for (const Regret& plan : table.plans) {
      least = std::min(least, plan.regrets[s]);
      EXPECT_LE(plan.regrets[s], plan.worst_regret());
    }
    EXPECT_EQ(least, 0);
    EXPECT_EQ(table.plans[table.scenarios[s].best].regrets[s], 0);
    if (table.scenarios[s].rate == slow.machine.network.back().name &&
        table.scenarios[s].factor < 1) {
      network = s;
    }
  }
  ASSERT_GT(network, 0U);
  machine::Machine changed = slow.machine;
  changed.network.back().bandwidth = changed.network.back().bandwidth * 0.8;
  for (const Regret& plan : table.plans) {
    const auto run = study::run_step(slow.model, changed, plan.plan.plan, 16, {});
    ASSERT_TRUE(run);
    EXPECT_EQ(plan.times[network], run->timeline.step_time);
    EXPECT_GE(plan.worst_regret(), table.plans.front().worst_regret());
  }
  full::Answer chosen = *answer;
  choose(chosen, table.plans.front().plan);
  EXPECT_EQ(chosen.top.front().plan, table.plans.front().plan.plan);
}

TEST(Elastic, WithANodeLessTheBatchOrTheDevicesGiveWay) {
  // 3 nodes of 8: 16 devices are left; 24 sequences do not divide by 16 replicas.
  full::Task nodes = task("gpt2", "dgx-a100-80g", 24, 24, 1024);
  nodes.only = {{"tp", {"1"}}, {"pp", {"1"}}, {"cp", {"1"}}, {"microbatch", {"1"}}};
  const auto answer = full::search(nodes, {});
  ASSERT_TRUE(answer && !answer->top.empty());
  const Elastic found = elastic(nodes, {}, *answer);
  EXPECT_EQ(found.node, 8);
  ASSERT_EQ(found.fallbacks.size(), 2U);
  for (const Fallback& fallback : found.fallbacks) {
    EXPECT_EQ(fallback.devices + fallback.idle, 16);
    EXPECT_EQ(fallback.best.plan.devices(), fallback.devices);
    EXPECT_EQ(fallback.batch % fallback.best.plan.dp, 0);
    EXPECT_NEAR(fallback.best.tokens_per_s * to_seconds(fallback.best.step_time),
                static_cast<double>(fallback.batch) * 1024, 1e-3);
  }
  // 24 of 8 replicas and a node idle (12 are no whole nodes), or 32 (24 / 16 rounded up) of 16.
  EXPECT_GE(found.fallbacks.front().best.tokens_per_s, found.fallbacks.back().best.tokens_per_s);
  EXPECT_EQ(found.fallbacks.front().batch, 32);
  EXPECT_EQ(found.fallbacks.back().devices, 8);
}

/// Plans of one model, framework and machine share all causes but the rest: the ratio of two has
/// the spread of two rests, exp(+-1.2816 sqrt(2) rest).
TEST(Ties, AreOpenWhereTheRestsOfBothAreWider) {
  const full::Task of = small_task();
  full::Answer answer;
  answer.top.resize(3);
  answer.top[0].step_time = Time(1'000'000);
  answer.top[1].step_time = Time(1'010'000);
  answer.top[2].step_time = Time(9'000'000);
  const auto found = ties(of, answer);
  ASSERT_TRUE(found) << found.error().to_string();
  const auto errors = study::ErrorModel::load();
  const double rest =
      errors->trust(study::causes_of(of.model, answer.top[0].plan, of.machine)).sigma.rest;
  const double half = 1.2815515655 * std::sqrt(2.0) * rest;
  ASSERT_GT(half, 0.01);
  EXPECT_TRUE((*found)[1].open);
  EXPECT_NEAR((*found)[1].interval80.most, 1.01 * std::exp(half), 1e-6);
  EXPECT_NEAR((*found)[1].interval80.least, 1.01 * std::exp(-half), 1e-6);
  EXPECT_FALSE((*found)[2].open);
}

/// The limit is 1,050; of the plans below it the first holds less.
TEST(MostFree, HoldsLeastOfThoseWithinFivePercent) {
  std::vector<full::Found> frontier(3);
  frontier[0].score = Time(1'060);
  frontier[0].memory = Bytes(10);
  frontier[1].score = Time(1'049);
  frontier[1].memory = Bytes(20);
  frontier[2].score = Time(1'000);
  frontier[2].memory = Bytes(30);
  EXPECT_EQ(most_free(frontier).memory, Bytes(20));
}

}  // namespace
}  // namespace orrery::advice
