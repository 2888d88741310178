// SPDX-License-Identifier: Apache-2.0
#include "planner/full/search.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "../task.h"
#include "base/csv.h"
#include "planner/full/published.h"
#include "planner/full/savings.h"
#include "study/energy.h"
#include "study/run.h"

namespace orrery::full {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::task;

/// Simulated, or nothing where it does not run or does not fit.
std::optional<Time> simulated(const Task& task, const plan::Plan& plan) {
  const auto run = study::run_step(task.model, task.machine, plan, task.devices, {});
  return run ? std::optional(run->timeline.step_time) : std::nullopt;
}

std::vector<plan::Plan> every_plan(const Task& task) {
  const auto space = Space::of(task);
  std::vector<plan::Plan> plans;
  for (const plan::Plan& group : space->groups()) {
    for (const plan::Plan& shape : space->shapes(group)) {
      for (plan::Plan variant : space->variants(shape)) {
        plans.push_back(variant);
        const std::int64_t most = space->layers_to_recompute(variant);
        for (std::int64_t layers = variant.recompute_layers + 1; layers <= most; ++layers) {
          variant.recompute_layers = layers < most ? layers : 0;  // 0: all
          plans.push_back(variant);
        }
      }
    }
  }
  return plans;
}

/// Merged copies are fewer inside a node, too, and their rows need no padding: published recipes on
/// one node of 8 take them.
TEST(PlanSearch, CopiesOfTokensAreMergedAlsoInsideANode) {
  Task experts = task("qwen3-30b-a3b", "dgx-b200", 8, 64, 4096);
  experts.only = {{"tp", {"1"}}, {"cp", {"1"}}, {"pp", {"1"}}, {"ep", {"8"}}, {"zero", {"1"}}};
  const auto answer = search(experts, {.top = 1, .most_estimates = 40});
  ASSERT_TRUE(answer) << answer.error().to_string();
  const Found& best = answer->top.front();
  EXPECT_EQ(best.plan.moe_dispatch, plan::MoeDispatch::hierarchical);
  plan::Plan whole = best.plan;
  whole.moe_dispatch = plan::MoeDispatch::all_to_all;
  EXPECT_GT(*simulated(experts, whole), best.step_time);
  EXPECT_LE(answer->bound, best.step_time);
}

/// Only plans with the optimizer's states on the host fit 16 devices of 48 GB; those without are
/// all expected to be faster, and there are more of them than bounds.
TEST(PlanSearch, WhatFitsIsFoundThoughAllThatIsFasterDoesNot) {
  Task tight = task("mixtral-8x7b", "l40s", 16, 64, 4096);
  tight.only = {{"tp", {"1", "2"}}, {"cp", {"1"}}};
  const auto answer =
      search(tight, {.most_estimates = 20, .most_simulations = 4, .most_bounds = 60'000});
  ASSERT_TRUE(answer) << answer.error().to_string();
  ASSERT_FALSE(answer->top.empty());
  EXPECT_FALSE(answer->proved);
  EXPECT_NE(answer->top.front().plan.offload_optimizer, plan::Offload::none);
  EXPECT_EQ(simulated(tight, answer->top.front().plan), answer->top.front().step_time);
}

/// One plan is far ahead, so that it alone is simulated for the answer; the others are for the
/// user.
TEST(PlanSearch, AsManyPlansAsAreAskedForEachOnce) {
  const Task one = task("gpt2", "dgx-h100", 1, 8, 1024);
  const auto answer = search(one, {.top = 3});
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->top.size(), 3U);
  EXPECT_TRUE(answer->proved);
  const auto alone = search(one, {.top = 1});
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->top.front().plan, answer->top.front().plan);
  EXPECT_EQ(alone->bound, answer->bound);
  for (std::size_t i = 1; i < answer->top.size(); ++i) {
    EXPECT_GE(answer->top[i].score, answer->top[i - 1].score);
    EXPECT_NE(answer->top[i].plan, answer->top[i - 1].plan);
  }
}

TEST(PlanSearch, StoppedBeforeItBeginsLooksAtNothing) {
  Options options;
  options.go_on = [] { return false; };
  const auto answer = search(task("gpt2-medium", "dgx-a100-80g", 4, 16, 1024), options);
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_TRUE(answer->stopped);
  EXPECT_TRUE(answer->top.empty());
  EXPECT_EQ(answer->counts.estimated + answer->counts.simulated, 0U);
  EXPECT_EQ(answer->counts.left, answer->counts.all);
  // Nor does it count what it will not look at, which takes minutes of hundreds of millions.
  const auto whole =
      search(task("gpt2-medium", "dgx-a100-80g", 4, 16, 1024), {.most_estimates = 1});
  ASSERT_TRUE(whole) << whole.error().to_string();
  EXPECT_GT(answer->counts.all, 0U);
  EXPECT_LT(answer->counts.all, whole->counts.all);
}

TEST(PlanSearch, IsTheBestOfASpaceSmallEnoughToSimulate) {
  Task small = task("gpt2-medium", "dgx-a100-80g", 4, 16, 1024);
  small.only = {{"recompute", {"none", "full"}},
                {"recompute_modules", {""}},
                {"zero", {"0", "1"}},
                {"offload_optimizer", {"none"}},
                {"offload_activations", {"0"}},
                {"microbatch", {"1", "4"}},
                {"recompute_layers", {"0"}},
                {"cp", {"1"}}};
  Time best = Time::max();
  int plans = 0;
  for (const plan::Plan& plan : every_plan(small)) {
    if (const auto time = simulated(small, plan)) {
      best = std::min(best, *time);
      ++plans;
    }
  }
  EXPECT_GE(plans, 40);
  const auto answer = search(small, {.exhaustive = true});
  ASSERT_TRUE(answer) << answer.error().to_string();
  ASSERT_FALSE(answer->top.empty());
  EXPECT_TRUE(answer->proved);
  EXPECT_LE(answer->top.front().step_time, best);  // it may change overlaps as well
  EXPECT_LE(answer->bound, best);
}

TEST(PlanSearch, EveryCandidateIsCounted) {
  const auto answer = search(task("gpt2", "dgx-a100-80g", 6, 12, 1024), {});
  ASSERT_TRUE(answer);
  const Counts& counts = answer->counts;
  EXPECT_EQ(counts.all, counts.by_bound + counts.by_memory + counts.by_family + counts.invalid +
                            counts.estimated + counts.left);
}

/// Expects equal answers, to the picosecond and the byte, with what became of every candidate.
void expect_same(const Answer& one, const Answer& other) {
  EXPECT_EQ(one.bound, other.bound);
  EXPECT_EQ(one.estimate_error, other.estimate_error);
  EXPECT_EQ(one.proved, other.proved);
  EXPECT_EQ(one.complete, other.complete);
  EXPECT_EQ(one.counts, other.counts);
  ASSERT_EQ(one.top.size(), other.top.size());
  for (std::size_t i = 0; i < one.top.size(); ++i) {
    EXPECT_EQ(one.top[i].plan, other.top[i].plan);
    EXPECT_EQ(one.top[i].step_time, other.top[i].step_time);
    EXPECT_EQ(one.top[i].score, other.top[i].score);
    EXPECT_EQ(one.top[i].unfused, other.top[i].unfused);
    EXPECT_EQ(one.top[i].estimate, other.top[i].estimate);
    EXPECT_EQ(one.top[i].exposed, other.top[i].exposed);
    EXPECT_EQ(one.top[i].memory, other.top[i].memory);
    EXPECT_EQ(one.top[i].mfu, other.top[i].mfu);
    EXPECT_EQ(one.top[i].energy, other.top[i].energy);
  }
}

TEST(PlanSearch, TheSameWithAnyNumberOfThreads) {
  const Options energy{.objective = Objective::tokens_per_joule};
  const std::vector<std::pair<Task, Options>> searches{
      {task("gpt2", "dgx-a100-80g", 6, 12, 1024), energy},
      {task("llama-2-13b", "l40s", 8, 16, 2048), {.most_estimates = 20, .most_simulations = 12}},
      {task("deepseek-v2-lite", "dgx-h100", 8, 32, 2048), {.most_estimates = 12}},
  };
  for (const auto& [of, options] : searches) {
    SCOPED_TRACE(of.model.name);
    Options many = options;
    many.threads = 1;
    const auto alone = search(of, many);
    ASSERT_TRUE(alone && !alone->top.empty());
    EXPECT_GE(alone->counts.simulated, 2U);
    many.threads = 4;
    const auto together = search(of, many);
    ASSERT_TRUE(together);
    expect_same(*alone, *together);
  }
}

TEST(PlanSearch, TheSameAfterOthersThatItSharesKnowledgeWith) {
  const Options few{.most_estimates = 20, .most_simulations = 12};
  const Task of = task("llama-2-13b", "l40s", 8, 16, 2048);
  const auto alone = search(of, few);
  ASSERT_TRUE(alone && !alone->top.empty());
  Knowledge known;
  for (const char* zero : {"0", "2"}) {
    Task other = of;
    other.only["zero"] = {zero};
    (void)search(other, few, known);
  }
  const auto after = search(of, few, known);
  ASSERT_TRUE(after);
  expect_same(*alone, *after);
}

TEST(PlanSearch, KeepsWhatIsFixed) {
  Task fixed = task("gpt-7.5b", "dgx-a100-80g", 16, 64, 2048);
  fixed.fixed.plan.tp = 4;
  fixed.fixed.places["tp"] = "--tp";
  fixed.only["zero"] = {"0", "3"};
  const auto answer = search(fixed, {});
  ASSERT_TRUE(answer && !answer->top.empty());
  for (const Found& found : answer->top) {
    EXPECT_EQ(found.plan.tp, 4);
    EXPECT_TRUE(found.plan.zero == 0 || found.plan.zero == 3);
    EXPECT_EQ(found.plan.devices(), 16);
    EXPECT_EQ(found.plan.global_batch, 64);
  }
}

TEST(PlanSearch, PlansOfTheAnswerFuseCommunicationWhereThatIsFaster) {
  Task stages = task("gpt-7.5b", "dgx-a100-80g", 16, 32, 2048);
  stages.only = {{"tp", {"8"}}, {"pp", {"2"}}, {"sequence_parallel", {"false", "true"}}};
  const auto answer = search(stages, {.top = 4, .most_estimates = 60});
  ASSERT_TRUE(answer) << answer.error().to_string();
  Time last{0};
  for (const Found& found : answer->top) {
    // The plan alone says it all: run again, it takes what the answer says.
    const auto run = study::run_step(stages.model, stages.machine, found.plan, 0, {});
    ASSERT_TRUE(run);
    EXPECT_EQ(run->timeline.step_time, found.step_time);
    EXPECT_GE(found.score, last);
    EXPECT_LE(answer->bound, found.score);
    last = found.score;
    EXPECT_EQ(found.plan.fuse_communication, found.unfused.has_value());
    plan::Plan without = found.plan;
    without.fuse_communication = false;
    const auto base = study::run_step(stages.model, stages.machine, without, 0, {});
    ASSERT_TRUE(base);
    EXPECT_EQ(base->timeline.step_time, found.unfused.value_or(found.step_time));
    EXPECT_GE(base->timeline.step_time, found.step_time);
    if (found.plan.sequence_parallel) {
      EXPECT_FALSE(found.unfused);  // its messages are slices
    }
  }
  stages.only["sequence_parallel"] = {"false"};
  const auto whole = search(stages, {.top = 1, .most_estimates = 60});
  ASSERT_TRUE(whole && !whole->top.empty());
  EXPECT_TRUE(whole->top.front().unfused);
  stages.fixed.plan.fuse_communication = true;
  stages.fixed.places["fuse_communication"] = "--fuse-communication";
  EXPECT_FALSE(search(stages, {.top = 1}));
}

TEST(PlanSearch, LeavesTheReserveFree) {
  const Task tight = task("llama-3-8b", "dgx-h100", 8, 32, 4096);
  const auto answer = search(tight, {.reserve = 40_GiB});
  ASSERT_TRUE(answer && !answer->top.empty());
  for (const Found& found : answer->top) {
    EXPECT_LE(found.memory, 40_GiB);
  }
  const auto whole = search(tight, {});
  EXPECT_LE(whole->top.front().step_time, answer->top.front().step_time);
}

TEST(PlanSearch, SaysHowMuchIsMissing) {
  Task large = task("gpt3-175b", "dgx-a100-80g", 2, 2, 2048);
  large.only["offload_optimizer"] = {"none"};
  const auto answer = search(large, {});
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->top.empty());
  EXPECT_GT(answer->least_memory, 80_GiB);
  EXPECT_EQ(answer->frugal.devices(), 2);
}

/// A step costs so many joules: energy over what the devices draw at full power is a score.
TEST(PlanSearch, ByEnergyNoPlanTakesLessThanItsBound) {
  const Task one = task("gpt2-medium", "dgx-a100-80g", 8, 16, 1024);
  const auto fast = search(one, {});
  const auto frugal = search(one, {.objective = Objective::tokens_per_joule});
  ASSERT_TRUE(fast && frugal && fast->top.front().energy && frugal->top.front().energy);
  const Found& best = frugal->top.front();
  EXPECT_LE(best.energy->value(), fast->top.front().energy->value() * 1.005);
  EXPECT_LE(fast->top.front().step_time, best.step_time * 1.005);
  const double full_power = one.machine.device.power.value() * 8;
  EXPECT_NEAR(to_seconds(best.score), best.energy->value() / full_power,
              1e-9 * to_seconds(best.score));
  EXPECT_LE(frugal->bound, best.score);
  // Random plans: the bound holds for all of them.
  const auto space = Space::of(one);
  const std::vector<plan::Plan> groups = space->groups();
  std::mt19937_64 random(7);
  for (int i = 0; i < 100; ++i) {
    const std::vector<plan::Plan> shapes = space->shapes(groups[random() % groups.size()]);
    const std::vector<plan::Plan> variants = space->variants(shapes[random() % shapes.size()]);
    const plan::Plan& plan = variants[random() % variants.size()];
    const auto run = study::run_step(one.model, one.machine, plan, 8, {});
    if (run) {
      EXPECT_LE(to_seconds(frugal->bound), study::energy_of(*run)->total().value() / full_power);
    }
  }
}

TEST(PlanSearch, APlanThatSavesMoreComesAfterThoseThatSaveLess) {
  // none < selective, none < full; activations on the host 0 < 50 < 100 %.
  Task small = task("gpt2-medium", "dgx-a100-80g", 4, 16, 1024);
  small.only = {{"recompute", {"none", "selective", "full"}}, {"recompute_modules", {""}}};
  small.fixed.plan.attention = zoo::AttentionKernel::unfused;
  small.fixed.places["attention"] = "--attention";
  const auto space = Space::of(small);
  ASSERT_TRUE(space);
  ASSERT_EQ(space->savings(), 9U);
  Savings savings(*space, space->variants_to_save(space->shapes(space->groups()[0])[0])[0]);
  EXPECT_EQ(savings.next(*space), 0U);
  EXPECT_EQ(savings.next(*space), 9U);  // the others wait for it
  savings.fail(0);
  EXPECT_EQ(savings.next(*space), 1U);  // half of the activations
  EXPECT_EQ(savings.next(*space), 3U);  // selective
  EXPECT_EQ(savings.next(*space), 6U);  // full
  EXPECT_EQ(savings.next(*space), 9U);
  savings.fail(1);
  EXPECT_EQ(savings.next(*space), 2U);  // not 4: selective with nothing on the host may fit
  EXPECT_EQ(savings.next(*space), 9U);
}

/// Rows of Narayanan et al., SC'21, table 1: the whole of every table is `orrery plan --table`.
TEST(PublishedPlans, ThePlannersIsNoSlowerAndThePublishedOneIsAPlan) {
  const auto profile = study::load_profile("megatron_sc21_table1");
  ASSERT_TRUE(profile);
  const auto runs = load_csv(profile->csv).and_then([&](const CsvTable& rows) {
    return study::published_runs(*profile, rows);
  });
  ASSERT_TRUE(runs) << runs.error().to_string();
  ASSERT_EQ(runs->size(), 10U);
  PublishedPlans plans({.top = 1});
  // The last is faster with fused communication: that is the same plan, too.
  for (const std::size_t row : {0U, 5U}) {
    const PublishedComparison compared = plans.compare((*runs)[row]);
    EXPECT_EQ(compared.problem + compared.refused, "") << compared.key;
    ASSERT_TRUE(compared.compared()) << compared.key;
    EXPECT_TRUE(compared.fits);
    EXPECT_GE(compared.gain(), 1) << compared.key;
    EXPECT_LT(compared.answer.top.front().mfu, 0.75) << compared.key;
    EXPECT_EQ(compared.answer.top.front().plan.compute_type, (*runs)[row].plan.compute_type);
  }
}

TEST(PlanSearch, EveryMistakeIsNamed) {
  Task wrong = task("gpt2", "dgx-a100-80g", 8, 16, 1024);
  wrong.only = {{"tpp", {"1"}}, {"zero", {"5x"}}, {"sequence", {"512"}}};
  const auto answer = search(wrong, {});
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().to_string(),
              AllOf(HasSubstr("tpp"), HasSubstr("did you mean"), HasSubstr("zero"),
                    HasSubstr("contradicts --sequence")));
  const auto none = search(task("gpt2", "dgx-a100-80g", 8, 13, 1024), {});
  EXPECT_TRUE(none);  // 13 sequences: one replica of pp and tp still runs
}

}  // namespace
}  // namespace orrery::full
