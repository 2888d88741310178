// SPDX-License-Identifier: Apache-2.0
#include "serving/step/step_cost.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "serving/step/pass_operators.h"
#include "workload/plan/routing.h"

namespace orrery::step {
namespace {

StepCost step_cost_of(const char* model, const StepOptions& options = {},
                      const char* machine = "dgx-h100") {
  return StepCost::make(zoo::load_model(model).value(), machine::load_machine(machine).value(),
                        options)
      .value();
}

StepShape decodes(const StepCost& cost, std::int64_t count, std::int64_t keys) {
  StepShape shape{
      .tokens = count, .samples = count, .prompts = {}, .decodes = count, .visible = {}};
  for (const std::int64_t window : cost.windows()) {
    shape.visible.push_back(
        static_cast<double>(count * (window > 0 ? std::min(keys, window) : keys)));
  }
  return shape;
}

StepShape prompt(const StepCost& cost, std::int64_t tokens, std::int64_t context) {
  return {.tokens = tokens,
          .samples = 1,
          .prompts = {{.queries = tokens, .context = context}},
          .decodes = 0,
          .visible = std::vector<double>(cost.windows().size(), 0)};
}

TEST(StepCost, BytesOfTheCacheAreThoseOfTheModels) {
  // Layers x 2 x key-value heads x head size x 2 bytes; MLA: layers x (512 + 64) x 2.
  EXPECT_EQ(step_cost_of("llama-3.1-8b").kv_bytes_per_token(), Bytes(131072));
  EXPECT_EQ(step_cost_of("qwen3-30b-a3b").kv_bytes_per_token(), Bytes(98304));
  StepOptions eight;
  eight.degrees.tp = 8;
  eight.precision.weights = graph::DataType::fp8;
  EXPECT_EQ(step_cost_of("llama-3-70b", eight).kv_bytes_per_token(), Bytes(327680 / 8));
  EXPECT_EQ(step_cost_of("deepseek-v3", eight).kv_bytes_per_token(),
            Bytes(70272));  // on every rank
}

TEST(StepCost, DecodesBesidePromptsAreTilesOfTheirOwnOnDevicesOfFlashAttention2) {
  StepOptions together;
  together.one_launch = true;
  const auto more_than_apart = [&](const char* machine, double longest) {
    StepCost one = step_cost_of("llama-3.1-8b", together, machine);
    StepCost two = step_cost_of("llama-3.1-8b", {}, machine);
    StepShape mixed = decodes(one, 64, 512);
    mixed.longest = longest;
    mixed.tokens += 256;
    mixed.samples += 1;
    mixed.prompts = {{.queries = 256, .context = 0}};
    return one.time(mixed) - two.time(mixed);
  };
  // 64 x 32 tiles of 512 + 63.5 + 54.7 keys on 128 units, 64 x 512 FLOPs a key (and 54 of
  // exponentials) at 0.72 of 165.2 TFLOP/s: 16 x 630.2 x 35.26 ns = 355.5 us, instead of 135 MB at
  // 0.85 of 1,008 GB/s, 158 us: 197.5 us more in each of 32 layers.
  EXPECT_NEAR(to_seconds(more_than_apart("rtx-4090", 0)), 32 * 197.5e-6, 32 * 2e-6);
  EXPECT_GT(more_than_apart("rtx-4090", 4096), more_than_apart("rtx-4090", 0));
  EXPECT_EQ(more_than_apart("dgx-h100", 4096), Time(0));
}

TEST(StepCost, ActivationsOfExpertsAreOfRowsOfAllCopies) {
  // 2 x 1,000 (3 x 14,336 + 2 x 4,096); logits of one sample: 10 x 128,256.
  const StepCost dense = step_cost_of("llama-3.1-8b");
  EXPECT_EQ(dense.activations(1000, 0), Bytes(102'400'000));
  EXPECT_EQ(dense.activations(1000, 1), Bytes(102'400'000 + 1'282'560));
  // 8 copies of 1,000 tokens, 8 rows each of max(2 x 1,536, 4,096) + 1,536, and 2 x 4,096; tokens
  // that go to their experts are as many as came.
  StepOptions options;
  options.degrees = {.dp = 8, .ep = 8};
  EXPECT_EQ(step_cost_of("qwen3-235b-a22b", options).activations(1000, 0),
            Bytes(std::int64_t{2} * 8 * 1000 * (8 * 5632 + 8192)));
  options.dispatch = plan::MoeDispatch::all_to_all;
  EXPECT_EQ(step_cost_of("qwen3-235b-a22b", options).activations(1000, 0),
            Bytes(std::int64_t{2} * 1000 * (8 * 5632 + 8192)));
}

TEST(StepCost, TheBusiestRankOfExpertsDecides) {
  StepOptions options;
  options.degrees = {.dp = 8, .ep = 8};
  const auto time = [&](std::int64_t tokens) {
    StepCost cost = step_cost_of("qwen3-235b-a22b", options);
    return cost.time(prompt(cost, tokens, 0));
  };
  const Time even = time(4096);
  // 128 experts on 8 ranks: the busiest has 1.548 times the mean (plan::busiest_rank).
  options.spread = 1.36;
  const Time spread = time(4096);
  options.spread = 0;
  options.imbalance = plan::busiest_rank(1.36, 8, 128);
  EXPECT_NEAR(time(4096) / spread, 1, 0.01);                      // all experts are reached
  EXPECT_NEAR(to_seconds(spread) / to_seconds(even), 1.4, 0.29);  // not all of it is of experts
  options.degrees = {.tp = 8};  // parts of every expert on every rank
  options.spread = 1.36;
  options.imbalance = 1;
  // 3,840 x 8 / 128 = 240 rows an expert, of the reached hardly more: a tile of 256 with and
  // without.
  const Time split = time(3840);
  options.spread = 0;
  EXPECT_NEAR(split / time(3840), 1, 0.03);
}

TEST(StepCost, KeyValueHeadsAreCopiedWhereThereAreFewerThanRanks) {
  // Qwen3-235B has 4: at tp 8 every rank holds one.
  StepOptions eight;
  eight.degrees.tp = 8;
  EXPECT_EQ(step_cost_of("qwen3-235b-a22b", eight).kv_bytes_per_token(), Bytes(94 * 2 * 128 * 2));
}

TEST(ContextParallel, SharesPromptsAndCaches) {
  StepOptions four;
  four.degrees.cp = 4;
  StepCost alone = step_cost_of("llama-3.1-8b");
  StepCost shared = step_cost_of("llama-3.1-8b", four);
  EXPECT_EQ(shared.kv_bytes_per_token(), Bytes(131072 / 4));
  EXPECT_EQ(shared.weights_per_device(), alone.weights_per_device());
  // 128 Ki tokens: keys and values of a layer (134 MB a rank) pass behind 10 ms of attention; only
  // the queries' tiles and the head stay.
  const StepShape long_prompt = prompt(alone, 131072, 0);
  const double gain = alone.time(long_prompt) / shared.time(long_prompt);
  EXPECT_GT(gain, 3.6);
  EXPECT_LT(gain, 4.1);
  // 64 tokens: the weights are read all the same.
  EXPECT_GT(shared.time(prompt(alone, 64, 0)), alone.time(prompt(alone, 64, 0)) * 0.9);
  // One decode of 128 Ki keys: 16 GiB of cache beside 15 GiB of weights; a quarter of the first.
  const Time saved = alone.time(decodes(alone, 1, 131072)) - shared.time(decodes(alone, 1, 131072));
  EXPECT_LT(saved, Bytes(131072) * 131072 * 0.75 / (Bandwidth(3350e9) * 0.7));
  EXPECT_GT(saved, Bytes(131072) * 131072 * 0.5 / Bandwidth(3350e9));
  // With short contexts merging is all that it does.
  EXPECT_GT(shared.time(decodes(alone, 8, 100)), alone.time(decodes(alone, 8, 100)));
}

TEST(ContextParallel, AChunkBehindAContextSeesItAll) {
  // Two halves of a prompt, the second after the first, compute all pairs of the whole.
  StepOptions two;
  two.degrees.cp = 2;
  StepCost shared = step_cost_of("llama-3.1-8b", two);
  const Time whole = shared.time(prompt(shared, 65536, 0));
  const Time halves =
      shared.time(prompt(shared, 32768, 0)) + shared.time(prompt(shared, 32768, 32768));
  EXPECT_NEAR(halves / whole, 1, 0.05);
}

/// H100 limited to 500 W, as arXiv 2411.01783 has it (appendix A: published): 800 TFLOP/s in bf16,
/// HBM2e at 2.4 TB/s.
machine::Machine limited_to_500_watts() {
  machine::Machine machine = machine::load_machine("dgx-h100").value();
  for (FlopRate& peak : machine.device.peak) {
    peak = peak * (800 / 989.4);
  }
  machine.device = compute::at_boost(machine.device);
  machine.device.memory.front().bandwidth = Bandwidth(2.4e12);
  return machine;
}

/// Prefill of Llama 3 405B, feed-forward layers in fp8, tp 8 in a node and cp between nodes.
double prefill_of_405b(std::int64_t cp, std::int64_t tokens) {
  StepOptions options;
  options.degrees = {.tp = 8, .cp = cp};
  options.precision = {
      .weights = graph::DataType::fp8, .activations = graph::DataType::fp8, .narrow = Narrow::mlp};
  StepCost cost =
      StepCost::make(zoo::load_model("llama-3.1-405b").value(), limited_to_500_watts(), options)
          .value();
  return to_seconds(cost.time(prompt(cost, tokens, 0)));
}

TEST(ContextParallel, PrefillsOfTheMillionTokenPaper) {
  // arXiv 2411.01783 (published): tables 6 and 7, sections 4.2.1 and 4.2.3.
  struct Row {
    std::int64_t cp, tokens;
    double seconds;
  };
  for (const Row& row : std::vector<Row>{{1, 8192, 1.740},
                                         {1, 32768, 7.658},
                                         {1, 131072, 42.010},
                                         {2, 8192, 0.999},
                                         {2, 32768, 4.015},
                                         {2, 131072, 21.042},
                                         {4, 131072, 10.950},
                                         {8, 131072, 5.85},
                                         {16, 131072, 3.8},
                                         {16, 1048576, 77}}) {
    const double seconds = prefill_of_405b(row.cp, row.tokens);
    fmt::print("cp {:>2}, {:>7} tokens: {:6.2f} s, published {:6.2f} s: {:+.1f} %\n", row.cp,
               row.tokens, seconds, row.seconds, 100 * (seconds / row.seconds - 1));
    EXPECT_GT(seconds, 0.64 * row.seconds);
    EXPECT_LT(seconds, row.seconds);
  }
}

TEST(ContextParallel, NodesShareAPromptAsPublished) {
  // 42.01 s on one node become 21.042, 10.95 and 5.85 s on 2, 4 and 8 (ibid.).
  const double one = prefill_of_405b(1, 131072);
  for (const auto& [cp, seconds] : {std::pair{2, 21.042}, {4, 10.95}, {8, 5.85}}) {
    EXPECT_NEAR(one / prefill_of_405b(cp, 131072) / (42.01 / seconds), 1, 0.05) << cp;
  }
}

TEST(ContextParallel, IsRefusedWhereItIsNotModelled) {
  StepOptions options;
  options.degrees = {.tp = 1, .pp = 2, .cp = 2};
  const auto machine = machine::load_machine("dgx-h100").value();
  const auto both = StepCost::make(zoo::load_model("llama-3.1-8b").value(), machine, options);
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().to_string(), ::testing::HasSubstr("cp: found '2'"));
  options.degrees = {.tp = 8, .cp = 2};
  EXPECT_FALSE(StepCost::make(zoo::load_model("deepseek-v3").value(), machine, options));
}

TEST(StepCost, WeightsAreTheParametersInTheirType) {
  // Llama-3.1-8B: 8.03 billion in 2 bytes.
  const double wide =
      static_cast<double>(step_cost_of("llama-3.1-8b").weights_per_device().value());
  EXPECT_NEAR(wide / 16.06e9, 1, 0.002);
  StepOptions narrow;
  narrow.precision.weights = graph::DataType::fp8;
  narrow.precision.activations = graph::DataType::fp8;
  // The layers' 6.98 billion in one byte; both tables of 0.525 billion stay in two.
  const auto bytes =
      static_cast<double>(step_cost_of("llama-3.1-8b", narrow).weights_per_device().value());
  EXPECT_NEAR(bytes / (6.98e9 + 2 * 1.05e9), 1, 0.005);
}

TEST(StepCost, RanksTogetherHoldTheModelOnce) {
  // But for norms, which every rank has: 6.74 billion parameters in 2 bytes.
  StepOptions eight;
  eight.degrees.tp = 8;
  const double all =
      8 * static_cast<double>(step_cost_of("llama-2-7b", eight).weights_per_device().value());
  const double one = static_cast<double>(step_cost_of("llama-2-7b").weights_per_device().value());
  EXPECT_NEAR(one / 13.48e9, 1, 0.001);
  EXPECT_NEAR(all / one, 1, 0.001);
}

TEST(StepCost, DecodesAreBoundByBytesAndPromptsByFlops) {
  StepOptions four;
  four.degrees.tp = 4;
  StepCost cost = step_cost_of("llama-3-70b", four);
  // 141 GB / 4 / 3.35 TB/s = 10.5 ms at least; a prompt of 8192 tokens 2 x 70e9 x 8192 FLOPs / 4 /
  // 989 TFLOP/s = 290 ms at least. Neither more than twice that.
  const Time decode = cost.time(decodes(cost, 1, 100));
  EXPECT_GT(decode, 10_ms);
  EXPECT_LT(decode, 20_ms);
  const Time prefill = cost.time(prompt(cost, 8192, 0));
  EXPECT_GT(prefill, 290_ms);
  EXPECT_LT(prefill, 580_ms);
}

TEST(StepCost, MoreContextMoreRequestsMoreTime) {
  for (const char* name : {"llama-3.1-8b", "gpt-oss-20b", "deepseek-v2-lite", "qwen3-30b-a3b"}) {
    StepOptions graphs;
    graphs.captures = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
    StepCost cost = step_cost_of(name, graphs);
    EXPECT_LT(cost.time(decodes(cost, 8, 100)), cost.time(decodes(cost, 8, 20000))) << name;
    EXPECT_LT(cost.time(decodes(cost, 8, 100)), cost.time(decodes(cost, 128, 100))) << name;
    EXPECT_LT(cost.time(prompt(cost, 1000, 0)), cost.time(prompt(cost, 1000, 30000))) << name;
  }
}

TEST(StepCost, AStepInAGraphIsPadded) {
  StepOptions graphs;
  graphs.captures = {8, 16};
  StepCost cost = step_cost_of("llama-3.2-1b", graphs);
  EXPECT_EQ(cost.padded(9), 16);
  EXPECT_EQ(cost.padded(17), 17);
  StepOptions eager;
  StepCost without = step_cost_of("llama-3.2-1b", eager);
  // Eager: 5 us for each of some 150 kernels are longer than the work.
  EXPECT_GT(without.time(decodes(without, 1, 10)), 2 * cost.time(decodes(cost, 1, 10)) / 3);
}

TEST(StepCost, NarrowWeightsAreReadFaster) {
  StepOptions graphs;
  graphs.captures = {1};
  StepCost wide = step_cost_of("llama-3.1-8b", graphs);
  graphs.precision.weights = graph::DataType::fp4;  // computed in bf16: w4a16
  StepCost narrow = step_cost_of("llama-3.1-8b", graphs);
  EXPECT_LT(narrow.time(decodes(narrow, 1, 10)), 0.6 * wide.time(decodes(wide, 1, 10)));
}

TEST(StepCost, DispatchSendsTokensToTheirExpertsOnly) {
  // DeepSeek-V3 on 32 ranks of 4 nodes, 8 of 256 experts a token. An all-gather brings a node's
  // adapters the rows of 24 others, 2 bytes a number, and takes their sums back. Copies to 8
  // experts are more (3/4 of 8 leave the node, 1 byte out and 2 back), one a node of these (3.6 on
  // the mean) fewer.
  const zoo::Model model = zoo::load_model("deepseek-v3").value();
  const machine::Machine machine = machine::load_machine("dgx-h100").value();
  const auto time = [&](plan::MoeDispatch dispatch) {
    StepOptions options;
    options.degrees = {.dp = 32, .ep = 32};
    options.precision.weights = options.precision.activations = graph::DataType::fp8;
    options.captures = {1024};
    options.dispatch = dispatch;
    StepCost cost = StepCost::make(model, machine, options).value();
    return cost.time(decodes(cost, 1024, 1000));
  };
  const Time gathered = time(plan::MoeDispatch::all_gather);
  const Time copied = time(plan::MoeDispatch::all_to_all);
  const Time merged = time(plan::MoeDispatch::hierarchical);
  EXPECT_LT(merged, gathered);
  EXPECT_LT(merged, copied);
  // Copies: 3/4 of 1024 x 8 x 7168 x 3 bytes in each of 58 layers at 50 GB/s, 153 ms; merged 4 (1 -
  // 0.75^8) / 8 = 0.45 of it.
  EXPECT_NEAR(to_seconds(copied - merged), 0.084, 0.03);
}

TEST(StepCost, MistakesAreNamed) {
  const auto make = [](const char* model, const StepOptions& options) {
    const auto cost = StepCost::make(zoo::load_model(model).value(),
                                     machine::load_machine("dgx-h100").value(), options);
    return cost ? std::string() : cost.error().to_string();
  };
  StepOptions three;
  three.degrees.tp = 3;
  EXPECT_THAT(make("llama-3.1-8b", three), ::testing::HasSubstr("tp"));
  StepOptions experts;
  experts.degrees.ep = 2;
  EXPECT_THAT(make("llama-3.1-8b", experts), ::testing::HasSubstr("no experts"));
  EXPECT_THAT(make("t5-base", {}), ::testing::HasSubstr("decoder"));
  StepOptions fp4;
  fp4.precision.activations = graph::DataType::fp4;
  EXPECT_THAT(make("llama-3.1-8b", fp4), ::testing::HasSubstr("computes in"));
}

TEST(StepCost, RedundantExpertsMakePartsOfEp) {
  StepOptions wide;
  wide.degrees.dp = wide.degrees.ep = 48;
  wide.precision.weights = wide.precision.activations = graph::DataType::fp8;
  wide.dispatch = plan::MoeDispatch::hierarchical;
  const auto refused = StepCost::make(zoo::load_model("deepseek-v3").value(),
                                      machine::load_machine("dgx-h100").value(), wide);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(), ::testing::HasSubstr("redundant_experts 32 more"));
  wide.redundant = 32;
  StepOptions less = wide;
  less.degrees.dp = less.degrees.ep = 32;
  less.redundant = 0;
  // 8 of 256 experts on a rank, or 6 of 288: 2 x 58 layers x 3 x 7,168 x 2,048 bytes less, and a
  // router of 32 x 7,168 x 58 weights of 2 bytes more.
  const Bytes more = step_cost_of("deepseek-v3", less).weights_per_device() -
                     step_cost_of("deepseek-v3", wide).weights_per_device();
  EXPECT_NEAR(static_cast<double>(more.value()), 116.0 * 3 * 7168 * 2048 - 64.0 * 7168 * 58, 1e6);
}

TEST(StepCost, SortingLogitsTakesTheirBytes) {
  // 15 x 128,256 logits more, of 1,100 bytes at 0.9 of 3.35 TB/s: 702 us; kernels are as many.
  StepOptions sorted;
  sorted.sorted_sampling = true;
  StepCost plain = step_cost_of("llama-3.1-8b", {});
  StepCost sorting = step_cost_of("llama-3.1-8b", sorted);
  const auto more = [&](std::int64_t requests) {
    return to_seconds(sorting.time(decodes(sorting, requests, 16)) -
                      plain.time(decodes(plain, requests, 16)));
  };
  EXPECT_NEAR(more(16) - more(1), 702e-6, 10e-6);
}

TEST(StepCost, KernelsBeforeProductsMayWriteTheirOperands) {
  // Four products a layer of 32, each with a kernel of 2.5 us and some bytes before it.
  StepOptions apart;
  apart.precision.weights = apart.precision.activations = graph::DataType::fp8;
  StepOptions fused = apart;
  fused.fused_casts = true;
  StepCost one = step_cost_of("llama-3.1-8b", apart);
  StepCost two = step_cost_of("llama-3.1-8b", fused);
  const double saved = to_seconds(one.time(decodes(one, 1, 16)) - two.time(decodes(two, 1, 16)));
  EXPECT_NEAR(saved, 320e-6, 16e-6);
}

}  // namespace
}  // namespace orrery::step
