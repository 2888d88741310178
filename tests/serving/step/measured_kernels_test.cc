// SPDX-License-Identifier: Apache-2.0
#include "serving/step/measured_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "serving/step/step_cost.h"

namespace orrery::step {
namespace {

using ::testing::HasSubstr;

CsvTable kernel_table(const char* text) {
  return parse_csv(text, "kernels.csv").value();
}

MeasuredKernels kernels_of(const char* text) {
  return MeasuredKernels::of({kernel_table(text)}).value();
}

std::string kernel_mistakes(const char* text) {
  const auto kernels = MeasuredKernels::of({kernel_table(text)});
  return kernels ? "" : kernels.error().to_string();
}

TEST(MeasuredKernels, LayersAreLinearBetweenSizesAndGoOnAlongTheLastTwo) {
  const MeasuredKernels kernels =
      kernels_of("layer,tokens,time_us\nqkv_proj,8,10\nqkv_proj,16,30\nqkv_proj,32,40\n");
  const auto us = [&](std::int64_t rows) {
    return 1e6 * to_seconds(kernels.layer("qkv_gemm", rows).value());
  };
  EXPECT_DOUBLE_EQ(us(1), 10);
  EXPECT_DOUBLE_EQ(us(8), 10);
  EXPECT_DOUBLE_EQ(us(12), 20);
  EXPECT_DOUBLE_EQ(us(16), 30);
  EXPECT_DOUBLE_EQ(us(20), 32.5);
  EXPECT_DOUBLE_EQ(us(32), 40);
  EXPECT_DOUBLE_EQ(us(48), 50);
  EXPECT_FALSE(kernels.layer("proj_gemm", 8).has_value());
  // A last step down is noise: larger sizes take no less.
  const MeasuredKernels falls = kernels_of("layer,sequences,time_us\nlm_head,8,10\nlm_head,16,9\n");
  EXPECT_EQ(falls.layer("logits_gemm", 64), Time(9'000'000));
}

TEST(MeasuredKernels, ProductsAreThoseOfTheirShapesAndTypes) {
  const MeasuredKernels kernels = kernels_of(
      "dtype,m,n,k,latency_us\nbfloat16,1,64,32,5\nbfloat16,3,64,32,7\nbfloat16,3,64,32,6\n"
      "fp8,1,64,32,2\n");
  EXPECT_EQ(kernels.product(graph::DataType::bf16, 2, 64, 32), Time(5'500'000));  // the faster 6
  EXPECT_EQ(kernels.product(graph::DataType::fp8, 9, 64, 32), Time(2'000'000));
  EXPECT_FALSE(kernels.product(graph::DataType::bf16, 2, 32, 64).has_value());
  EXPECT_FALSE(kernels.has_attention());
}

constexpr const char* kAttentionTable =
    "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n"
    "0,0,1,100,10\n0,0,1,300,20\n0,0,3,100,30\n0,0,3,300,80\n"
    "64,0,0,0,12\n64,128,0,0,20\n64,0,2,100,50\n64,0,2,300,60\n"
    "128,0,0,0,32\n";

TEST(MeasuredKernels, AttentionIsLinearInEachOfItsSizes) {
  const MeasuredKernels kernels = kernels_of(kAttentionTable);
  const auto us = [&](const AttentionShape& shape) {
    return 1e6 * to_seconds(kernels.attention(shape));
  };
  EXPECT_DOUBLE_EQ(us({.decodes = 1, .keys = 200}), 15);
  EXPECT_DOUBLE_EQ(us({.decodes = 2, .keys = 200}), (15 + 55) / 2.0);
  EXPECT_DOUBLE_EQ(us({.queries = 64, .context = 64}), 16);
  EXPECT_DOUBLE_EQ(us({.queries = 96}), 22);
  EXPECT_DOUBLE_EQ(us({.queries = 16}), 12);  // the least chunk: no line down to no prompt
  EXPECT_DOUBLE_EQ(us({.queries = 64, .decodes = 2, .keys = 200}), 55);
  // No row has 128 beside decodes: both alone, less the least time of a launch.
  EXPECT_DOUBLE_EQ(us({.queries = 128, .decodes = 1, .keys = 100}), 32 + 10 - 10);
  EXPECT_EQ(kernels.further_prompt(64, 128), Time(10'000'000));
}

TEST(MeasuredKernels, TablesThatCannotBeReadSayWhere) {
  EXPECT_THAT(kernel_mistakes("a,b\n1,2\n"), HasSubstr("kernels.csv:1: header: found 'a,b'"));
  EXPECT_THAT(kernel_mistakes("layer,tokens,time_us\n"), HasSubstr("no rows"));
  EXPECT_THAT(kernel_mistakes("layer,tokens,time_us\nmoe,8,3\n"), HasSubstr("some of embedding"));
  EXPECT_THAT(kernel_mistakes("layer,tokens,time_us\nqkv_proj,0,3\n"),
              HasSubstr("kernels.csv:2: tokens: found '0', expected a number from 1"));
  EXPECT_THAT(kernel_mistakes("layer,tokens,time_us\nqkv_proj,8,nan\n"), HasSubstr("time_us"));
  EXPECT_THAT(kernel_mistakes("layer,tokens,time_us\nqkv_proj,8,1\nqkv_proj,8,2\n"),
              HasSubstr("kernels.csv:3: layer: found 'qkv_proj', expected every size once: 8"));
  EXPECT_THAT(kernel_mistakes("m,n,k,type,latency_us\n1,2,3,bf17,1\n"),
              HasSubstr("kernels.csv:2: type: found 'bf17'"));
  const std::string head = "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n";
  EXPECT_THAT(kernel_mistakes((head + "0,0,0,0,1\n").c_str()), HasSubstr("n_decode: found '0'"));
  EXPECT_THAT(kernel_mistakes((head + "0,0,1,16,1\n").c_str()), HasSubstr("decodes alone"));
  EXPECT_THAT(kernel_mistakes((head + "16,0,0,0,1\n").c_str()), HasSubstr("decodes alone"));
  EXPECT_THAT(kernel_mistakes((head + "0,0,1,16,1\n8,0,1,16,1\n").c_str()),
              HasSubstr("decodes alone"));
  EXPECT_FALSE(MeasuredKernels::load("/no/such/file.csv").has_value());
}

TEST(MeasuredKernels, OfAFloodOfMistakesTheFirstAreTold) {
  std::string text = "layer,tokens,time_us\n";
  for (int tokens = 1; tokens <= 30; ++tokens) {
    text += "qkv_proj," + std::to_string(tokens) + ",0\n";
  }
  const std::string told = kernel_mistakes(text.c_str());
  EXPECT_THAT(told, HasSubstr("kernels.csv:21: time_us"));
  EXPECT_THAT(told, ::testing::Not(HasSubstr("kernels.csv:22:")));
  EXPECT_THAT(told, HasSubstr("kernels.csv: and 10 more"));
}

TEST(MeasuredKernels, AStepIsTheSumOfItsKernels) {
  // Llama-3.1-8B: 32 layers of two norms, four products, rotary, activation and attention.
  const std::string path = ::testing::TempDir() + "/measured_kernels_";
  const std::vector<std::string> files{path + "layers.csv", path + "rows.csv",
                                       path + "attention.csv"};
  ASSERT_TRUE(write_file(files[0],
                         "layer,tokens,time_us\nembedding,1,1\nlayernorm,1,2\nqkv_proj,1,4\n"
                         "rotary_emb,1,8\no_proj,1,16\ngate_up_proj,1,32\nact_fn,1,64\n"
                         "down_proj,1,128\nfinal_layernorm,1,256\n")
                  .has_value());
  ASSERT_TRUE(
      write_file(files[1], "layer,sequences,time_us\nlm_head,1,512\nsampler,1,1024\n").has_value());
  ASSERT_TRUE(write_file(files[2], kAttentionTable).has_value());
  StepOptions options;
  options.captures = {1, 512};
  options.kernels = files[0] + "," + files[1] + "," + files[2];
  StepCost cost = StepCost::make(zoo::load_model("llama-3.1-8b").value(),
                                 machine::load_machine("rtx-4090").value(), options)
                      .value();
  const StepShape decodes{
      .tokens = 3, .samples = 3, .prompts = {}, .decodes = 3, .visible = {3 * 300.0}};
  const double layers = 2 * 2 + 4 + 8 + 16 + 32 + 64 + 128;
  EXPECT_NEAR(1e6 * to_seconds(cost.time(decodes)), 1 + 32 * (layers + 80) + 256 + 512 + 1024,
              1e-6);
  // A chunk of 64 behind 128 tokens, another of 64, and two decodes of 100 keys.
  const StepShape mixed{.tokens = 130,
                        .samples = 4,
                        .prompts = {{.queries = 64, .context = 0}, {.queries = 64, .context = 128}},
                        .decodes = 2,
                        .visible = {200}};
  EXPECT_NEAR(1e6 * to_seconds(cost.time(mixed)),
              1 + 32 * (layers + 50 + (20 - 10)) + 256 + 512 + 1024, 1e-6);
  // What no table has is the formula's.
  options.kernels = files[1];
  StepCost some = StepCost::make(zoo::load_model("llama-3.1-8b").value(),
                                 machine::load_machine("rtx-4090").value(), options)
                      .value();
  options.kernels.clear();
  StepCost none = StepCost::make(zoo::load_model("llama-3.1-8b").value(),
                                 machine::load_machine("rtx-4090").value(), options)
                      .value();
  const StepShape silent{.tokens = 8, .samples = 0, .prompts = {{8, 0}}, .visible = {0}};
  EXPECT_EQ(some.time(silent), none.time(silent));
  EXPECT_NE(some.time(decodes), none.time(decodes));
  // Tables of another model are no silent formulas.
  ASSERT_TRUE(write_file(files[0], "m,n,k,latency_us\n1,64,32,5\n").has_value());
  options.kernels = files[0];
  const auto unused = StepCost::make(zoo::load_model("llama-3.1-8b").value(),
                                     machine::load_machine("rtx-4090").value(), options);
  ASSERT_FALSE(unused.has_value());
  EXPECT_THAT(unused.error().to_string(), HasSubstr("tables that have layers, products"));
}

}  // namespace
}  // namespace orrery::step
