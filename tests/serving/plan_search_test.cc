// SPDX-License-Identifier: Apache-2.0
#include "serving/plan_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "serving/steady.h"

namespace orrery::serving {
namespace {

zoo::Model model_named(const char* name) {
  return zoo::load_model(name).value();
}
machine::Machine machine_named(const char* name) {
  return machine::load_machine(name).value();
}

requests::Generator lengths(double input, double output) {
  requests::Generator load;
  load.arrival = requests::Arrival::infinite;
  load.input.first = input;
  load.output.first = output;
  return load;
}

Metrics simulated(Server& server, const requests::Generator& load, std::int64_t concurrency) {
  requests::Generator drawn = load;
  drawn.count = 8 * concurrency;
  return metrics(server.run(requests::generate(drawn), {.max_concurrency = concurrency}),
                 machine_named("dgx-h100"));
}

TEST(SteadyState, OneRequestTakesTheTimeOfItsSteps) {
  // One at a time: no step has a prompt beside a decode but by the formula's mean, so that a long
  // answer's time per token is the step's at half of its growth.
  auto server = Server::make(model_named("llama-3.1-8b"), machine_named("dgx-h100"),
                             load_engine("vllm@0.10").value());
  ASSERT_TRUE(server.has_value());
  const requests::Generator load = lengths(16, 2000);
  const Steady steady =
      steady_state(server->cost(), server->engine(), server->kv_blocks(), 1, {16, 0, 2000});
  const Metrics run = simulated(*server, load, 1);
  EXPECT_NEAR(steady.per_token / run.tpot.mean, 1, 0.01);
}

TEST(SteadyState, IsNearTheSimulation) {
  // TensorRT-LLM's graphs are powers of two up to 2048: requests of equal lengths end together, and
  // their prompts in one step are padded once, where the formula pads each.
  for (const auto& [engine, tolerance] :
       {std::pair{"vllm@0.19", 0.1}, {"vllm@0.10", 0.1}, {"trtllm@1.0", 0.25}}) {
    auto server = Server::make(model_named("llama-3.1-8b"), machine_named("dgx-h100"),
                               load_engine(engine).value());
    ASSERT_TRUE(server.has_value());
    for (const std::int64_t concurrency : {4, 32, 128}) {
      const Metrics run = simulated(*server, lengths(500, 400), concurrency);
      const Steady steady = steady_state(server->cost(), server->engine(), server->kv_blocks(),
                                         concurrency, {500, 0, 400});
      EXPECT_NEAR(steady.tokens_per_s / run.output_tokens_per_s, 1, tolerance)
          << engine << " " << concurrency;
      EXPECT_NEAR(steady.per_token / run.tpot.mean, 1, tolerance) << engine << " " << concurrency;
    }
  }
}

TEST(SearchPlans, NoPlanOfTheSpaceBeatsTheFront) {
  // Every layout of two GPUs and every number of requests, run one by one.
  const zoo::Model model = model_named("llama-3.1-8b");
  const machine::Machine machine = machine_named("dgx-h100");
  const Engine engine = load_engine("vllm@0.19").value();
  PlanSearch search;
  search.machines = {machine};
  search.devices = 2;
  search.load = lengths(500, 100);
  const PlansFound found = search_plans(model, engine, search);
  ASSERT_FALSE(found.front.empty());
  for (const auto& [tp, pp] : {std::pair{1, 1}, {2, 1}, {1, 2}}) {
    Engine each = engine;
    each.tp = tp;
    each.pp = pp;
    auto server = Server::make(model, machine, each);
    ASSERT_TRUE(server.has_value());
    for (std::int64_t concurrency = 1; concurrency <= 256; concurrency *= 4) {
      requests::Generator load = search.load;
      load.count = std::max<std::int64_t>(16, 5 * concurrency);
      const Metrics m =
          metrics(server->run(requests::generate(load), {.max_concurrency = concurrency}), machine);
      EXPECT_TRUE(std::any_of(found.front.begin(), found.front.end(),
                              [&](const PlanPoint& point) {
                                return point.per_user >= 0.99 * m.output_tokens_per_s_per_user &&
                                       point.per_device >= 0.99 * m.output_tokens_per_s_per_device;
                              }))
          << tp << " " << pp << " " << concurrency;
    }
  }
}

TEST(SearchPlans, LosersSayWhy) {
  PlanSearch search;
  search.machines = {machine_named("dgx-h100")};
  search.devices = 4;
  search.load = lengths(200, 20);
  search.objectives.ttft = 2_ms;  // less than any prompt takes
  const PlansFound none =
      search_plans(model_named("llama-3-70b"), load_engine("vllm@0.19").value(), search);
  EXPECT_TRUE(none.front.empty());
  ASSERT_EQ(none.losers.size(), none.layouts.size());
  bool memory = false;
  bool limit = false;
  for (const Loser& loser : none.losers) {
    memory = memory || loser.reason.find("more tp or pp") != std::string::npos;
    limit = limit || loser.reason.find("TTFT") != std::string::npos;
  }
  EXPECT_TRUE(memory && limit);
}

}  // namespace
}  // namespace orrery::serving
