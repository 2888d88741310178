// SPDX-License-Identifier: Apache-2.0
/// `compose` and `home` price one system alone; `serve` runs the same models on the same machines.
/// Both must say the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "serving/composition.h"
#include "serving/home.h"
#include "serving/requests/generate.h"
#include "serving/serve.h"

namespace orrery::serving {
namespace {

Engine plain_engine() {
  Engine engine = load_engine("vllm@0.10").value();  // synchronous
  engine.largest_graph = 0;
  return engine;
}

RC_GTEST_PROP(OneServe, ACompositionOfExpertsIsServedAsComposeSays, ()) {
  static const machine::Machine machine = machine::load_machine("sn40l").value();
  static const zoo::Model model = zoo::load_model("llama-2-7b").value();
  Composition composition;
  composition.input = *rc::gen::inRange(1, 600);
  composition.output = *rc::gen::inRange(1, 30);
  composition.experts = *rc::gen::inRange(1, 60);
  composition.batches = 1;
  step::StepOptions options;
  options.degrees.tp = 8;
  const ComposedRun composed = compose(model, machine, options, composition).value();

  Engine engine = plain_engine();
  engine.tp = 8;
  engine.adapter_slots = *rc::gen::inRange(1, 30);
  engine.whole_adapters = true;
  engine.front_end = composed.router;  // names the expert
  requests::Generator load;
  load.arrival = requests::Arrival::infinite;
  load.input = {.first = static_cast<double>(composition.input)};
  load.output = {.first = static_cast<double>(composition.output)};
  load.count = 40;
  load.adapters = composition.experts;
  load.seed = static_cast<std::uint64_t>(*rc::gen::inRange(0, 1000));
  const serving::Run run =
      serve(model, machine, engine, requests::generate(load), {.max_concurrency = 1}).value();
  const Time answers =
      std::accumulate(run.requests.begin(), run.requests.end(), Time(0),
                      [](Time sum, const Served& request) { return sum + request.latency(); });
  const std::int64_t copies = run.totals.copied_adapters;
  RC_ASSERT(copies >= 1);
  // A copy starts with the latency of its tier, which `compose` leaves out.
  const Time copying = copies * (composed.switching + machine.device.memory[1].latency);
  const Time expected = 40 * (composed.router + composed.prefill + composed.decode) + copying;
  RC_ASSERT(std::abs(answers / expected - 1) < 1e-9);
}

TEST(OneServe, ModelsOfAStepRunOneAfterTheOther) {
  const machine::Machine machine = machine::load_machine("sn40l").value();
  const zoo::Model model = zoo::load_model("llama-2-7b").value();
  Engine engine = plain_engine();
  engine.tp = 8;
  engine.adapter_slots = 4;
  engine.whole_adapters = true;
  const auto time_of = [&](std::int32_t second) {
    const std::vector<requests::Request> two{
        {.input = 200, .output = 10, .ids = {}, .adapter = 0},
        {.input = 200, .output = 10, .ids = {}, .adapter = second}};
    const serving::Run run = serve(model, machine, engine, two).value();
    return run.duration - run.copying;
  };
  engine.async = false;
  const std::vector<requests::Request> one{{.input = 200, .output = 10, .ids = {}, .adapter = 0}};
  const serving::Run alone = serve(model, machine, engine, one).value();
  EXPECT_NEAR(time_of(1) / (2 * (alone.duration - alone.copying)), 1, 1e-9);
  EXPECT_LT(time_of(0) / (alone.duration - alone.copying), 1.6);  // they share its weights
}

struct HomeCase {
  const char* model;
  std::int64_t window;
  std::int64_t retain;
};

class ServedAtHome : public testing::TestWithParam<HomeCase> {};

// Seconds of a token from blocks priced whole (`home`) and from every kernel of a step (`serve`).
TEST_P(ServedAtHome, TakesAsLongAsHomeSays) {
  const machine::Machine machine = machine::load_machine("home-8").value();
  const zoo::Model model = zoo::load_model(GetParam().model).value();
  Home home;
  home.window = GetParam().window;
  home.retain = GetParam().retain;
  const HomeRun alone = serve_at_home(model, machine, home).value();
  Engine engine = plain_engine();
  engine.tp = 8;
  engine.gateway = step::Gateway::fastest;
  engine.weight_window = home.window;
  engine.weight_retain = home.retain;
  engine.max_num_seqs = 4;
  engine.max_num_batched_tokens = 512;
  const std::vector<requests::Request> one{{.input = 16, .output = 20, .ids = {}}};
  const serving::Run run = serve(model, machine, engine, one).value();
  EXPECT_THAT(run.notes, testing::Contains(testing::HasSubstr("in fp32")));
  // `home` leaves the output head to the master, `serve` splits it.
  EXPECT_NEAR(run.requests[0].tpot() / alone.next_token, 1, 0.05);
  EXPECT_LT(run.weights, alone.resident_memory);
}
INSTANTIATE_TEST_SUITE_P(Tables, ServedAtHome,
                         testing::Values(HomeCase{"llama-2-7b", 2, 0}, HomeCase{"llama-2-7b", 4, 2},
                                         HomeCase{"llama-2-13b", 2, 0},
                                         HomeCase{"llama-2-70b", 2, 0},
                                         HomeCase{"llama-3.1-8b", 2, 0}),
                         [](const auto& row) {
                           std::string name = row.param.model;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == '-' || c == '.'; }, '_');
                           return name + "_" + std::to_string(row.param.window);
                         });

TEST(OneServe, AWindowOfAllBlocksIsNone) {
  machine::Machine machine = machine::load_machine("home-8").value();
  const zoo::Model model = zoo::load_model("llama-3.2-1b").value();
  Engine engine = plain_engine();
  engine.tp = 8;
  const std::vector<requests::Request> one{{.input = 16, .output = 20, .ids = {}}};
  const serving::Run resident = serve(model, machine, engine, one).value();
  engine.weight_window = 2 * model.layers;
  const serving::Run windowed = serve(model, machine, engine, one).value();
  EXPECT_NEAR(windowed.duration / resident.duration, 1, 1e-6);
  EXPECT_EQ(windowed.weights, resident.weights);
  // Two blocks at a time cost nothing from this disk, and much from one a hundredth as fast.
  engine.weight_window = 2;
  EXPECT_GE(serve(model, machine, engine, one).value().duration, resident.duration);
  machine.device.memory[1].bandwidth = machine.device.memory[1].bandwidth * 0.01;
  EXPECT_GT(serve(model, machine, engine, one).value().duration, 2 * resident.duration);
}

}  // namespace
}  // namespace orrery::serving
