// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "workload/interop/interop.h"
#include "workload/plan/shard.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;

Result<std::string> config_of(const std::string& model, const std::string& program = {}) {
  const auto words =
      interop::launch_words(program + "--micro-batch-size 1 --seq-length 2048 " + model, "line")
          .value();
  return interop::import_megatron(words, {.devices = 1}).value().model_config;
}
zoo::Model model_of(const std::string& arguments, const std::string& program = {}) {
  const auto config = config_of(arguments, program);
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
  // Positions as a bias of the scores with a norm on the embedding are BLOOM's alone.
  const std::string alibi = "--position-embedding-type alibi " + shape;
  EXPECT_EQ(model_of(alibi + "--embed-layernorm").model_type, "bloom");
  EXPECT_EQ(model_of(alibi).model_type, "decoder");
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

TEST(MegatronModel, AWindowIsATupleOfTokens) {
  const std::string sinks =
      std::string(kLlama) +
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --vocab-size 100 --num-experts 4 "
      "--softmax-type learnable --window-size ";
  EXPECT_THAT(config_of(sinks + "'(96,0)'").value(), HasSubstr("\"sliding_window\": 96"));
  EXPECT_THAT(config_of(sinks + "x").error().to_string(), HasSubstr("--window-size: found 'x'"));
  EXPECT_FALSE(config_of(sinks + "''"));
}

TEST(MegatronModel, WhatNoFamilyHasIsADecoderOfItsOwn) {
  const std::string shape =
      "--num-layers 2 --hidden-size 8 --num-attention-heads 2 --vocab-size 100 "
      "--max-position-embeddings 16 --ffn-hidden-size 32 ";
  // Attention 4 (8 x 8 + 8) = 288, norms 2 x 16, MLP 2 x 8 x 32 + 32 + 8 = 552; table 800,
  // positions 128, last norm 16. The second layer alone has experts: 4 MLPs and a router of 8 x 4.
  const zoo::Model moe = model_of(shape + "--deepspeed --num-experts 4");
  EXPECT_EQ(zoo::count_parameters(moe).total, 928 + (320 + 552) + (320 + 32 + 4 * 552) + 16);
  EXPECT_EQ(moe.top_k, 1);  // DeepSpeed's default
  // LayerNorm and ReLU^2 beside rotary positions, groups of queries, no biases, own outputs:
  // attention 8 (8 + 4 + 4) + 64, norms 32, MLP 2 x 8 x 32.
  const zoo::Model plain = model_of(
      shape +
      "--position-embedding-type rope --squared-relu --group-query-attention --num-query-groups 1 "
      "--disable-bias-linear --untie-embeddings-and-output-weights");
  EXPECT_EQ(zoo::count_parameters(plain).total, 2 * 800 + 2 * (192 + 32 + 512) + 16);
  EXPECT_EQ(plain.mlp, zoo::MlpKind::squared_relu);
  EXPECT_EQ(plain.dropout, 0.1);  // Megatron-LM's default
}

TEST(MegatronModel, DeepSpeedsExpertsHaveThePublishedSizes) {
  // Rajbhandari et al. 2022 (arXiv:2201.05596), table 1: 350M + MoE-128 is 13 B, 1.3B + MoE-128 52
  // B.
  const std::string experts =
      "--num-layers 24 --num-attention-heads 16 --vocab-size 50257 "
      "--deepspeed --num-experts 128 ";
  EXPECT_NEAR(
      static_cast<double>(zoo::count_parameters(model_of(experts + "--hidden-size 1024")).total),
      13e9, 0.5e9);
  EXPECT_NEAR(
      static_cast<double>(zoo::count_parameters(model_of(experts + "--hidden-size 2048")).total),
      52e9, 1e9);
}

TEST(MegatronModel, SharesOfLayersAreSpreadAsMegatronSpreadsThem) {
  const std::string shape =
      "--hidden-size 1024 --num-attention-heads 16 --vocab-size 100 --normalization RMSNorm "
      "--position-embedding-type none --disable-bias-linear "
      "--spec megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec ";
  const auto letters = [&](const std::string& words) {
    const zoo::Model model = model_of(shape + words);
    std::string text;
    for (std::int64_t i = 0; i < model.layers; ++i) {
      text += zoo::layer_kinds(model)[static_cast<std::size_t>(zoo::layer_kind(model, i))][0];
    }
    return text;
  };
  // 8 Mamba layers in 3 sections of 2.67: an attention layer after 3 and after 2 more; m(amba),
  // a(ttention).
  EXPECT_EQ(letters("--num-layers 10 --hybrid-attention-ratio 0.2"), "mmmammammm");
  EXPECT_EQ(letters("--hybrid-layer-pattern 'M*|ME/*E' --num-experts 4"), "mamm");
  // Waleffe et al. 2024 (arXiv:2406.07887), the 8B hybrid: 56 layers, of which 24 are Mamba-2, 4
  // attention and 28 MLP.
  const zoo::Model hybrid =
      model_of(shape + "--num-layers 56 --hybrid-attention-ratio 0.08 --hybrid-mlp-ratio 0.5");
  std::map<std::string, int> counts;
  for (std::int64_t i = 0; i < hybrid.layers; ++i) {
    ++counts[zoo::layer_kinds(hybrid)[static_cast<std::size_t>(zoo::layer_kind(hybrid, i))]];
  }
  EXPECT_EQ(counts, (std::map<std::string, int>{{"attention", 4}, {"mamba", 24}, {"mlp", 28}}));
}

TEST(MegatronModel, AProgramOfBertTrainsBert) {
  // Layers 24 x (12 H^2 + 13 H), tables (30522 + 512 + 2) H, and under 4 H^2 of heads.
  const zoo::Model model = model_of(
      "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --vocab-size 30522 "
      "--max-position-embeddings 512",
      "torchrun pretrain_bert.py ");
  EXPECT_EQ(model.model_type, "bert");
  const std::int64_t h = 1024;
  const std::int64_t layers = 24 * (12 * h * h + 13 * h) + (30522 + 512 + 2) * h;
  EXPECT_GT(zoo::count_parameters(model).total, layers);
  EXPECT_LT(zoo::count_parameters(model).total, layers + 4 * h * h);
}

TEST(MegatronModel, APaddedVocabularyIsOne) {
  EXPECT_EQ(model_of("--num-layers 2 --hidden-size 64 --num-attention-heads 4 "
                     "--pad-vocab-size-to 250880 --position-embedding-type alibi --embed-layernorm")
                .vocab,
            250880);  // BLOOM's launch file
}

TEST(MegatronModel, WhatNoModelTypeHasIsAMistakeOfTheModelOnly) {
  const auto config = config_of(
      "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --position-embedding-type sine "
      "--csa-window-size 128");
  ASSERT_FALSE(config.has_value());
  EXPECT_THAT(config.error().to_string(), HasSubstr("--vocab-size: required"));
  EXPECT_THAT(config.error().to_string(), HasSubstr("--position-embedding-type"));
  EXPECT_THAT(config.error().to_string(), HasSubstr("--csa-window-size"));
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

TEST(MegatronModel, ParallelBranchesAreSaidToBeLost) {
  // GPT-NeoX has as many parameters with its branches one after the other.
  const zoo::Model model = zoo::load_model("gpt-neox-20b").value();
  const auto exported = interop::export_megatron({.global_batch = 1}, {.model = &model}).value();
  EXPECT_THAT(exported.text + exported.lost.at(0).sentence,
              HasSubstr("architecture is more than the arguments state"));
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
