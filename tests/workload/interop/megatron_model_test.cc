// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workload/interop/interop.h"
#include "workload/plan/shard.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;

Result<std::string> config_of(const std::string& model) {
  const auto words =
      interop::launch_words("--micro-batch-size 1 --seq-length 2048 " + model, "line").value();
  return interop::import_megatron(words, {.devices = 1}).value().model_config;
}
zoo::Model model_of(const std::string& arguments) {
  const auto config = config_of(arguments);
  EXPECT_TRUE(config.has_value()) << (config ? "" : config.error().to_string());
  const auto node = parse_config(config.value_or("{}"), "config.json", ConfigSyntax::json);
  return zoo::parse_model(node.value(), "line").value();
}

constexpr const char* kLlama =
    "--position-embedding-type rope --normalization RMSNorm --swiglu --hidden-dropout 0 "
    "--disable-bias-linear --untie-embeddings-and-output-weights ";

TEST(MegatronModel, Gpt3HasThePublishedNumberOfParameters) {
  // 96 x (12 H^2 + 13 H) + 2 H + V H + S H with H = 12288, V = 50257, S = 2048.
  const std::int64_t h = 12288;
  const zoo::Model model = model_of(
      "--num-layers 96 --hidden-size 12288 --num-attention-heads 96 "
      "--max-position-embeddings 2048 --vocab-size 50257");
  EXPECT_EQ(zoo::count_parameters(model).total,
            96 * (12 * h * h + 13 * h) + 2 * h + 50257 * h + 2048 * h);
  EXPECT_EQ(model.model_type, "gpt2");
}

TEST(MegatronModel, Llama3HasThePublishedNumberOfParameters) {
  const zoo::Model model = model_of(std::string(kLlama) +
                                    "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
                                    "--group-query-attention --num-query-groups 8 "
                                    "--ffn-hidden-size 14336 --vocab-size 128256");
  EXPECT_EQ(zoo::count_parameters(model).total, 8'030'261'248);  // Meta's 8B
  EXPECT_EQ(model.model_type, "llama");
}

TEST(MegatronModel, GatedMlpIsTwoThirdsWithoutAWidth) {
  // int(4 x 1024 x 2/3 / 64) x 64 = 2688.
  EXPECT_EQ(model_of(std::string(kLlama) +
                     "--num-layers 2 --hidden-size 1024 --num-attention-heads 8 --vocab-size 100")
                .ffn,
            2688);
}

TEST(MegatronModel, FamiliesFollowFromTheSwitches) {
  const std::string shape =
      "--num-layers 4 --hidden-size 1024 --num-attention-heads 8 --vocab-size 100 "
      "--ffn-hidden-size 512 ";
  const std::string llama = kLlama + shape;
  EXPECT_EQ(model_of(llama + "--add-qkv-bias").model_type, "qwen2");
  EXPECT_EQ(model_of(llama + "--qk-layernorm").model_type, "qwen3");
  EXPECT_EQ(model_of(llama + "--num-experts 8").model_type, "mixtral");
  EXPECT_EQ(model_of(llama + "--num-experts 8 --moe-shared-expert-intermediate-size 256")
                .expert.shared_ffn,
            256);  // qwen2_moe
  // Without a gate: GPT-NeoX; with squared ReLU Nemotron; positions as a bias of the scores BLOOM.
  const std::string rope = "--position-embedding-type rope " + shape;
  EXPECT_EQ(model_of(rope).model_type, "gpt_neox");
  EXPECT_EQ(model_of(rope + "--squared-relu").model_type, "nemotron");
  const std::string alibi = "--position-embedding-type alibi " + shape;
  EXPECT_EQ(model_of(alibi + "--embed-layernorm").model_type, "bloom");
  EXPECT_EQ(model_of(alibi).model_type, "falcon");
  EXPECT_EQ(model_of(llama + "--num-experts 8 --qk-layernorm").model_type, "qwen3_moe");
  const zoo::Model deepseek =
      model_of(llama +
               "--num-experts 16 --moe-router-topk 4 --moe-ffn-hidden-size 128 "
               "--moe-shared-expert-intermediate-size 256 --moe-layer-freq '([0]*1+[1]*3)' "
               "--multi-latent-attention --q-lora-rank 64 --kv-lora-rank 64 --mtp-num-layers 1");
  EXPECT_EQ(deepseek.model_type, "deepseek_v3");
  EXPECT_EQ(deepseek.expert.shared_ffn, 256);
  EXPECT_EQ(zoo::layer_kinds(deepseek).size(), 2U);
  // The same model in the words of MindSpeed and of Pai: 2 shared experts of width 128, 1 dense
  // layer.
  const zoo::Model alike =
      model_of(llama +
               "--num-experts 16 --moe-router-topk 4 --moe-intermediate-size 128 "
               "--n-shared-experts 2 --moe-layer-freq 1 --first-k-dense-replace 1 "
               "--multi-head-latent-attention --q-lora-rank 64 --kv-lora-rank 64 "
               "--qk-nope-head-dim 128 --qk-rope-head-dim 64 --num-nextn-predict-layers 1");
  EXPECT_EQ(zoo::count_parameters(alike).total, zoo::count_parameters(deepseek).total);
}

TEST(MegatronModel, WhatNoModelTypeHasIsAMistakeOfTheModelOnly) {
  const auto config = config_of("--num-layers 4 --hidden-size 64 --num-attention-heads 4 --swiglu");
  ASSERT_FALSE(config.has_value());
  EXPECT_THAT(config.error().to_string(), HasSubstr("--vocab-size: required"));
  EXPECT_THAT(config.error().to_string(), HasSubstr("--position-embedding-type"));
  EXPECT_THAT(config_of(std::string(kLlama) + "--moe-layer-freq [1,0").error().to_string(),
              HasSubstr("--moe-layer-freq: found '[1,0'"));
}

TEST(MegatronModel, ATokenizersNameStatesTheVocabulary) {
  const std::string shape = "--num-layers 4 --hidden-size 1024 --num-attention-heads 8 ";
  EXPECT_EQ(model_of(shape + "--vocab-file v.json --merge-file m.txt").vocab, 50257);  // GPT-2
  EXPECT_EQ(model_of(kLlama + shape +
                     "--tokenizer-type HuggingFaceTokenizer --tokenizer-model a/Llama-3.1-8B")
                .vocab,
            128256);
}

TEST(MegatronModel, ShippedModelsSurviveTheirArguments) {
  for (const char* name : {"gpt3-175b", "llama-3-8b", "mistral-7b", "llama-3.2-1b"}) {
    const zoo::Model model = zoo::load_model(name).value();
    const plan::Plan plan{.global_batch = 1};
    const auto exported = interop::export_megatron(plan, {.model = &model}).value();
    const auto words = interop::launch_words(exported.text, "line").value();
    const auto again = interop::import_megatron(words, {}).value();
    const auto node = parse_config(again.model_config.value(), "m", ConfigSyntax::json).value();
    EXPECT_EQ(zoo::count_parameters(zoo::parse_model(node, name).value()).total,
              zoo::count_parameters(model).total)
        << name;
    EXPECT_EQ(again.plan.sequence, plan::sequence_of(model, plan));
  }
}

}  // namespace
}  // namespace orrery::testing
