// SPDX-License-Identifier: Apache-2.0
#include "planner/reinforcement/sizing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/full/search.h"
#include "serving/requests/generate.h"
#include "serving/serve.h"

namespace orrery::reinforcement {
namespace {

using ::testing::HasSubstr;

Task small(std::int64_t devices) {
  Task task{.question = {},
            .actor = *zoo::load_model("gpt2"),
            .reward = {},
            .engine = *serving::load_engine("vllm"),
            .machine = *machine::load_machine("dgx-h100"),
            .devices = devices};
  task.question.answers = 16;
  task.question.input = "100";
  task.question.output = "50";
  return task;
}

const Placement& of(const Sizing& sizing, Where where, std::int64_t generating) {
  const auto found = std::ranges::find_if(sizing.placements, [&](const Placement& one) {
    return one.where == where && one.generating == generating;
  });
  EXPECT_NE(found, sizing.placements.end());
  return *found;
}

/// Colocated the parts follow one another. Apart the longer side counts, and the weights.
TEST(Reinforcement, PartsAddUpOrRunSideBySide) {
  const auto sizing = size(small(4));
  ASSERT_TRUE(sizing) << sizing.error().to_string();
  ASSERT_TRUE(sizing->runs());
  const Placement& turn = of(*sizing, Where::colocated, 4);
  EXPECT_EQ(turn.step, turn.generate + turn.score + turn.forward + turn.train + turn.move);
  EXPECT_EQ(turn.swap, Time(0));
  const Placement& beside = of(*sizing, Where::apart, 1);
  EXPECT_EQ(beside.training, 3);
  const Placement& half = of(*sizing, Where::apart, 2);
  EXPECT_EQ(half.step, std::max(half.generate + half.score, half.forward + half.train) + half.move);
  EXPECT_EQ(half.in_turn, half.generate + half.score + half.forward + half.train + half.move);
  EXPECT_LE(sizing->placements[0].step, sizing->placements[1].step);
}

/// 100 tokens of a prompt and 50 of its answer are trained as 256. Each part is that of its door.
TEST(Reinforcement, PartsAreThoseOfServeAndPlan) {
  const Task task = small(2);
  const auto sizing = size(task);
  ASSERT_TRUE(sizing);
  EXPECT_EQ(sizing->tokens, 150);
  EXPECT_EQ(sizing->sequence, 256);
  const Placement& turn = of(*sizing, Where::colocated_swapped, 2);

  serving::Engine engine = task.engine;
  engine.tp = turn.tp;
  engine.replicas = turn.replicas;
  engine.router = serving::Router::least_tokens;
  requests::Generator load{
      .arrival = requests::Arrival::infinite, .input = {.first = 100}, .output = {.first = 50}};
  load.count = 16;
  auto server = serving::Server::make(task.actor, task.machine, engine);
  ASSERT_TRUE(server);
  EXPECT_EQ(turn.generate, server->run(requests::generate(load)).duration);

  full::Task training{.model = task.actor, .machine = task.machine, .devices = 2, .fixed = {}};
  training.fixed.plan = turn.plan;
  plan::Plan::fields([&](std::string_view name, auto, std::string_view) {
    training.fixed.places[std::string(name)] = "the answer";
  });
  const auto same = full::search(training, {});
  ASSERT_TRUE(same) << same.error().to_string();
  EXPECT_EQ(turn.train, same->top.front().unfused.value_or(same->top.front().step_time));

  // There and back over 55 GB/s or so: parameters and optimizer of a device, twice.
  const auto& host = task.machine.device.memory[1];
  EXPECT_EQ(turn.swap, 2 * (host.latency + turn.states / host.bandwidth));
  EXPECT_GT(turn.states, Bytes(0));
}

/// Without reference and log-probabilities nothing runs forward; each of them takes as long; a
/// reward model has a pass of its own. Four updates are of a quarter of the answers each.
TEST(Reinforcement, PassesAndUpdatesAreCounted) {
  Task task = small(2);
  const auto both = size(task);
  task.question.reference = false;
  const auto one = size(task);
  task.question.log_probs = false;
  task.question.updates = 4;
  task.reward = task.actor;
  const auto none = size(task);
  ASSERT_TRUE(both && one && none);
  const Placement& two = of(*both, Where::colocated, 2);
  EXPECT_EQ(two.forward, 2 * of(*one, Where::colocated, 2).forward);
  EXPECT_EQ(two.score, Time(0));
  const Placement& last = of(*none, Where::colocated, 2);
  EXPECT_EQ(last.forward, Time(0));
  EXPECT_GT(last.score, Time(0));
  EXPECT_EQ(last.plan.global_batch, 4);
}

TEST(Reinforcement, AllMistakesAreNamedAtOnce) {
  Task task = small(1);
  task.question.updates = 3;
  task.question.input = "many";
  const auto sizing = size(task);
  ASSERT_FALSE(sizing);
  const std::string text = sizing.error().to_string();
  EXPECT_THAT(text, HasSubstr("input"));
  EXPECT_THAT(text, HasSubstr("updates: found '3', expected a divisor of the 16 answers"));
  EXPECT_THAT(text, HasSubstr("devices: found '1', expected 2 or more"));
}

}  // namespace
}  // namespace orrery::reinforcement
