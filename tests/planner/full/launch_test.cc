// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "../task.h"
#include "planner/full/search.h"
#include "planner/full/unusual.h"
#include "study/run.h"
#include "workload/interop/capabilities.h"
#include "workload/interop/framework.h"

namespace orrery::full {
namespace {

using testing::task;

/// Returns what an import of the launch reads, with the fields that a training script says itself.
Result<plan::Plan> read_back(const Task& task, const interop::LaunchFormat& launcher,
                             const plan::Plan& plan) {
  const auto exported = launcher.write(plan, {.model = &task.model, .devices_per_node = 8});
  if (!exported) {
    return fail(exported.error());
  }
  interop::ImportOptions options{
      .devices = plan.devices(), .model = &task.model, .rest = interop::rest_of(plan.framework)};
  const auto plan_of = [](const interop::Imported& imported) { return imported.plan; };
  if (launcher.name == "megatron") {
    return interop::launch_words(exported->text, "launch.sh")
        .and_then([&](const interop::LaunchWords& line) {
          return interop::import_megatron(line, options);
        })
        .map(plan_of);
  }
  if (launcher.name == "torchtitan") {
    return interop::import_torchtitan(exported->text, "job.toml", options).map(plan_of);
  }
  const bool json = launcher.name == "deepspeed";
  options.devices /= json ? plan.cp : 1;  // no key states cp
  options.rest.sequence = plan.sequence;
  options.rest.recompute = json ? plan.recompute : options.rest.recompute;
  return parse_config(exported->text, std::string(launcher.file),
                      json ? ConfigSyntax::json : ConfigSyntax::yaml)
      .and_then([&](const ConfigNode& node) {
        return json ? interop::import_deepspeed(node, options)
                    : interop::import_framework("nemo", node, {}, options);
      })
      .map(plan_of);
}

/// Every plan of the answer runs there, and its launch gives the same plan, with the same step to
/// the picosecond.
void expect_launchable(Task of, const char* framework) {
  SCOPED_TRACE(std::string(framework) + " " + of.model.name);
  of.launcher = of.fixed.plan.framework = framework;
  of.fixed.places["framework"] = "--framework";
  const auto answer =
      search(of, {.top = 3, .most_estimates = 12, .most_simulations = 4, .simple_within = 0.005});
  ASSERT_TRUE(answer) << answer.error().to_string();
  ASSERT_FALSE(answer->top.empty());
  for (const Found& found : answer->top) {
    SCOPED_TRACE(plan::to_yaml(found.plan));
    EXPECT_TRUE(interop::can_run(framework, found.plan, &of.model));
    const auto again = read_back(of, *interop::launcher_named(framework), found.plan);
    ASSERT_TRUE(again) << again.error().to_string();
    EXPECT_EQ(interop::differences(found.plan, *again, &of.model), std::vector<interop::Remark>{});
    const auto run = study::run_step(of.model, of.machine, *again, of.devices, {});
    ASSERT_TRUE(run) << run.error().to_string();
    EXPECT_EQ(run->timeline.step_time, found.step_time);
  }
}

TEST(PlanForAFramework, IsLaunchedAndReadBackTheSame) {
  for (const char* framework : {"megatron", "nemo", "torchtitan", "deepspeed"}) {
    expect_launchable(task("gpt2", "dgx-a100-80g", 8, 32, 1024), framework);
  }
  Task staged = task("llama-3-8b", "dgx-h100", 8, 16, 2048);
  staged.only["pp"] = {"4"};
  staged.only["tp"] = {"1", "2"};
  for (const char* framework : {"megatron", "nemo", "torchtitan"}) {
    expect_launchable(staged, framework);
  }
  Task experts = task("mixtral-8x7b", "dgx-h100", 16, 32, 2048);
  experts.only = {{"ep", {"8"}}, {"cp", {"1"}}, {"tp", {"1", "2"}}};
  expect_launchable(experts, "megatron");
}

/// Expects that an export names all that its import reads otherwise: then `lost` is what differs,
/// or the export is refused with the reason, and the command's status is not 0.
void expect_stated_or_named(const Task& of, const plan::Plan& plan) {
  for (const interop::LaunchFormat& launcher : interop::launchers()) {
    SCOPED_TRACE(std::string(launcher.name) + " of " + plan::to_yaml(plan));
    const auto exported = launcher.write(plan, {.model = &of.model, .devices_per_node = 8});
    if (!exported) {
      EXPECT_NE(exported.error().to_string(), "");
      continue;
    }
    std::set<std::string> named;
    for (const interop::Remark& lost : exported->lost) {
      named.insert(lost.about);
      EXPECT_FALSE(lost.sentence.empty()) << lost.about;
    }
    const auto again = read_back(of, launcher, plan);
    ASSERT_TRUE(again) << again.error().to_string();
    for (const interop::Remark& differs : interop::differences(plan, *again, &of.model)) {
      EXPECT_TRUE(named.contains(differs.about)) << differs.about << ": " << differs.sentence;
    }
  }
}

/// A model and its longest sequence, at most 2048.
class ExportsOf : public ::testing::TestWithParam<std::pair<const char*, std::int64_t>> {};

/// Forty settings: ten models, each on four machines.
TEST_P(ExportsOf, SlowStateAPlanOrNameWhatIsLost) {
  const auto& [model, sequence] = GetParam();
  int plans = 0;
  for (const auto& [machine, devices] :
       {std::pair{"dgx-a100-80g", 8}, {"dgx-h100", 64}, {"mi300x", 16}, {"l40s", 8}}) {
    SCOPED_TRACE(std::string(model) + " " + machine);
    const Task of = task(model, machine, devices, 128, sequence);
    const auto answer = search(of, {.top = 3, .most_estimates = 12, .most_simulations = 4});
    for (std::size_t i = 0; answer && i < answer->top.size(); ++i) {
      expect_stated_or_named(of, answer->top[i].plan);
      ++plans;
    }
  }
  EXPECT_GE(plans, 6);
}

INSTANTIATE_TEST_SUITE_P(
    Models, ExportsOf,
    ::testing::Values(std::pair{"gpt2", 1024}, std::pair{"bert-large", 512},
                      std::pair{"llama-3-8b", 2048}, std::pair{"llama-2-13b", 2048},
                      std::pair{"llama-3-70b", 2048}, std::pair{"qwen2.5-7b", 2048},
                      std::pair{"mixtral-8x7b", 2048}, std::pair{"deepseek-v2-lite", 2048},
                      std::pair{"gpt-22b", 2048}, std::pair{"qwen3-30b-a3b", 2048}));

TEST(PlanForAFramework, WhatIsFixedAndDoesNotRunIsNamed) {
  Task fixed = task("gpt2", "dgx-a100-80g", 8, 32, 1024);
  fixed.launcher = "megatron";
  fixed.fixed.plan.pp = 2;
  fixed.fixed.plan.schedule = plan::Schedule::dualpipe;
  fixed.fixed.places["pp"] = "--pp";
  fixed.fixed.places["schedule"] = "--schedule";
  const auto answer = search(fixed, {});
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().to_string(),
              ::testing::HasSubstr("the plan has dualpipe; megatron runs 1f1b"));
}

/// Fewer means are simpler; of as many what is later in the order of unusual.h.
TEST(UnusualMeans, FewerAndEasierOnesAreSimpler) {
  plan::Plan plain{.pp = 4};
  plan::Plan chunks = plain;
  chunks.chunks = 5;
  plan::Plan dualpipe = plain;
  dualpipe.schedule = plan::Schedule::dualpipe;
  plan::Plan host = plain;
  host.offload_activations = 0.5;
  plan::Plan both = dualpipe;
  both.chunks = 5;
  EXPECT_TRUE(is_simpler(plain, chunks));
  EXPECT_TRUE(is_simpler(chunks, dualpipe));
  EXPECT_TRUE(is_simpler(dualpipe, host));
  EXPECT_TRUE(is_simpler(host, both));
  EXPECT_FALSE(is_simpler(both, host));
  EXPECT_FALSE(is_simpler(host, host));
}

/// The simplest within the share is first, and the fastest stands beside it.
TEST(PlanSearch, ASimplerPlanThatIsAsFastIsFirst) {
  const Task of = task("llama-2-13b", "l40s", 8, 16, 2048);
  Options options{.top = 4, .most_estimates = 60, .most_simulations = 24};
  const auto fastest = search(of, options);
  ASSERT_TRUE(fastest && !fastest->top.empty());
  options.simple_within = 0.2;
  const auto simple = search(of, options);
  ASSERT_TRUE(simple && !simple->top.empty());
  const Found& first = simple->top.front();
  ASSERT_TRUE(simple->fastest);
  EXPECT_TRUE(is_simpler(first.plan, simple->fastest->plan));
  EXPECT_LE(first.score, simple->fastest->score * 1.2);
  EXPECT_LE(simple->fastest->score, fastest->top.front().score);
  for (const Found& found : simple->top) {
    EXPECT_FALSE(found.score <= simple->fastest->score * 1.2 && is_simpler(found.plan, first.plan));
  }
  EXPECT_LE(simple->top.size(), 4U);
}

/// Each of several frameworks has plans that it runs, by its own kernels and costs; the best of all
/// is the better of the two answers.
TEST(PlanLaunch, EachOfSeveralFrameworksIsSearchedAlone) {
  Task of = task("gpt2", "dgx-a100-80g", 2, 8, 512);
  const Options options{.top = 8, .most_estimates = 60, .most_simulations = 8};
  Time best = Time::max();
  for (const char* framework : {"torchtitan", "megatron"}) {
    Task alone = of;
    alone.launcher = alone.fixed.plan.framework = framework;
    alone.fixed.places["framework"] = "--framework";
    const auto answer = search(alone, options);
    ASSERT_TRUE(answer) << answer.error().to_string();
    best = std::min(best, answer->top.front().step_time);
  }
  of.only["framework"] = {"torchtitan", "megatron"};
  const auto both = search(of, options);
  ASSERT_TRUE(both) << both.error().to_string();
  EXPECT_EQ(both->top.front().step_time, best);
  for (const Found& found : both->top) {
    EXPECT_TRUE(interop::can_run(found.plan.framework, found.plan, &of.model))
        << plan::to_yaml(found.plan);
  }
  of.fixed.places["framework"] = "--framework";
  const auto twice = search(of, options);
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().to_string(), ::testing::HasSubstr("contradicts --framework"));
}

}  // namespace
}  // namespace orrery::full
