// SPDX-License-Identifier: Apache-2.0
/// Encoders of text: a request is answered by a vector.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serving/requests/generate.h"
#include "serving/serve.h"

namespace orrery::serving {
namespace {

TEST(Encoders, AnswerWithOneVectorAndKeepNothing) {
  const zoo::Model bert = zoo::load_model("bert-large").value();
  const machine::Machine machine = machine::load_machine("dgx-h100").value();
  requests::Generator texts{.arrival = requests::Arrival::infinite, .input = {.first = 512}};
  texts.output = {.first = 1};
  texts.count = 64;
  const auto run =
      serve(bert, machine, load_engine("vllm@0.19").value(), requests::generate(texts));
  ASSERT_TRUE(run) << run.error().to_string();
  ASSERT_EQ(run->requests.size(), 64U);  // of all positions, which leave no token for an answer
  EXPECT_EQ(run->totals.scheduled_tokens, 64 * 512);
  EXPECT_EQ(run->cache.per_token, Bytes(0));
  for (const Served& request : run->requests) {
    EXPECT_EQ(request.first, request.last);
  }
  // 24 layers of 12,596,224 parameters: 2 x 302.3 M x 32,768 tokens = 19.8 TFLOP, and attention,
  // 4 x 1024 x 512^2 x 64 x 24 = 1.6; an H100 does 989 TFLOP/s.
  EXPECT_GT(to_seconds(run->busy), 21.4 / 989);
  EXPECT_LT(to_seconds(run->busy), 3 * 21.4 / 989);
  // The tables of words (30,522, padded to a multiple of 64 as engines have it), positions and
  // types, a norm; layers; no heads. In 16 bits.
  const std::int64_t tables = (30528 + 512 + 2 + 2) * 1024;
  EXPECT_EQ(run->weights, Bytes(2 * (24 * 12'596'224LL + tables)));
}

TEST(Encoders, LayersSeeAllOfTheirText) {
  zoo::Model model = zoo::load_model("qwen3-0.6b").value();
  const machine::Machine machine = machine::load_machine("dgx-h100").value();
  const auto time = [&] {
    auto cost = step::StepCost::make(model, machine, {});
    EXPECT_TRUE(cost) << cost.error().to_string();
    return to_seconds(cost->time({.tokens = 8192,
                                  .samples = 1,
                                  .prompts = {{.queries = 8192, .context = 0}},
                                  .visible = {0}}));
  };
  const double causal = time();
  model.kinds = {{.causal = false}};
  // Twice the pairs: 4 x 16 x 128 x 8192^2 / 2 x 28 layers = 7.7 TFLOP more. Keys and values are
  // not written: 28 layers of 2 x 8192 x 2048 x 2 bytes, and no logits, less than 3 ms.
  EXPECT_GT(time() - causal, 7.7 / 989 - 3e-3);
}

TEST(Encoders, AWindowLongerThanTheTextCutsNothing) {
  zoo::Model model = zoo::load_model("qwen3-0.6b").value();
  const machine::Machine machine = machine::load_machine("dgx-h100").value();
  const auto time = [&](std::int64_t window) {
    model.kinds = {{.window = window, .causal = false}};
    auto cost = step::StepCost::make(model, machine, {});
    EXPECT_TRUE(cost) << cost.error().to_string();
    return cost->time({.tokens = 1000,
                       .samples = 1,
                       .prompts = {{.queries = 1000, .context = 0}},
                       .visible = std::vector<double>(cost->windows().size())});
  };
  EXPECT_EQ(time(4096), time(0));
  EXPECT_LT(time(100), time(0));  // 10 windows of 100: a tenth of the pairs
}

}  // namespace
}  // namespace orrery::serving
