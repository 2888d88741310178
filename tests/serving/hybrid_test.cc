// SPDX-License-Identifier: Apache-2.0
/// Models whose layers do not all keep every token: windows, recurrent states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serving/serve.h"

namespace orrery::serving {
namespace {

step::StepCost hybrid_cost(const char* model, const step::StepOptions& options = {}) {
  return step::StepCost::make(zoo::load_model(model).value(),
                              machine::load_machine("dgx-h100").value(), options)
      .value();
}

TEST(HybridCache, LayersWithWindowsKeepTheWindow) {
  // gpt-oss-120b: 36 layers of 8 heads of 64 in 16 bits, every other with a window of 128.
  const step::CacheBytes cache = hybrid_cost("gpt-oss-120b").cache();
  constexpr Bytes kLayer = Bytes(2 * 8 * 64 * 2);
  EXPECT_EQ(cache.per_token, 18 * kLayer);
  EXPECT_EQ(cache.fixed(100), 100 * 18 * kLayer);
  EXPECT_EQ(cache.fixed(5000), 128 * 18 * kLayer);
  EXPECT_EQ(cache.fixed_tokens(5000), 128);
  step::StepOptions whole;
  whole.whole_windows = true;
  EXPECT_EQ(hybrid_cost("gpt-oss-120b", whole).cache().per_token, 36 * kLayer);
  EXPECT_EQ(hybrid_cost("gpt-oss-120b", whole).cache().fixed(5000), Bytes(0));
}

TEST(HybridCache, RecurrentLayersKeepTheirStates) {
  // Nemotron-H-8B: 24 Mamba-2 layers of 128 heads x 64 x 128 and 3 inputs of the convolution,
  // 8,192 + 2 x 8 x 128 wide; 4 layers of attention, 8 heads of 128. In 16 bits.
  constexpr std::int64_t kState = 128 * 64 * 128;
  constexpr std::int64_t kConvolution = 3 * (128 * 64 + 2 * 8 * 128);
  const step::CacheBytes cache = hybrid_cost("nemotron-h-8b").cache();
  EXPECT_EQ(cache.per_token, Bytes(4 * 2 * 8 * 128 * 2));
  EXPECT_EQ(cache.state, Bytes(24 * 2 * (kState + kConvolution)));
  step::StepOptions options;
  options.precision.state = graph::DataType::fp32;
  options.degrees.tp = 4;
  EXPECT_EQ(hybrid_cost("nemotron-h-8b", options).cache().state,
            Bytes(24 * (4 * kState + 2 * kConvolution) / 4));
}

TEST(HybridStep, DecodesReadAndWriteStatesOfAnyContext) {
  step::StepCost cost = hybrid_cost("nemotron-h-8b");
  const auto time = [&](std::int64_t requests, double keys) {
    return cost.time({.tokens = requests,
                      .samples = requests,
                      .prompts = {},
                      .decodes = requests,
                      .visible = {static_cast<double>(requests) * keys}});
  };
  // 128 requests more at 128 keys: 51.8 MB of states each are read and written at 3.35 TB/s at
  // most, and little else changes (weights are read once).
  const double states = 128 * 2 * 51.8e6 / 3.35e12;
  const double more = to_seconds(time(256, 128) - time(128, 128));
  EXPECT_GT(more, states);
  EXPECT_LT(more, 1.6 * states);
  // A context 100,000 tokens longer costs the keys and values of 4 layers, 16 KiB a token.
  const double keys = 16384 * 100'000 / 3.35e12;
  const double longer = to_seconds(time(1, 100'128) - time(1, 128));
  EXPECT_GT(longer, keys);
  EXPECT_LT(longer, 2 * keys);
}

TEST(HybridStep, GuessesWriteAStateEach) {
  // 400 rows as 400 requests read and write 800 states of 51.8 MB, as 100 requests with three
  // guesses each 500: what the latter save takes 300 states' time, 4.6 ms at 3.35 TB/s at most.
  step::StepCost cost = hybrid_cost("nemotron-h-8b");
  const auto time = [&](std::int64_t requests, std::int64_t queries) {
    return cost.time({.tokens = requests * queries,
                      .samples = requests * queries,
                      .prompts = {},
                      .decodes = requests,
                      .queries = queries,
                      .visible = {static_cast<double>(requests) * 128}});
  };
  const double states = 300 * 51.8e6 / 3.35e12;
  const double saved = to_seconds(time(400, 1) - time(100, 4));
  EXPECT_GT(saved, states);
  EXPECT_LT(saved, 1.6 * states);
}

TEST(HybridStep, PromptsAreScannedInProportionToTheirLength) {
  step::StepCost cost = hybrid_cost("nemotron-h-8b");
  const auto time = [&](std::int64_t tokens) {
    return cost.time({.tokens = tokens,
                      .samples = 1,
                      .prompts = {{.queries = tokens, .context = 0}},
                      .decodes = 0,
                      .visible = {0}});
  };
  // Four layers of attention add a little to what is linear.
  EXPECT_GT(time(8192) / time(4096), 1.9);
  EXPECT_LT(time(8192) / time(4096), 2.2);
}

TEST(HybridServe, ARequestHoldsItsStateBesideItsTokens) {
  Engine engine = load_engine("vllm@0.19").value();
  const zoo::Model model = zoo::load_model("nemotron-h-8b").value();
  const machine::Machine machine = machine::load_machine("dgx-h100").value();
  const std::vector<requests::Request> one{{.input = 100, .output = 50, .ids = {}}};
  const serving::Run run = serve(model, machine, engine, one).value();
  // 51,806,208 bytes are 3,162 tokens of 16,384 bytes, 198 blocks of 16; 149 tokens are 10.
  EXPECT_DOUBLE_EQ(run.peak_kv_use, 208.0 / static_cast<double>(run.kv_blocks));
  EXPECT_THAT(run.notes, testing::ElementsAre(testing::HasSubstr("without prefix cache")));
  // As many blocks as the state and 100 tokens take: the 101st has no room, ever.
  engine.blocks = 198 + 7 + 1;  // and vLLM's own
  EXPECT_EQ(serve(model, machine, engine, one)->refused, 1);
  engine.blocks = 198 + 10 + 1;
  EXPECT_EQ(serve(model, machine, engine, one)->refused, 0);
}

TEST(HybridServe, StatesMoveWithPrompts) {
  Engine engine = load_engine("vllm@0.19").value();
  engine.prefill = 1;
  const std::vector<requests::Request> one{{.input = 1000, .output = 50, .ids = {}}};
  const serving::Run run = serve(zoo::load_model("nemotron-h-8b").value(),
                                 machine::load_machine("dgx-h100").value(), engine, one)
                               .value();
  EXPECT_EQ(run.moved_bytes, Bytes(1000 * 16384 + 51'806'208));
}

TEST(HybridServe, CompressedKeysAndWiderHeadsAreServed) {
  // 8 requests at once. Gemma 4 31B reads 30.7e9 x 2 bytes on 2 H100 of 3.35 TB/s: 9.2 ms. Of
  // DeepSeek-V4-Flash's experts 8 x 6 choices reach 44 of 256 on the mean, 25.2e6 x 4.25 / 8 bytes
  // each in 43 layers, on 4 B200 of 8 TB/s: 0.8 ms; about 55 kernels a layer take 2 to 5 us each.
  struct Case {
    const char* model;
    const char* machine;
    std::int64_t tp;
    double least;
    double most;
  };
  for (const Case& one : {Case{"gemma-4-31b", "dgx-h100", 2, 9.2e-3, 18e-3},
                          Case{"deepseek-v4-flash", "dgx-b200", 4, 0.8e-3, 12e-3}}) {
    const zoo::ModelFile file = zoo::load_model_file(one.model).value();
    Engine engine = load_engine_for(file, "vllm@0.20").value();
    engine.tp = one.tp;
    const std::vector<requests::Request> sent(8, {.input = 500, .output = 20, .ids = {}});
    const serving::Run run = serve(zoo::load_model(one.model).value(),
                                   machine::load_machine(one.machine).value(), engine, sent)
                                 .value();
    EXPECT_EQ(run.refused, 0) << one.model;
    const double tpot = to_seconds(run.requests.back().tpot());
    EXPECT_GT(tpot, one.least) << one.model;
    EXPECT_LT(tpot, one.most) << one.model;
  }
}

TEST(HybridServe, WhatNeedsStatesOfTheMiddleIsRefused) {
  Engine engine = load_engine("vllm@0.19").value();
  engine.tiers = "host";
  engine.stated = {{"cache.prefix", "engine.yaml:3"}};
  const auto server = Server::make(zoo::load_model("nemotron-h-8b").value(),
                                   machine::load_machine("dgx-h100").value(), engine);
  ASSERT_FALSE(server);
  EXPECT_THAT(server.error().to_string(),
              testing::AllOf(testing::HasSubstr("cache.tiers"), testing::HasSubstr("recurrent"),
                             testing::HasSubstr("cache.prefix")));
}

}  // namespace
}  // namespace orrery::serving
