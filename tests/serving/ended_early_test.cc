// SPDX-License-Identifier: Apache-2.0
/// Runs and searches that are told to stop.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "serving/gpu_search.h"
#include "serving/requests/generate.h"
#include "serving/search.h"
#include "serving/serve.h"

namespace orrery::serving {
namespace {

requests::Generator load_of(double rate) {
  requests::Generator load;
  load.rate = rate;
  load.input = {.kind = requests::Length::Kind::uniform, .first = 1, .second = 400};
  load.output = {.kind = requests::Length::Kind::uniform, .first = 1, .second = 200};
  load.count = 100;
  return load;
}

/// Runs end when half of the questions whether to go on have been asked. By every rule of turns
/// and with several engines, each answer so far is as in the whole run.
TEST(Serve, ARunThatIsEndedEarlyHasTheAnswersSoFar) {
  const auto sent = requests::generate(load_of(20));
  struct Case {
    bool async;
    std::int64_t pp;
    std::int64_t replicas;
  };
  for (const auto& [async, pp, replicas] :
       {Case{false, 1, 1}, Case{true, 1, 1}, Case{false, 2, 1}, Case{true, 1, 2}}) {
    Engine engine = load_engine("vllm@0.19").value();
    engine.async = async;
    engine.blocks = 200;
    engine.max_num_seqs = 8;
    engine.pp = pp;
    engine.replicas = replicas;
    auto server = Server::make(zoo::load_model("llama-3.2-1b").value(),
                               machine::load_machine("dgx-h100").value(), engine);
    ASSERT_TRUE(server) << server.error().to_string();
    std::int64_t asked = 0;
    const serving::Run whole = server->run(sent, {.go_on = [&] { return ++asked > 0; }});
    std::int64_t left = asked / 2;
    const serving::Run part = server->run(sent, {.go_on = [&] { return --left > 0; }});
    ASSERT_FALSE(part.requests.empty());
    ASSERT_LT(part.requests.size(), whole.requests.size());
    for (const Served& answered : part.requests) {
      EXPECT_TRUE(std::ranges::any_of(whole.requests, [&](const Served& request) {
        return request.sent == answered.sent && request.last == answered.last;
      }));
    }
    EXPECT_EQ(part.notes.back(),
              fmt::format("ended early: {} of 100 requests are answered", part.requests.size()));
  }
}

/// Wherever a fleet is ended, a request that is on its way to an engine is left out.
TEST(Serve, AFleetMayBeEndedBetweenRouterAndEngine) {
  const auto sent = requests::generate(load_of(2000));
  Engine engine = load_engine("vllm@0.19").value();
  engine.async = true;
  engine.replicas = 3;
  auto server = Server::make(zoo::load_model("llama-3.2-1b").value(),
                             machine::load_machine("dgx-h100").value(), engine);
  ASSERT_TRUE(server) << server.error().to_string();
  std::int64_t asked = 0;
  const serving::Run whole = server->run(sent, {.go_on = [&] { return ++asked > 0; }});
  for (std::int64_t most = 1; most < asked; most += 1 + asked / 100) {
    std::int64_t left = most;
    const serving::Run part = server->run(sent, {.go_on = [&] { return --left > 0; }});
    EXPECT_LE(part.requests.size(), whole.requests.size());
  }
}

/// The first rate, 20 a second, keeps so wide a limit, so half of a search has found some rate.
TEST(Search, ARateFromASearchThatIsEndedEarlyIsNotTheHighest) {
  auto server =
      Server::make(zoo::load_model("llama-3.2-1b").value(),
                   machine::load_machine("dgx-h100").value(), load_engine("vllm@0.19").value());
  ASSERT_TRUE(server) << server.error().to_string();
  const RateSearch search{.objectives = {.ttft = 10_s}};
  std::int64_t asked = 0;
  const RateFound whole =
      search_rate(*server, load_of(20), search, {.go_on = [&] { return ++asked > 0; }});
  std::int64_t left = asked / 2;
  const RateFound part =
      search_rate(*server, load_of(20), search, {.go_on = [&] { return --left > 0; }});
  EXPECT_GT(part.rate, 0);
  EXPECT_LT(part.rate, whole.rate);
  ASSERT_FALSE(part.run.notes.empty());
  EXPECT_EQ(part.run.notes.back(), "ended early: a higher rate may keep the limits, too");
}

TEST(SearchGpus, WhatHasNotRunWhenASearchIsEndedIsALoser) {
  PlanSearch search;
  search.machines = {machine::load_machine("dgx-h100").value()};
  search.devices = 1;
  search.load = load_of(200);
  search.requests = requests::generate(search.load);
  search.rate = 200;
  search.objectives.ttft = 200_ms;
  search.go_on = [] { return false; };
  const zoo::Model model = zoo::load_model("llama-3.2-1b").value();
  const Engine engine = load_engine("vllm@0.19").value();
  const GpusFound found = search_gpus(model, engine, search);
  EXPECT_TRUE(found.choices.empty());
  ASSERT_EQ(found.losers.size(), 1U);
  EXPECT_EQ(found.losers[0].reason, kEndedEarly);
  const PlansFound plans = search_plans(model, engine, search);
  EXPECT_TRUE(plans.front.empty());
  EXPECT_EQ(plans.losers.size(), plans.layouts.size());
  EXPECT_TRUE(std::ranges::any_of(plans.losers,
                                  [](const Loser& loser) { return loser.reason == kEndedEarly; }));
}

}  // namespace
}  // namespace orrery::serving
