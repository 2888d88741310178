// SPDX-License-Identifier: Apache-2.0
/// Fields of each model type have these meanings; these are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "operators_of.h"
#include "workload/zoo/model.h"

namespace orrery::zoo {
namespace {

using testing::find;
using testing::names;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

Model shipped_family(const std::string& name) {
  auto model = load_model(name);
  EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().to_string());
  return model.value_or(Model{});
}

/// The shipped file with `from` replaced by `to`, which must occur.
Result<Model> changed_family(const std::string& name, const std::string& from,
                             const std::string& to) {
  const auto path = find_config("models", name);
  std::string text = read_file(*path).value_or("");
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in " << text;
  text.replace(at, from.size(), to);
  const auto node = parse_config(text, name + ".json", ConfigSyntax::json);
  EXPECT_TRUE(node.has_value()) << node.error().to_string();
  return parse_model(*node, name);
}

std::vector<std::string> blamed_field(const Result<Model>& model) {
  std::vector<std::string> fields;
  if (!model) {
    for (const Mistake& mistake : model.error().mistakes) {
      fields.push_back(mistake.field);
    }
  }
  return fields;
}

/// Layers of each kind, in the order of layer_kinds.
std::vector<std::int64_t> layers_of(const Model& m) {
  std::vector<std::int64_t> counts(layer_kinds(m).size(), 0);
  for (std::int64_t i = 0; i < m.layers; ++i) {
    ++counts.at(static_cast<std::size_t>(layer_kind(m, i)));
  }
  return counts;
}

constexpr ShapeOptions kFlashAttention{.sequence = 128, .attention = AttentionKernel::flash};

TEST(Families, every_shipped_file_is_read_and_has_operators) {
  for (const std::string& name : list_configs("models")) {
    const Model m = shipped_family(name);
    EXPECT_GE(m.layers, 1) << name;
    for (std::size_t kind = 0; kind < layer_kinds(m).size(); ++kind) {
      EXPECT_FALSE(layer_operators(m, kFlashAttention, static_cast<int>(kind)).empty()) << name;
    }
  }
}

TEST(Families, parallel_attention_and_mlp_enter_once_and_leave_once) {
  // GPT-J, Falcon-7B, Phi-2, PaLM: one norm, one sum, so one gather and one reduction per layer.
  for (const char* name : {"gpt-j-6b", "falcon-7b", "phi-2", "palm-540b"}) {
    const auto layer = layer_operators(shipped_family(name), kFlashAttention);
    EXPECT_EQ(names(layer).front(), "input_norm");
    EXPECT_THAT(names(layer), ::testing::Not(::testing::Contains("mlp_norm"))) << name;
  }
  for (const char* name : {"gpt-neox-20b", "falcon-40b"}) {  // a norm for each branch
    EXPECT_THAT(names(layer_operators(shipped_family(name), kFlashAttention)),
                ::testing::Contains("mlp_norm"));
  }
}

TEST(Families, falcon_has_one_or_few_key_value_heads) {
  EXPECT_EQ(shipped_family("falcon-7b").kv_heads, 1);
  EXPECT_EQ(shipped_family("falcon-40b").kv_heads, 8);
  const auto multi = changed_family("falcon-7b", "\"multi_query\": true", "\"multi_query\": false");
  ASSERT_TRUE(multi);
  EXPECT_EQ(multi->kv_heads, 71);
}

TEST(Families, opt_has_two_rows_more_than_positions) {
  const auto embedding = embedding_operators(shipped_family("opt-6.7b"), kFlashAttention);
  EXPECT_EQ(find(embedding, "position_embedding").parameters, 2050 * 4096);
  const auto after = changed_family("opt-6.7b", "\"do_layer_norm_before\": true",
                                    "\"do_layer_norm_before\": false");
  ASSERT_TRUE(after);
  EXPECT_EQ(after->norm_place, NormPlace::after);
  EXPECT_FALSE(after->final_norm);
}

TEST(Families, bloom_normalises_its_embedding_and_has_no_position_table) {
  const auto embedding = embedding_operators(shipped_family("bloom-7b1"), kFlashAttention);
  EXPECT_EQ(names(embedding), (std::vector<std::string>{
                                  "token_embedding", "embedding_gradient_zero", "embedding_norm"}));
}

TEST(Families, qwen_has_biases_only_where_it_says) {
  const Model two = shipped_family("qwen2.5-7b");
  EXPECT_TRUE(two.attention_bias && !two.attention_output_bias && !two.mlp_bias);
  const auto three = layer_operators(shipped_family("qwen3-8b"), kFlashAttention);
  EXPECT_EQ(find(three, "query_key_norm").parameters, 2 * 128);
  EXPECT_EQ(find(three, "query_key_norm").gemm.k, 128) << "rows as long as a head";
  EXPECT_EQ(find(three, "qkv_gemm").parameters, 4096LL * (32 + 16) * 128);
}

TEST(Families, qwen_windows_start_at_max_window_layers) {
  const auto m = changed_family("qwen2.5-7b", "\"use_sliding_window\": false",
                                "\"use_sliding_window\": true, \"sliding_window\": 4096, "
                                "\"max_window_layers\": 20");
  ASSERT_TRUE(m) << m.error().to_string();
  EXPECT_EQ(layer_kinds(*m), (std::vector<std::string>{"full", "window"}));
  EXPECT_EQ(layers_of(*m), (std::vector<std::int64_t>{20, 8}));
}

TEST(Families, experts_stand_where_step_and_list_say) {
  const auto m =
      changed_family("qwen3-30b-a3b", "\"decoder_sparse_step\": 1,\n  \"mlp_only_layers\": []",
                     "\"decoder_sparse_step\": 2,\n  \"mlp_only_layers\": [1, 3]");
  ASSERT_TRUE(m) << m.error().to_string();
  EXPECT_EQ(layer_kinds(*m), (std::vector<std::string>{"dense", "moe"}));
  EXPECT_EQ(layers_of(*m), (std::vector<std::int64_t>{26, 22}));  // 24 odd ones less two
  EXPECT_EQ(layer_kind(*m, 1), 0);
  EXPECT_EQ(layer_kind(*m, 5), 1);
}

TEST(Families, more_choices_than_experts_are_refused) {
  const auto m =
      changed_family("mixtral-8x7b", "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 9");
  EXPECT_THAT(blamed_field(m), ElementsAre("num_experts_per_tok"));
  EXPECT_THAT(m.error().to_string(), HasSubstr("at most the number of experts, 8"));
}

TEST(Families, deepseek_has_dense_layers_first) {
  const Model v3 = shipped_family("deepseek-v3");
  EXPECT_EQ(layer_kinds(v3), (std::vector<std::string>{"dense", "moe"}));
  EXPECT_EQ(layers_of(v3), (std::vector<std::int64_t>{3, 58}));
  EXPECT_EQ(v3.head_dim, 192);
  EXPECT_EQ(v3.value_dim, 128);
  EXPECT_EQ(v3.mtp, 1);
  EXPECT_EQ(v3.expert.shared_ffn, 2048);
  EXPECT_EQ(shipped_family("deepseek-v2-lite").latent.query_rank, 0);
}

TEST(Families, stretched_positions_tell_what_they_were_trained_with) {
  EXPECT_EQ(shipped_family("deepseek-v3").trained_positions, 4096);  // of 163,840: rope_scaling
  EXPECT_EQ(shipped_family("llama-3.1-8b").trained_positions, 8192);
  EXPECT_EQ(shipped_family("phi-4-mini").trained_positions, 4096);  // beside the longest
  EXPECT_EQ(shipped_family("phi-4").trained_positions, 0);          // not stretched
  EXPECT_EQ(shipped_family("llama-3-8b").trained_positions, 0);
  const auto newer = changed_family("llama-3.1-8b", "\"rope_scaling\"", "\"rope_parameters\"");
  ASSERT_TRUE(newer) << newer.error().to_string();
  EXPECT_EQ(newer->trained_positions, 8192);
}

TEST(Families, gpt_oss_alternates_windows_and_has_sinks) {
  const Model m = shipped_family("gpt-oss-120b");
  EXPECT_EQ(layer_kinds(m), (std::vector<std::string>{"moe_window", "moe_full"}));
  EXPECT_EQ(layers_of(m), (std::vector<std::int64_t>{18, 18}));
  const auto layer = layer_operators(m, kFlashAttention);
  EXPECT_EQ(find(layer, "flash_attention").parameters, 64);
  EXPECT_EQ(find(layer, "router_gemm").parameters, 2880 * 128 + 128);
}

TEST(Families, gemma_has_norms_around_and_local_layers) {
  const Model two = shipped_family("gemma-2-9b");
  EXPECT_EQ(layers_of(two), (std::vector<std::int64_t>{21, 21}));
  EXPECT_EQ(two.kinds.at(0).window, 4096);
  const auto layer = layer_operators(two, kFlashAttention);
  EXPECT_EQ(find(layer, "attention_post_norm").parameters, 3584);
  EXPECT_EQ(find(layer, "mlp_post_norm").parameters, 3584);
  const Model three = shipped_family("gemma-3-27b");
  EXPECT_EQ(layers_of(three), (std::vector<std::int64_t>{52, 10}));  // every sixth of 62 is full
  EXPECT_EQ(layer_kind(three, 5), 1);
  EXPECT_EQ(three.kinds.at(0).window, 1024);
}

TEST(Families, the_text_part_of_a_multimodal_file_is_read) {
  const Model m = shipped_family("llama-4-scout");
  EXPECT_EQ(m.model_type, "llama4");
  EXPECT_EQ(layer_kinds(m), (std::vector<std::string>{"moe_chunked", "moe_full_unrotated"}));
  EXPECT_EQ(layers_of(m), (std::vector<std::int64_t>{36, 12}));
  EXPECT_EQ(m.kinds.at(0).chunk, 8192);
  const auto wrong = changed_family("llama-4-scout", "\"head_dim\": 128", "\"head_width\": 128");
  EXPECT_THAT(blamed_field(wrong), ElementsAre("text_config.head_width"));
}

TEST(Families, llama_4_normalises_only_what_it_rotates) {
  const Model m = shipped_family("llama-4-scout");
  EXPECT_EQ(find(layer_operators(m, kFlashAttention, 0), "query_key_norm").parameters, 0);
  EXPECT_THAT(names(layer_operators(m, kFlashAttention, 1)),
              ::testing::Not(::testing::Contains("rotary")));
  EXPECT_EQ(layers_of(shipped_family("llama-4-maverick")), (std::vector<std::int64_t>{24, 12, 12}));
}

TEST(Families, nemotron_h_layers_follow_the_pattern) {
  const Model nano = shipped_family("nemotron-3-nano");
  EXPECT_EQ(layer_kinds(nano), (std::vector<std::string>{"mamba", "moe", "attention"}));
  EXPECT_EQ(layers_of(nano), (std::vector<std::int64_t>{23, 23, 6}));
  EXPECT_EQ(
      names(layer_operators(nano, kFlashAttention, 0)),
      (std::vector<std::string>{"input_norm", "mamba_in_gemm", "convolution", "state_space_scan",
                                "gated_norm", "mamba_out_gemm", "attention_residual"}));
  const Model list =
      shipped_family("nemotron-3.5-lightning");  // the same layers as a list of names
  EXPECT_EQ(list.layout, nano.layout);
  EXPECT_EQ(list.mtp_layout, (std::vector<int>{2, 1}));
  EXPECT_THAT(blamed_field(changed_family("nemotron-3-nano", "MEMEM*EMEMEM", "MEMEM?EMEMEM")),
              UnorderedElementsAre("hybrid_override_pattern"));
  EXPECT_THAT(blamed_field(changed_family("nemotron-3-nano", "MEMEM*EMEMEM", "MEMEM*EMEME")),
              ElementsAre("hybrid_override_pattern"));
}

TEST(Families, newer_nemotron_files_leave_the_number_of_layers_to_the_list) {
  const Model ultra = shipped_family("nemotron-3-ultra");
  EXPECT_EQ(ultra.layers, 108);
  EXPECT_EQ(layers_of(ultra), (std::vector<std::int64_t>{48, 48, 12}));
}

TEST(Mamba, shapes_and_flops_by_hand) {
  // Nemotron-H-8B: 128 heads of 64: d = 8192; G = 8, N = 128: convolved 8192 + 2048 = 10240;
  // in_proj 4096 x (8192 + 10240 + 128). Per token: scan 2 Q N G + 2 Q d + 4 N d with Q = 128:
  // 262,144 + 2,097,152 + 4,194,304; published 7 N d = 7,340,032.
  const auto layer = layer_operators(shipped_family("nemotron-h-8b"), {.sequence = 256});
  EXPECT_EQ(find(layer, "mamba_in_gemm").gemm,
            (graph::GemmShape{.m = 256, .n = 18'560, .k = 4'096}));
  EXPECT_EQ(find(layer, "mamba_out_gemm").gemm,
            (graph::GemmShape{.m = 256, .n = 4'096, .k = 8'192}));
  EXPECT_EQ(find(layer, "convolution").parameters, 10'240 * 5);
  const ModelOperator scan = find(layer, "state_space_scan");
  EXPECT_EQ(scan.forward_flops.value(), 256.0 * (262'144 + 2'097'152 + 4'194'304));
  EXPECT_EQ(scan.model_flops.value(), 256.0 * 7'340'032);
  EXPECT_EQ(scan.parameters, 3 * 128);
  EXPECT_EQ(find(layer, "gated_norm").parameters, 8'192);
}

TEST(Families, bert_normalises_after_the_sum_and_predicts_masked_tokens) {
  const Model m = shipped_family("bert-large");
  const auto layer = names(layer_operators(m, kFlashAttention));
  EXPECT_EQ(layer.front(), "qkv_gemm");
  EXPECT_EQ(layer.back(), "mlp_norm");
  EXPECT_EQ(find(layer_operators(m, kFlashAttention), "flash_attention").forward_flops.value(),
            4.0 * 1024 * 128 * 128);  // no causal half
  EXPECT_EQ(
      names(head_operators(m, kFlashAttention)),
      (std::vector<std::string>{"transform_gemm", "transform_bias_gelu", "transform_norm",
                                "pooler_gemm", "sentence_gemm", "logits_gemm", "cross_entropy"}));
}

TEST(Families, t5_decoder_attends_to_the_encoder_too) {
  const Model m = shipped_family("t5-large");
  EXPECT_EQ(layer_kinds(m), (std::vector<std::string>{"encoder", "last_encoder", "decoder"}));
  EXPECT_EQ(layers_of(m), (std::vector<std::int64_t>{23, 1, 24}));
  const auto decoder = layer_operators(m, kFlashAttention, 2);
  EXPECT_EQ(find(decoder, "cross_kv_gemm").gemm,
            (graph::GemmShape{.m = 128, .n = 2048, .k = 1024}));
  const double causal = find(decoder, "flash_attention").forward_flops.value();
  EXPECT_EQ(find(decoder, "cross_flash_attention").forward_flops.value(), 2 * causal);
}

TEST(Families, vit_sees_patches_and_predicts_one_class_per_image) {
  const Model m = shipped_family("vit-large-16");
  EXPECT_EQ(m.max_positions, 14 * 14 + 1);
  const ShapeOptions options{.microbatch = 4, .sequence = 197};
  EXPECT_EQ(find(embedding_operators(m, options), "patch_gemm").gemm,
            (graph::GemmShape{.m = 4 * 196, .n = 1024, .k = 768}));
  EXPECT_EQ(find(head_operators(m, options), "class_gemm").gemm,
            (graph::GemmShape{.m = 4, .n = 1000, .k = 1024}));
}

TEST(Families, dlrm_multiplies_all_pairs_of_vectors) {
  const Model m = shipped_family("dlrm-criteo");
  const ShapeOptions options{.microbatch = 2048, .sequence = 1};
  EXPECT_EQ(find(layer_operators(m, options, 1), "interaction_gemm").gemm,
            (graph::GemmShape{.batch = 2048, .m = 27, .n = 27, .k = 128}));
  EXPECT_EQ(find(layer_operators(m, options, 1), "fc1_gemm").gemm.k, 128 + 27 * 26 / 2);
  // 26 rows of 128 x 2 bytes per sample, read and written.
  EXPECT_EQ(find(embedding_operators(m, options), "table_lookup").forward_bytes,
            Bytes(2LL * 2048 * 26 * 128 * 2));
  EXPECT_THAT(blamed_field(changed_family("dlrm-criteo", "256,\n    1\n", "256\n")),
              ElementsAre("top_mlp"));
}

struct Written {
  const char* model;
  const char* fields;  ///< that the published file, or transformers when it saves one, also has
};

TEST(Families, fields_that_published_files_also_have_are_known) {
  constexpr auto kWritten = std::to_array<Written>({
      {"qwen3-30b-a3b", R"("max_window_layers": 48, "output_router_logits": false)"},
      {"qwen2.5-7b", R"("max_window_layers": 28, "sliding_window": 131072)"},
      {"deepseek-v3", R"("qk_head_dim": 192, "head_dim": 64, "ep_size": 1, "pretraining_tp": 1,
                         "aux_loss_alpha": 0.001, "seq_aux": true, "rope_interleave": true,
                         "auto_map": {})"},
      {"gpt-oss-20b", R"("experts_per_token": 4, "initial_context_length": 4096)"},
      {"phi-4-mini", R"("full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": false,
                        "mlp_bias": false)"},
      {"gpt-neox-20b", R"("attention_probs_dropout_prob": 0, "hidden_dropout_prob": 0)"},
      {"opt-6.7b", R"("init_std": 0.02, "prefix": "</s>", "_remove_final_layer_norm": false)"},
      {"bloom-176b", R"("n_head": 112, "n_inner": null, "offset_alibi": 100, "skip_bias_add": true,
                        "skip_bias_add_qkv": false, "slow_but_exact": false, "pretraining_tp": 4)"},
      {"falcon-7b", R"("apply_residual_connection_post_layernorm": false)"},
      {"gemma-2-9b", R"("hidden_act": "gelu_pytorch_tanh", "cache_implementation": "hybrid")"},
      {"bert-large", R"("directionality": "bidi", "pooler_fc_size": 768, "pooler_type": "x",
                        "gradient_checkpointing": false)"},
      {"t5-large", R"("decoder_start_token_id": 0, "relative_attention_max_distance": 128,
                      "dense_act_fn": "relu", "is_gated_act": false)"},
      {"nemotron-h-8b", R"("attention_head_dim": 128, "num_logits_to_keep": 1, "norm_eps": 1e-5,
                           "rescale_prenorm_residual": true, "residual_in_fp32": false,
                           "time_step_limit": [0.0, 1e9], "use_mamba_kernels": true,
                           "sliding_window": null, "n_routed_experts": 8)"},
  });
  for (const Written& row : kWritten) {
    const auto m =
        changed_family(row.model, "\"model_type\"", std::string(row.fields) + ", \"model_type\"");
    EXPECT_TRUE(m) << row.model << ": " << (m ? "" : m.error().to_string());
  }
}

TEST(Families, gemma_3_leaves_out_what_is_as_in_its_class) {
  // The whole text part of the published 4B file.
  const auto node = parse_config(
      R"({"model_type": "gemma3", "mm_tokens_per_image": 256, "vision_config": {"patch_size": 14},
          "text_config": {"hidden_size": 2560, "intermediate_size": 10240,
          "model_type": "gemma3_text", "num_hidden_layers": 34, "sliding_window": 1024,
          "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}})",
      "config.json", ConfigSyntax::json);
  ASSERT_TRUE(node);
  const auto m = parse_model(*node, "gemma-3-4b");
  ASSERT_TRUE(m) << m.error().to_string();
  EXPECT_EQ(count_parameters(*m).total, count_parameters(shipped_family("gemma-3-4b")).total);
}

TEST(Families, a_layer_type_nobody_knows_is_named) {
  const auto m = changed_family("gpt-oss-20b", "\"sliding_attention\"", "\"sparse_attention\"");
  EXPECT_THAT(blamed_field(m), ElementsAre("layer_types"));
  EXPECT_THAT(m.error().to_string(), HasSubstr("sparse_attention"));
}

TEST(Families, partial_rotation_is_also_found_where_newer_files_keep_it) {
  const auto m = changed_family("phi-4-mini", "\"partial_rotary_factor\": 0.75",
                                "\"rope_parameters\": {\"partial_rotary_factor\": 0.25}");
  ASSERT_TRUE(m) << m.error().to_string();
  EXPECT_EQ(m->rotary_share, 0.25);
  EXPECT_THAT(blamed_field(changed_family("phi-4-mini", "\"partial_rotary_factor\": 0.75",
                                          "\"partial_rotary_factor\": 1.5")),
              ElementsAre("partial_rotary_factor"));
}

}  // namespace
}  // namespace orrery::zoo
