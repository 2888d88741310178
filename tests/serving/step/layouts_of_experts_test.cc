// SPDX-License-Identifier: Apache-2.0
/// Layers of 2025's and 2026's models in a step, and experts in any layout.
#include <gtest/gtest.h>

#include "serving/step/step_cost.h"

namespace orrery::step {
namespace {

StepCost expert_cost_of(const char* model, const StepOptions& options = {}) {
  return StepCost::make(zoo::load_model(model).value(), machine::load_machine("dgx-b200").value(),
                        options)
      .value();
}

StepOptions in_fp8(Degrees degrees) {
  StepOptions options;
  options.degrees = degrees;
  options.precision.weights = options.precision.activations = graph::DataType::fp8;
  return options;
}

StepShape decodes_of(const StepCost& cost, std::int64_t count, std::int64_t keys) {
  return {.tokens = count,
          .samples = count,
          .prompts = {},
          .decodes = count,
          .visible = std::vector<double>(cost.windows().size(), static_cast<double>(count * keys))};
}

TEST(ExpertLayouts, CopiesHoldAnEqualPartOfTheExpertsHoweverTheseAreSplit) {
  // Whole on ranks, or each over all ranks, or in between: experts / 4 of each of 4 ranks; what is
  // not experts' is the same.
  const Bytes whole =
      expert_cost_of("qwen3-30b-a3b", in_fp8({.dp = 4, .ep = 4})).weights_per_device();
  EXPECT_EQ(expert_cost_of("qwen3-30b-a3b", in_fp8({.dp = 4, .ep = 1})).weights_per_device(),
            whole);
  EXPECT_EQ(expert_cost_of("qwen3-30b-a3b", in_fp8({.dp = 4, .ep = 2})).weights_per_device(),
            whole);
}

TEST(ExpertLayouts, ThatDoNotDivideAreMistakes) {
  const auto message = [](Degrees degrees) {
    const auto cost = StepCost::make(zoo::load_model("qwen3-30b-a3b").value(),
                                     machine::load_machine("dgx-b200").value(), in_fp8(degrees));
    return cost ? "" : cost.error().to_string();
  };
  EXPECT_NE(message({.tp = 4, .ep = 3}).find("ep"), std::string::npos);
  EXPECT_NE(message({.tp = 2, .ep = 8}).find("ep"), std::string::npos);
  EXPECT_EQ(message({.tp = 4, .ep = 2}), "");
}

TEST(SparseAttention, ReadsTheChosenKeysAndAnIndexOfAll) {
  const StepOptions options = in_fp8({.tp = 8});
  StepCost dense = expert_cost_of("deepseek-v3", options);
  StepCost sparse = expert_cost_of("deepseek-v3.2", options);
  const auto more = [](StepCost& cost, std::int64_t keys) {
    return cost.time(decodes_of(cost, 64, 2 * keys)) - cost.time(decodes_of(cost, 64, keys));
  };
  // From 32,768 keys on a token more costs 128 + 4 bytes of the index and 8 of scores instead of
  // 1,152 of the latent: less than a third.
  EXPECT_LT(3 * more(sparse, 32768), more(dense, 32768));
  EXPECT_GT(more(sparse, 32768), Time(0));
}

TEST(TwoBatches, HideTheShorterOfExchangeAndKernels) {
  // DeepSeek-V3 on 4 nodes, tokens to their experts and back: halves take no longer than the whole
  // and no less than half of it, which exchange and kernels of equal length would; a token alone
  // has no halves.
  StepOptions options = in_fp8({.dp = 32, .ep = 32});
  options.dispatch = plan::MoeDispatch::hierarchical;
  const auto cost_with = [&](bool halves) {
    options.two_batch = halves;
    return StepCost::make(
               zoo::load_model("deepseek-v3").value(),
               machine::with_devices(machine::load_machine("dgx-h100").value(), 32).value(),
               options)
        .value();
  };
  StepCost whole = cost_with(false);
  StepCost halves = cost_with(true);
  const StepShape prompts{.tokens = 8192,
                          .samples = 8,
                          .prompts = std::vector<Prompt>(8, {.queries = 1024, .context = 0}),
                          .decodes = 0,
                          .visible = {0}};
  const double gain = whole.time(prompts) / halves.time(prompts);
  EXPECT_GT(gain, 1.1);
  EXPECT_LE(gain, 2);
  EXPECT_EQ(halves.time(decodes_of(halves, 1, 1000)), whole.time(decodes_of(whole, 1, 1000)));
  EXPECT_LE(halves.time(decodes_of(halves, 128, 1000)), whole.time(decodes_of(whole, 128, 1000)));
}

TEST(TwoBatches, AreRefusedWhereNothingIsExchanged) {
  StepOptions options = in_fp8({.tp = 8});
  options.two_batch = true;
  const auto refused = StepCost::make(zoo::load_model("deepseek-v3").value(),
                                      machine::load_machine("dgx-b200").value(), options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().to_string().find("two_batch"), std::string::npos);
}

TEST(ExpertsOfFourBits, AreRefusedOfAModelWithoutExperts) {
  StepOptions options = in_fp8({.pp = 2, .dp = 2});
  options.precision.experts_fp4 = true;
  const auto refused = [&](const char* model) {
    return StepCost::make(zoo::load_model(model).value(), machine::load_machine("dgx-b200").value(),
                          options)
        .error()
        .to_string();
  };
  EXPECT_NE(refused("llama-3-8b").find("experts_fp4: found 'true', expected false"),
            std::string::npos);
  EXPECT_NE(refused("qwen3-30b-a3b").find("dp: found '2', expected 1 with pp"), std::string::npos);
}

TEST(FourBitProducts, LagBehindTheFastestWhereTheirRowsAreFew) {
  // Products are most of a decode's time; of 1,024 rows an eighth of the lag is left.
  StepOptions options;
  options.precision.weights = options.precision.activations = graph::DataType::fp4;
  StepCost fastest = expert_cost_of("llama-3.1-70b", options);
  options.fp4_lag = 0.2;
  StepCost lagging = expert_cost_of("llama-3.1-70b", options);
  const auto longer = [&](std::int64_t rows) {
    return lagging.time(decodes_of(lagging, rows, 100)) /
               fastest.time(decodes_of(fastest, rows, 100)) -
           1;
  };
  EXPECT_GT(longer(1), 0.1);
  EXPECT_LT(longer(1), 0.2);
  EXPECT_LT(longer(128), 0.2);
  EXPECT_GT(longer(1024), 0);
  EXPECT_LT(longer(1024), 0.2 / 8);
}

TEST(SparseAttention, KeepsTheIndexBesideTheLatent) {
  // 61 layers of 512 + 64 elements of 2 bytes and a key of 132 bytes, on every rank.
  EXPECT_EQ(expert_cost_of("deepseek-v3.2", in_fp8({.tp = 8})).kv_bytes_per_token(),
            Bytes(61 * (2 * 576 + 132)));
}

TEST(CompressedAttention, KeepsWhatIsPublishedOfAMillionTokens) {
  // DeepSeek-V4-Pro in 16 bits: 30 layers of a key of 512 elements and one of the index for four
  // tokens, 31 of a key for 128. vLLM's 9.62 GiB (blog of 24 April 2026) have index keys of 256
  // bytes, which lie in 132 here.
  const step::CacheBytes pro = expert_cost_of("deepseek-v4-pro", in_fp8({.tp = 8})).cache();
  EXPECT_EQ(pro.per_token, Bytes(30 * (1024 + 132) / 4 + 31 * 1024 / 128));
  const double published = static_cast<double>(pro.per_token.value() + 30 * (256 - 132) / 4);
  EXPECT_NEAR(published * (1 << 20) / (1 << 30), 9.62, 0.005);
  // Flash in fp8: 448 + 2 x 64 + 8 bytes a key, of 21 and 20 layers, and what does not grow: 128
  // keys of all 43 layers, values and weights in fp32 of the tokens that become the next keys.
  StepOptions options = in_fp8({.tp = 4});
  options.precision.kv = graph::DataType::fp8;
  const step::CacheBytes flash = expert_cost_of("deepseek-v4-flash", options).cache();
  EXPECT_EQ(flash.per_token, Bytes(21 * (584 + 132) / 4 + 20 * 584 / 128));
  EXPECT_EQ(flash.fixed(100'000),
            Bytes(128 * 43 * 584 + 8 * 21 * (2 * 4 * 2 * 640) + 128 * 20 * (2 * 4 * 512)));
}

TEST(CompressedAttention, DecodesOfLongContextsCostAFewOfTheirKeys) {
  const StepOptions options = in_fp8({.tp = 8});
  StepCost dense = expert_cost_of("deepseek-v3", options);
  StepCost compressed = expert_cost_of("deepseek-v4-flash", options);
  const auto more = [](StepCost& cost, std::int64_t keys) {
    StepShape before = decodes_of(cost, 64, keys);
    StepShape after = decodes_of(cost, 64, 2 * keys);
    after.visible.at(1 % after.visible.size()) = before.visible.at(1 % before.visible.size());
    after.visible.at(0) = 64.0 * static_cast<double>(2 * keys);
    return cost.time(after) - cost.time(before);
  };
  // A token more costs 21 layers of (132 + 8) / 4 bytes and 20 of 1,024 / 128 instead of 61 of
  // 1,152: a seventy-fifth of the bytes.
  EXPECT_GT(more(compressed, 65536), Time(0));
  EXPECT_LT(20 * more(compressed, 65536), more(dense, 65536));
}

TEST(WiderHeads, OfFullLayersHaveTheirOwnCacheAndCost) {
  // Gemma 4 31B: 10 layers of 4 heads of 512 see all, 50 of 16 heads of 256 the last 1,024; of 8
  // ranks each has one of the former's, copied, and two of the latter's.
  const step::CacheBytes whole = expert_cost_of("gemma-4-31b").cache();
  EXPECT_EQ(whole.per_token, Bytes(10 * 2 * 4 * 512 * 2));
  EXPECT_EQ(whole.fixed(5000), Bytes(1024 * 50 * 2 * 16 * 256 * 2));
  StepOptions eight;
  eight.degrees.tp = 8;
  const step::CacheBytes part = expert_cost_of("gemma-4-31b", eight).cache();
  EXPECT_EQ(part.per_token, Bytes(10 * 2 * 1 * 512 * 2));
  EXPECT_EQ(part.fixed(5000), Bytes(1024 * 50 * 2 * 2 * 256 * 2));
}

TEST(GatedDeltaNets, KeepAStateAndTheKeysOfOneLayerInFour) {
  // 45 layers of 64 x 128 x 128 elements of 4 bytes and 3 x (64 + 2 x 16) x 128 of 2; 15 layers of
  // 2 x 2 heads x 256 elements of 2 bytes.
  StepOptions options;
  options.degrees.tp = 1;
  options.precision.state = graph::DataType::fp32;
  const StepCost cost = expert_cost_of("qwen3.5-397b-a17b", options);
  EXPECT_EQ(cost.cache().state, Bytes(45 * (64 * 128 * 128 * 4 + 3 * 96 * 128 * 2)));
  EXPECT_EQ(cost.kv_bytes_per_token(), Bytes(30720));
}

TEST(GatedDeltaNets, DecodeInTimeThatDoesNotGrowWithTheirPart) {
  StepCost cost = expert_cost_of("qwen3-next-80b-a3b", in_fp8({.tp = 2}));
  StepCost attention = expert_cost_of("qwen3-30b-a3b", in_fp8({.tp = 2}));
  const auto more = [](StepCost& of) {
    return of.time(decodes_of(of, 32, 16384)) - of.time(decodes_of(of, 32, 8192));
  };
  // 12 layers of 1 of 2 heads of 2 x 256 elements, against 48 of 2 of 4 heads of 2 x 128: a
  // quarter.
  EXPECT_LT(2 * more(cost), more(attention));
}

TEST(Prompts, OfUnequalLengthsTakeMoreThanOnesOfTheirMean) {
  StepCost cost = expert_cost_of("llama-3.1-8b");
  const auto of = [&](const std::vector<Prompt>& prompts) {
    StepShape shape{.tokens = 8192,
                    .samples = 8,
                    .prompts = prompts,
                    .decodes = 0,
                    .visible = std::vector<double>(cost.windows().size(), 0)};
    return cost.time(shape);
  };
  std::vector<Prompt> unequal(7, {.queries = 64, .context = 0});
  unequal.push_back({.queries = 8192 - 7 * 64, .context = 0});
  const std::vector<Prompt> equal(8, {.queries = 1024, .context = 0});
  // 7,744^2 / 2 pairs of the longest alone are 7.1 times the 8 x 1,024^2 / 2 of equal ones.
  EXPECT_GT(of(unequal), of(equal));
}

TEST(Prompts, OutsideGraphsTakeTheHostsTimeForEveryKernel) {
  StepOptions options;
  options.captures = {1, 2, 4, 8, 16};
  options.launch = 20_us;
  StepCost inside = expert_cost_of("llama-3.1-8b", options);
  options.eager_prompts = true;
  StepCost outside = expert_cost_of("llama-3.1-8b", options);
  StepShape prompt{.tokens = 16,
                   .samples = 1,
                   .prompts = {{.queries = 16, .context = 0}},
                   .decodes = 0,
                   .visible = std::vector<double>(inside.windows().size(), 0)};
  // At least 32 layers of 9 kernels.
  EXPECT_GT(outside.time(prompt), 32 * 9 * 20_us);
  EXPECT_GT(outside.time(prompt), inside.time(prompt));
  EXPECT_EQ(outside.time(decodes_of(outside, 8, 100)), inside.time(decodes_of(inside, 8, 100)));
}

}  // namespace
}  // namespace orrery::step
