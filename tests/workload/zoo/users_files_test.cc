// SPDX-License-Identifier: Apache-2.0
/// Configurations as users have them (inputs/README.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workload/zoo/model.h"

namespace orrery::zoo {
namespace {

Result<Model> users_file(const std::string& name) {
  return load_model(std::string(ORRERY_SOURCE_DIR) + "/tests/workload/zoo/inputs/" + name);
}

TEST(UsersFiles, AnArchitectureNamesTheFamilyOfAnUnknownType) {
  // Kimi K2: published as 1 T parameters, 32 B active.
  const auto model = users_file("hf_kimi_k2.json");
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_EQ(model->model_type, "deepseek_v3");
  EXPECT_NEAR(static_cast<double>(count_parameters(*model).total), 1026.4e9, 0.05e9);
  EXPECT_THAT(model->notes, ::testing::Contains(::testing::HasSubstr("read as deepseek_v3")));
}

TEST(UsersFiles, InfinityIsReadAsPythonWritesIt) {
  const auto model = users_file("hf_nemotron_h_infinity.json");
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_NEAR(static_cast<double>(count_parameters(*model).total), 56e9, 1e9);  // Nemotron-H-56B
}

TEST(UsersFiles, UnknownFieldsThatWeighNothingAreNotes) {
  const auto model = users_file("hf_qwen3_moe_extra_fields.json");
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_NEAR(static_cast<double>(count_parameters(*model).total), 480.15e9, 0.005e9);
  EXPECT_THAT(model->notes,
              ::testing::ElementsAre(::testing::HasSubstr("qkv_bias"),
                                     ::testing::HasSubstr("shared_expert_intermediate_size")));
  // One that says something stays a mistake.
  const auto node = parse_config(
      R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "vocab_size": 100,
          "num_attention_heads": 4, "intermediate_size": 128, "max_position_embeddings": 64,
          "some_token_id": 7, "looped_layers": 4})",
      "config.json", ConfigSyntax::json);
  const auto odd = parse_model(*node, "odd");
  ASSERT_FALSE(odd);
  EXPECT_THAT(odd.error().to_string(), ::testing::HasSubstr("looped_layers: unknown field"));
  EXPECT_THAT(odd.error().to_string(), ::testing::Not(::testing::HasSubstr("some_token_id")));
}

TEST(UsersFiles, GalacticaIsOptWithoutBiasesAndParametersOfNorms) {
  // facebook/galactica-6.7b: 32 (4 H^2 + 2 H 16384), a table of 50,000 rows, 2,050 positions.
  const auto node = parse_config(
      R"({"model_type": "opt", "num_hidden_layers": 32, "hidden_size": 4096, "ffn_dim": 16384,
          "num_attention_heads": 32, "vocab_size": 50000, "max_position_embeddings": 2048,
          "activation_function": "gelu", "do_layer_norm_before": true, "enable_bias": false,
          "layer_norm_elementwise_affine": false, "learned_embeddings": true,
          "scale_embeddings": false, "word_embed_proj_dim": 4096})",
      "config.json", ConfigSyntax::json);
  const auto model = parse_model(*node, "galactica");
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_EQ(count_parameters(*model).total,
            32LL * (4 * 4096 * 4096 + 2 * 4096 * 16384) + (50'000LL + 2'050) * 4096);
}

/// facebook/opt-350m: 24 layers of 4 (H^2 + H) + 2 H 4096 + 4096 + H and two norms after (none at
/// the end), a table of 50,272 rows of 512, two projections of 512 x 1024, 2,050 positions:
/// 331,196,416 parameters, as published.
TEST(UsersFiles, Opt350MHasANarrowTableAndNormsAfter) {
  const auto node = parse_config(
      R"({"model_type": "opt", "num_hidden_layers": 24, "hidden_size": 1024, "ffn_dim": 4096,
          "num_attention_heads": 16, "vocab_size": 50272, "max_position_embeddings": 2048,
          "activation_function": "relu", "do_layer_norm_before": false,
          "_remove_final_layer_norm": false, "word_embed_proj_dim": 512})",
      "config.json", ConfigSyntax::json);
  const auto model = parse_model(*node, "opt-350m");
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_EQ(count_parameters(*model).total, 331'196'416);
  // The operators have the same parameters, and the projections' products.
  const ShapeOptions one{.sequence = 2048};
  std::int64_t parameters = 24 * count_parameters(*model).per_kind.front();
  Flops edges{0};
  for (const auto& list : {embedding_operators(*model, one), head_operators(*model, one)}) {
    for (const ModelOperator& op : list) {
      parameters += op.parameters;
      edges += op.model_flops;
    }
  }
  EXPECT_EQ(parameters, 331'196'416);
  EXPECT_EQ(edges.value(), 2.0 * 2048 * 512 * (2 * 1024 + 50272));
}

/// The parameters of a small llama with these fields, and what was said of them.
std::pair<std::int64_t, std::vector<std::string>> small_llama(const std::string& fields) {
  const auto node = parse_config(
      R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "vocab_size": 100,
          "num_attention_heads": 4, "intermediate_size": 128, )" +
          fields + "}",
      "config.json", ConfigSyntax::json);
  const auto model = parse_model(*node, "user");
  EXPECT_TRUE(model) << model.error().to_string();
  return model ? std::pair(count_parameters(*model).total, model->notes)
               : std::pair(std::int64_t{0}, std::vector<std::string>());
}

/// Published beside the fields of the class: Falcon3's `activation`, Qwen2.5-1M's map of chunks,
/// and the positions of the first Llamas under their own name.
TEST(UsersFiles, OthersNamesOfFieldsAreNotes) {
  const auto [plain, silent] = small_llama(R"("max_position_embeddings": 64)");
  EXPECT_THAT(silent, ::testing::IsEmpty());
  const auto [more, notes] = small_llama(
      R"("max_position_embeddings": 64, "activation": "swiglu",
         "dual_chunk_attention_config": {"chunk_size": 16})");
  EXPECT_EQ(more, plain);
  EXPECT_THAT(notes, ::testing::ElementsAre(
                         ::testing::HasSubstr("activation: unknown field, ignored"),
                         ::testing::HasSubstr("dual_chunk_attention_config: unknown field")));
  EXPECT_EQ(small_llama(R"("max_sequence_length": 64)").first, plain);
}

std::int64_t parameters_of(const std::string& config) {
  const auto node = parse_config(config, "config.json", ConfigSyntax::json);
  const auto model = parse_model(*node, "user");
  EXPECT_TRUE(model) << model.error().to_string();
  return model ? count_parameters(*model).total : 0;
}

TEST(UsersFiles, PhiUnderTheFirstNamesIsTheSameModel) {
  // microsoft/phi-1_5 as first published: 24 (4 (H^2 + H) + 2 H 4H + 4H + H + 2H), two tables of
  // 51,200 rows, a bias of each, the last norm: 1,418,270,720 parameters.
  const auto node = parse_config(
      R"({"model_type": "phi-msft", "architectures": ["PhiForCausalLM"], "n_embd": 2048,
          "n_head": 32, "n_head_kv": null, "n_inner": null, "n_layer": 24, "n_positions": 2048,
          "rotary_dim": 32, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-05,
          "flash_attn": false, "flash_rotary": false, "fused_dense": false, "vocab_size": 51200})",
      "config.json", ConfigSyntax::json);
  const auto model = parse_model(*node, "phi");
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_EQ(count_parameters(*model).total, 1418270720);
  EXPECT_EQ(model->ffn, 8192);
  EXPECT_NEAR(model->rotary_share, 0.5, 1e-12);
}

TEST(UsersFiles, APartWithoutSizesHasThoseOfItsClass) {
  // llava-hf/llava-1.5-7b-hf states of its text what differs from LlamaConfig: Llama 2 7B,
  // 6,738,415,616 parameters, and 64 more rows in two tables of 4,096 columns.
  const auto node = parse_config(
      R"({"model_type": "llava", "text_config": {"architectures": ["LlamaForCausalLM"],
          "max_position_embeddings": 4096, "model_type": "llama", "rms_norm_eps": 1e-05,
          "vocab_size": 32064}})",
      "config.json", ConfigSyntax::json);
  const auto model = parse_model(*node, "llava");
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_EQ(count_parameters(*model).total, 6738415616 + 2 * 64 * 4096);
  EXPECT_THAT(model->notes, ::testing::Contains(::testing::HasSubstr("no hidden_size")));
}

/// Qwen3.5-27B: 16 layers attend: 5120 (2 x 6144 + 2 x 1024) + 6144 x 5120 and two norms of 256;
/// 48 are delta nets: 5120 (10240 + 6144 + 2 x 48) + 4 x 10240 + 2 x 48 + 128 + 6144 x 5120. Each
/// has an MLP of 3 x 5120 x 17408 and two norms; two tables of 248,320 rows.
TEST(UsersFiles, Qwen35WithoutExpertsHasAnMlp) {
  const std::int64_t rest = 3LL * 5120 * 17408 + 2 * 5120;
  const std::int64_t attends = 5120LL * (2 * 6144 + 2 * 1024) + 6144LL * 5120 + 2 * 256;
  const std::int64_t delta =
      5120LL * (10240 + 6144 + 2 * 48) + 4 * 10240 + 2 * 48 + 128 + 6144 * 5120;
  EXPECT_EQ(parameters_of(R"({"model_type": "qwen3_5", "tie_word_embeddings": false,
      "vision_config": {"depth": 27}, "text_config": {"model_type": "qwen3_5_text",
      "attention_bias": false, "attn_output_gate": true, "full_attention_interval": 4,
      "head_dim": 256, "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 17408,
      "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
      "linear_num_value_heads": 48, "linear_value_head_dim": 128, "mlp_only_layers": [],
      "max_position_embeddings": 262144, "num_attention_heads": 24, "num_hidden_layers": 64,
      "num_key_value_heads": 4, "vocab_size": 248320}})"),
            16 * (attends + rest) + 48 * (delta + rest) + 2LL * 248320 * 5120 + 5120);
}

/// GLM-4.7-Flash (30B-A3B): latent attention of 20 heads, 64 experts of 1,536 and a shared one in
/// 46 of 47 layers, an MLP of 10,240 in the first.
TEST(UsersFiles, Glm47FlashHasLatentAttention) {
  const std::int64_t attention = 2048LL * 768 + 768 + 768LL * 20 * 256 + 2048LL * 576 + 512 +
                                 512LL * 20 * 448 + 20LL * 256 * 2048 + 2 * 2048;
  const std::int64_t experts = 65LL * 3 * 2048 * 1536 + 2048 * 64;
  EXPECT_EQ(parameters_of(R"({"architectures": ["Glm4MoeLiteForCausalLM"],
      "model_type": "glm4_moe_lite", "num_hidden_layers": 47, "hidden_size": 2048,
      "num_attention_heads": 20, "num_key_value_heads": 20, "head_dim": 64,
      "intermediate_size": 10240, "vocab_size": 154880, "max_position_embeddings": 202752,
      "n_routed_experts": 64, "n_shared_experts": 1, "num_experts_per_tok": 4,
      "moe_intermediate_size": 1536, "first_k_dense_replace": 1, "kv_lora_rank": 512,
      "q_lora_rank": 768, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256,
      "routed_scaling_factor": 1.8, "tie_word_embeddings": false})"),
            47 * attention + 46 * experts + 3LL * 2048 * 10240 + 2LL * 154880 * 2048 + 2048);
}

/// Kimi K2.5's fields as aiconfigurator keeps them, without the map `text_config`; phi-1's width of
/// rotated positions beside its share; `architectures` as one text.
TEST(UsersFiles, OtherShapesOfPublishedFiles) {
  const std::string text = R"("num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 4,
      "num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 100,
      "max_position_embeddings": 64, "n_routed_experts": 8, "n_shared_experts": 1,
      "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1,
      "kv_lora_rank": 16, "q_lora_rank": 24, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
      "v_head_dim": 16, "tie_word_embeddings": false)";
  EXPECT_EQ(parameters_of(R"({"model_type": "kimi_k25", "vision_config": {"patch_size": 14}, )" +
                          text + "}"),
            parameters_of(R"({"model_type": "kimi_k25", "text_config": {)" + text + "}}"));
  const std::string phi = R"("model_type": "phi", "num_hidden_layers": 2, "hidden_size": 64,
      "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100,
      "max_position_embeddings": 64, "partial_rotary_factor": 0.5)";
  EXPECT_EQ(parameters_of("{" + phi + R"(, "rotary_dim": 8})"), parameters_of("{" + phi + "}"));
  // rubert-tiny2: a width that its class does not read, and a head of three columns.
  const auto node = parse_config(
      R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"],
          "emb_size": 312, "hidden_size": 312, "num_hidden_layers": 3, "num_attention_heads": 12,
          "intermediate_size": 600, "max_position_embeddings": 2048, "type_vocab_size": 2,
          "vocab_size": 83828})",
      "config.json", ConfigSyntax::json);
  const auto encoder = parse_model(*node, "user");
  ASSERT_TRUE(encoder) << encoder.error().to_string();
  EXPECT_THAT(encoder->notes, ::testing::Contains(::testing::HasSubstr("head of its own")));
  EXPECT_EQ(small_llama(R"("max_position_embeddings": 64, "architectures": "LlamaModel")").first,
            small_llama(R"("max_position_embeddings": 64, "architectures": ["LlamaModel"])").first);
}

/// Switches, text and maps of names that speak of no shape are notes; numbers, and what speaks of
/// attention or layers, are mistakes.
TEST(UsersFiles, UnknownTextAndSwitchesOfNoShapeAreNotes) {
  const auto notes = small_llama(
      R"("max_position_embeddings": 64, "predict_special_tokens": true, "num_steps": "step3",
         "sentence_transformers": {"version": "4.1"})");
  EXPECT_EQ(notes.second.size(), 3U);
  for (const std::string field : {R"("attention_gating": true)", R"("block_kind": "x")",
                                  R"("speculators": 3)", R"("moe_config": {"experts": 4})"}) {
    const auto node = parse_config(R"({"model_type": "llama", "num_hidden_layers": 2,
        "hidden_size": 64, "vocab_size": 100, "num_attention_heads": 4, "intermediate_size": 128,
        "max_position_embeddings": 64, )" +
                                       field + "}",
                                   "config.json", ConfigSyntax::json);
    EXPECT_FALSE(parse_model(*node, "odd")) << field;
  }
}

/// The models lack the projection of 100 x 64; every query sees every key.
TEST(UsersFiles, ModelsForEmbeddingsAndRewardsEndBeforeTheVocabulary) {
  const std::int64_t whole = small_llama(R"("max_position_embeddings": 64)").first;
  for (const std::string name :
       {"LlamaModel", "LlamaForSequenceClassification", "LlamaForProcessRewardModel"}) {
    const auto [without, notes] = small_llama(R"("max_position_embeddings": 64,
        "architectures": [")" + name + "\"]");
    EXPECT_EQ(without, whole - 100 * 64) << name;
    EXPECT_THAT(notes, ::testing::Contains(::testing::HasSubstr("no projection")));
  }
  const auto node = parse_config(
      R"({"model_type": "qwen2", "num_hidden_layers": 2, "hidden_size": 64, "vocab_size": 100,
          "num_attention_heads": 4, "intermediate_size": 128, "max_position_embeddings": 64,
          "architectures": ["Qwen2Model"], "is_causal": false})",
      "config.json", ConfigSyntax::json);
  const auto both = parse_model(*node, "embedding");
  ASSERT_TRUE(both) << both.error().to_string();
  ASSERT_EQ(both->kinds.size(), 1U);
  EXPECT_FALSE(both->kinds.front().causal);
}

/// Notes are about what PretrainedConfig writes of itself into a nested map (moonshotai/Kimi-K2.5),
/// and about what stands beside the map.
TEST(UsersFiles, BesideATextPartNothingIsUnknown) {
  const auto node = parse_config(
      R"({"model_type": "qwen3_vl", "use_unified_vision_chunk": true, "video_placeholder": "<|x|>",
          "projector_layers": 3, "text_config": {"num_hidden_layers": 2, "hidden_size": 64,
          "vocab_size": 100, "num_attention_heads": 4, "intermediate_size": 128,
          "max_position_embeddings": 64, "add_cross_attention": false, "pruned_heads": {},
          "tie_encoder_decoder": false}})",
      "config.json", ConfigSyntax::json);
  const auto model = parse_model(*node, "vl");
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_EQ(model->notes.size(), 6U);
}

/// granite-4.0-micro: attention in all layers, and the fields of Mamba beside it. 40 layers of
/// 2 x 2560^2 (queries, output) + 2 x 2560 x 512 + 3 x 2560 x 8192 and two norms; a tied table.
TEST(UsersFiles, GraniteWithoutMambaIgnoresItsFields) {
  std::string layers = R"("attention")";
  for (int i = 1; i < 40; ++i) {
    layers += R"(, "attention")";
  }
  const std::int64_t total = parameters_of(
      R"({"model_type": "granitemoehybrid", "num_hidden_layers": 40, "hidden_size": 2560,
          "num_attention_heads": 40, "num_key_value_heads": 8, "intermediate_size": 8192,
          "shared_intermediate_size": 8192, "num_local_experts": 0, "num_experts_per_tok": 0,
          "mamba_d_head": 64, "mamba_d_state": 256, "mamba_n_heads": 128, "mamba_d_conv": 4,
          "mamba_n_groups": 1, "mamba_conv_bias": true, "mamba_chunk_size": 256,
          "max_position_embeddings": 131072, "vocab_size": 100352, "tie_word_embeddings": true,
          "layer_types": [)" +
      layers + "]}");
  EXPECT_EQ(total, 40LL * (2LL * 2560 * 2560 + 2LL * 2560 * 512 + 3LL * 2560 * 8192 + 2 * 2560) +
                       100352LL * 2560 + 2560);
}

/// Llama Guard 4 is Llama 4 without experts.
TEST(UsersFiles, Llama4WithoutExpertsIsDense) {
  const std::int64_t total = parameters_of(
      R"({"model_type": "llama4_text", "num_hidden_layers": 4, "hidden_size": 256, "head_dim": 64,
          "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 512,
          "intermediate_size_mlp": 1024, "num_local_experts": 0, "num_experts_per_tok": 0,
          "interleave_moe_layer_step": 0, "moe_layers": [], "nope_layer_interval": 4,
          "max_position_embeddings": 4096, "vocab_size": 1000})");
  EXPECT_EQ(total, 4LL * (2 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 1024 + 2 * 256) +
                       2 * 1000 * 256 + 256);
}

/// T5EncoderModel: 2 layers of 4 x 64 x 64 + 2 x 64 x 128 and two norms, the last norm, the table,
/// and 32 buckets x 4 heads (counted for both stacks).
TEST(UsersFiles, T5sEncoderAloneHasNoDecoder) {
  EXPECT_EQ(parameters_of(
                R"({"model_type": "t5", "architectures": ["T5EncoderModel"], "num_layers": 2,
          "num_decoder_layers": 2, "d_model": 64, "d_kv": 16, "num_heads": 4, "d_ff": 128,
          "vocab_size": 100, "relative_attention_num_buckets": 32})"),
            2 * (4 * 64 * 64 + 2 * 64 * 128 + 2 * 64) + 64 + 100 * 64 + 2 * 32 * 4);
}

TEST(UsersFiles, FalconUnderItsFirstNameIsTheSameModel) {
  // tiiuae/falcon-40b as first published, and as transformers writes it since: 41.3 B.
  const std::int64_t first = parameters_of(
      R"({"model_type": "RefinedWeb", "architectures": ["RWForCausalLM"], "alibi": false,
          "bias": false, "hidden_size": 8192, "n_head": 128, "n_head_kv": 8, "n_layer": 60,
          "parallel_attn": true, "vocab_size": 65024})");
  EXPECT_EQ(first, parameters_of(
                       R"({"model_type": "falcon", "new_decoder_architecture": true,
          "hidden_size": 8192, "num_attention_heads": 128, "num_kv_heads": 8,
          "num_hidden_layers": 60, "parallel_attn": true, "vocab_size": 65024})"));
  EXPECT_NEAR(static_cast<double>(first), 41.3e9, 0.05e9);
}

TEST(UsersFiles, MistralSmallsTextPartIsRead) {
  const std::int64_t text = parameters_of(
      R"({"model_type": "mistral3", "architectures": ["Mistral3ForConditionalGeneration"],
          "image_token_index": 10, "multimodal_projector_bias": false, "spatial_merge_size": 2,
          "projector_hidden_act": "gelu", "vision_feature_layer": -1,
          "vision_config": {"model_type": "pixtral"},
          "text_config": {"model_type": "mistral", "head_dim": 128, "hidden_act": "silu",
            "hidden_size": 5120, "intermediate_size": 32768, "max_position_embeddings": 131072,
            "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8,
            "rms_norm_eps": 1e-05, "rope_theta": 1000000000.0, "sliding_window": null,
            "tie_word_embeddings": false, "vocab_size": 131072}})");
  // 40 x (2 x 5120 x 4096 + 2 x 5120 x 1024 + 3 x 5120 x 32768 + 2 x 5120) + 2 x 131072 x 5120 +
  // 5120
  EXPECT_EQ(text, 40 * (2 * 5120LL * 4096 + 2 * 5120LL * 1024 + 3 * 5120LL * 32768 + 2 * 5120) +
                      2 * 131072LL * 5120 + 5120);
}

TEST(UsersFiles, ModelOptsFileBesideTheConfigurationIsRead) {
  const auto file = load_model_file(std::string(ORRERY_SOURCE_DIR) +
                                    "/tests/workload/zoo/inputs/hf_modelopt_fp8/config.json");
  ASSERT_TRUE(file) << file.error().to_string();
  const ConfigNode* formats = file->node.find("quantization_config");
  ASSERT_NE(formats, nullptr);
  EXPECT_EQ(formats->find("quant_algo")->text, "FP8");
}

}  // namespace
}  // namespace orrery::zoo
