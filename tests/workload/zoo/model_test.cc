// SPDX-License-Identifier: Apache-2.0
#include "workload/zoo/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

namespace orrery::zoo {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

/// A JSON object from field texts.
using Fields = std::map<std::string, std::string>;

std::string json(const Fields& fields) {
  std::string text = "{";
  for (const auto& [name, value] : fields) {
    text += (text.size() > 1 ? ",\n\"" : "\n\"") + name + "\": " + value;
  }
  return text + "\n}\n";
}

Result<Model> parse(const std::string& text) {
  const auto node = parse_config(text, "config.json", ConfigSyntax::json);
  if (!node) {
    return fail(node.error());
  }
  return parse_model(*node, "test");
}

Fields gpt2_fields() {
  return {{"model_type", "\"gpt2\""}, {"n_layer", "12"},       {"n_embd", "768"},
          {"n_head", "12"},           {"vocab_size", "50257"}, {"n_positions", "1024"}};
}

Fields llama_fields() {
  return {{"model_type", "\"llama\""},  {"num_hidden_layers", "32"},
          {"hidden_size", "4096"},      {"num_attention_heads", "32"},
          {"num_key_value_heads", "8"}, {"intermediate_size", "14336"},
          {"vocab_size", "128256"},     {"max_position_embeddings", "8192"}};
}

Fields with(Fields fields, const std::string& name, const std::string& value) {
  fields[name] = value;
  return fields;
}

/// The fields that mistakes name, in order.
std::vector<std::string> blamed(const Result<Model>& model) {
  std::vector<std::string> fields;
  if (!model) {
    for (const Mistake& mistake : model.error().mistakes) {
      fields.push_back(mistake.field);
    }
  }
  return fields;
}

/// The text of the only mistake, which must be about `field`.
std::string only_mistake(const Fields& fields, const std::string& field) {
  const auto model = parse(json(fields));
  EXPECT_EQ(blamed(model), std::vector<std::string>{field});
  return model ? "" : model.error().to_string();
}

TEST(ParseModel, gpt2_takes_hugging_faces_defaults) {
  const auto m = parse(json(gpt2_fields()));
  ASSERT_TRUE(m) << m.error().to_string();
  EXPECT_EQ(m->name, "test");
  EXPECT_EQ(m->model_type, "gpt2");
  EXPECT_EQ(m->layers, 12);
  EXPECT_EQ(m->hidden, 768);
  EXPECT_EQ(m->heads, 12);
  EXPECT_EQ(m->kv_heads, 12);
  EXPECT_EQ(m->head_dim, 64);
  EXPECT_EQ(m->ffn, 4 * 768);
  EXPECT_EQ(m->vocab, 50257);
  EXPECT_EQ(m->max_positions, 1024);
  EXPECT_EQ(m->mlp, MlpKind::gelu);
  EXPECT_EQ(m->norm, NormKind::layer_norm);
  EXPECT_EQ(m->position, PositionKind::learned);
  EXPECT_TRUE(m->tied_embedding && m->attention_bias && m->attention_output_bias && m->mlp_bias);
  EXPECT_EQ(m->dropout, 0.1);
  EXPECT_EQ(m->attention_dropout, 0.1);
  EXPECT_EQ(m->embedding_dropout, 0.1);
}

TEST(ParseModel, gpt2_fields_change_what_they_name) {
  Fields fields = gpt2_fields();
  fields["n_inner"] = "2048";
  fields["activation_function"] = "\"gelu_fast\"";
  fields["resid_pdrop"] = "0.0";
  fields["attn_pdrop"] = "0.2";
  fields["embd_pdrop"] = "0.3";
  fields["tie_word_embeddings"] = "false";
  const auto m = parse(json(fields));
  ASSERT_TRUE(m) << m.error().to_string();
  EXPECT_EQ(m->ffn, 2048);
  EXPECT_EQ(m->dropout, 0);
  EXPECT_EQ(m->attention_dropout, 0.2);
  EXPECT_EQ(m->embedding_dropout, 0.3);
  EXPECT_FALSE(m->tied_embedding);
}

TEST(ParseModel, llama_takes_hugging_faces_defaults) {
  Fields fields = llama_fields();
  fields.erase("num_key_value_heads");
  const auto m = parse(json(fields));
  ASSERT_TRUE(m) << m.error().to_string();
  EXPECT_EQ(m->kv_heads, 32);  // as many as query heads
  EXPECT_EQ(m->head_dim, 128);
  EXPECT_EQ(m->ffn, 14336);
  EXPECT_EQ(m->mlp, MlpKind::swiglu);
  EXPECT_EQ(m->norm, NormKind::rms_norm);
  EXPECT_EQ(m->position, PositionKind::rotary);
  EXPECT_FALSE(m->tied_embedding || m->attention_bias || m->attention_output_bias || m->mlp_bias);
  EXPECT_EQ(m->dropout, 0);
  EXPECT_EQ(m->attention_dropout, 0);
}

TEST(ParseModel, llama_fields_change_what_they_name) {
  Fields fields = llama_fields();
  fields["head_dim"] = "96";  // need not be hidden / heads
  fields["attention_bias"] = "true";
  fields["mlp_bias"] = "true";
  fields["tie_word_embeddings"] = "true";
  fields["attention_dropout"] = "0.1";
  fields["rope_scaling"] = R"({"factor": 8.0, "rope_type": "llama3"})";
  const auto m = parse(json(fields));
  ASSERT_TRUE(m) << m.error().to_string();
  EXPECT_EQ(m->kv_heads, 8);
  EXPECT_EQ(m->head_dim, 96);
  EXPECT_TRUE(m->attention_bias && m->attention_output_bias && m->mlp_bias && m->tied_embedding);
  EXPECT_EQ(m->attention_dropout, 0.1);
}

TEST(ParseModel, mistral_has_a_window_only_when_it_is_shorter_than_its_positions) {
  const Fields mistral = with(llama_fields(), "model_type", "\"mistral\"");
  for (const char* none : {"null", "8192"}) {
    const auto m = parse(json(with(mistral, "sliding_window", none)));
    ASSERT_TRUE(m) << m.error().to_string();
    EXPECT_TRUE(m->kinds.empty()) << none;
  }
  const auto m = parse(json(with(mistral, "sliding_window", "4096")));
  ASSERT_TRUE(m) << m.error().to_string();
  ASSERT_EQ(m->kinds.size(), 1U);
  EXPECT_EQ(m->kinds[0].window, 4096);
}

TEST(ParseModel, unsupported_type_is_the_only_mistake_and_lists_what_is_supported) {
  const std::string text =
      only_mistake({{"model_type", "\"lama\""}, {"whatever", "1"}}, "model_type");
  EXPECT_THAT(text, HasSubstr("gpt2, "));
  EXPECT_THAT(text, HasSubstr("did you mean 'llama'"));
  EXPECT_THAT(text, HasSubstr("config.json:2"));
}

TEST(HubName, with_and_without_its_owner) {
  EXPECT_EQ(load_model("zai-org/GLM-5")->name, "glm-5");
  EXPECT_EQ(load_model("GLM-5")->name, "glm-5");
  EXPECT_EQ(load_model("Llama-3.1-8B-Instruct")->name, "llama-3.1-8b");
  for (const char* of_fp8 : {"zai-org/GLM-5-FP8", "GLM-5-FP8"}) {
    const auto wrong = load_model(of_fp8);
    ASSERT_FALSE(wrong) << of_fp8;
    EXPECT_THAT(wrong.error().to_string(), HasSubstr("did you mean 'glm-5'? Its weights' type"));
  }
  EXPECT_FALSE(load_model("./GLM-5"));  // a file, which is not there
}

TEST(ParseModel, missing_type_is_the_only_mistake) {
  only_mistake({{"n_layer", "12"}}, "model_type");
  EXPECT_FALSE(parse("[1, 2]"));
  EXPECT_FALSE(parse("{}"));
  EXPECT_FALSE(parse("null"));
}

TEST(ParseModel, unknown_field_is_a_mistake_with_a_suggestion) {
  EXPECT_THAT(only_mistake(with(gpt2_fields(), "resid_pdorp", "0.1"), "resid_pdorp"),
              HasSubstr("did you mean 'resid_pdrop'"));
  // A mixture of experts in disguise must not be timed as a dense model.
  only_mistake(with(llama_fields(), "num_local_experts", "8"), "num_local_experts");
}

TEST(ParseModel, everything_that_transformers_writes_for_gpt2_is_known) {
  // The fields of stanford-crfm/BioMedLM's published config.json (GPT-2 architecture, 2.7B).
  const auto m = parse(R"({
    "_name_or_path": "stanford-crfm/BioMedLM", "activation_function": "gelu_new",
    "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 28895,
    "embd_pdrop": 0.1, "eos_token_id": 28895, "gradient_checkpointing": false,
    "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024,
    "n_embd": 2560, "n_head": 20, "n_inner": null, "n_layer": 32, "n_positions": 1024,
    "pad_token_id": 28895, "reorder_and_upcast_attn": false, "resid_pdrop": 0.1,
    "scale_attn_by_inverse_layer_idx": true, "scale_attn_weights": true,
    "summary_activation": null, "summary_first_dropout": 0.1, "summary_proj_to_labels": true,
    "summary_type": "cls_index", "summary_use_proj": true,
    "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}},
    "torch_dtype": "float32", "transformers_version": "4.6.0.dev0", "use_cache": false,
    "vocab_size": 28896})");
  ASSERT_TRUE(m) << m.error().to_string();
  // 32 (12 h^2 + 13 h) + (28896 + 1024 + 2) h with h = 2560.
  EXPECT_EQ(count_parameters(*m).total, 2'594'247'680);
}

TEST(ParseModel, fields_without_effect_are_ignored_whatever_they_hold) {
  Fields fields = gpt2_fields();
  fields["bos_token_id"] = "50256";
  fields["eos_token_id"] = "[1, 2]";
  fields["task_specific_params"] = R"({"text-generation": {"do_sample": true, "max_length": 50}})";
  fields["architectures"] = R"(["GPT2LMHeadModel"])";
  fields["torch_dtype"] = "\"float16\"";
  fields["summary_type"] = "\"cls_index\"";
  EXPECT_TRUE(parse(json(fields)));
}

TEST(ParseModel, all_mistakes_are_reported_at_once_and_none_follows_from_another) {
  Fields fields = llama_fields();
  fields["hidden_size"] = "\"wide\"";
  fields["num_attention_heads"] = "0";
  fields["vocab_size"] = "-3";
  fields["hidden_act"] = "\"relu\"";
  fields.erase("num_hidden_layers");
  EXPECT_THAT(blamed(parse(json(fields))),
              UnorderedElementsAre("hidden_size", "num_attention_heads", "vocab_size", "hidden_act",
                                   "num_hidden_layers"));
}

TEST(ParseModel, extents_outside_their_limits_name_field_and_limit) {
  EXPECT_THAT(only_mistake(with(gpt2_fields(), "n_layer", "65537"), "n_layer"),
              HasSubstr("from 1 to 65536"));
  EXPECT_THAT(only_mistake(with(gpt2_fields(), "n_embd", "16777217"), "n_embd"),
              HasSubstr("from 1 to 16777216"));
  EXPECT_THAT(only_mistake(with(gpt2_fields(), "vocab_size", "268435457"), "vocab_size"),
              HasSubstr("from 1 to 268435456"));
  EXPECT_THAT(only_mistake(with(gpt2_fields(), "n_positions", "134217729"), "n_positions"),
              HasSubstr("from 1 to 134217728"));
  only_mistake(with(gpt2_fields(), "n_head", "0"), "n_head");
  only_mistake(with(gpt2_fields(), "n_layer", "1e3"), "n_layer");
  only_mistake(with(gpt2_fields(), "n_layer", "99999999999999999999"), "n_layer");
  only_mistake(with(gpt2_fields(), "n_layer", "null"), "n_layer");
  only_mistake(with(gpt2_fields(), "n_layer", "[12]"), "n_layer");
}

TEST(ParseModel, shapes_that_do_not_divide_name_the_divisor) {
  EXPECT_THAT(only_mistake(with(gpt2_fields(), "n_head", "11"), "n_head"),
              HasSubstr("a divisor of the hidden width, 768"));
  EXPECT_THAT(only_mistake(with(llama_fields(), "num_key_value_heads", "5"), "num_key_value_heads"),
              HasSubstr("a divisor of the number of query heads, 32"));
  EXPECT_THAT(only_mistake(with(gpt2_fields(), "n_ctx", "512"), "n_ctx"),
              HasSubstr("the same as n_positions, 1024"));
}

TEST(ParseModel, values_that_change_the_computation_beyond_the_model_are_refused) {
  only_mistake(with(gpt2_fields(), "activation_function", "\"tanh\""), "activation_function");
  only_mistake(with(gpt2_fields(), "add_cross_attention", "true"), "add_cross_attention");
  only_mistake(with(gpt2_fields(), "attn_pdrop", "1.0"), "attn_pdrop");
  only_mistake(with(gpt2_fields(), "resid_pdrop", "-0.1"), "resid_pdrop");
}

TEST(ParseModel, more_than_2_to_the_50_parameters_are_refused_before_anything_overflows) {
  // 12 x 2^16 x 2^48 parameters: each extent is allowed, the product is not.
  Fields fields = gpt2_fields();
  fields["n_layer"] = "65536";
  fields["n_embd"] = "16777216";
  fields["n_head"] = "4096";
  EXPECT_THAT(only_mistake(fields, "n_layer"), HasSubstr("2^50"));
}

RC_GTEST_PROP(ParseModel, never_accepts_a_model_whose_heads_do_not_divide, ()) {
  Fields fields = llama_fields();
  const auto hidden = *rc::gen::inRange(-2, 300);
  const auto heads = *rc::gen::inRange(-2, 40);
  const auto kv_heads = *rc::gen::inRange(-2, 40);
  fields["hidden_size"] = std::to_string(hidden);
  fields["num_attention_heads"] = std::to_string(heads);
  fields["num_key_value_heads"] = std::to_string(kv_heads);
  const bool valid =
      hidden > 0 && heads > 0 && kv_heads > 0 && hidden % heads == 0 && heads % kv_heads == 0;
  RC_ASSERT(parse(json(fields)).has_value() == valid);
}

/// A folder of its own below the test's temporary folder, removed at the end.
class LoadModel : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / "orrery_load_model" /
              ::testing::UnitTest::GetInstance()->current_test_info()->name() / "my-gpt";
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_.parent_path()); }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(folder_ / file) << text;
  }
  std::filesystem::path folder_;
};

TEST_F(LoadModel, a_folder_means_its_config_json_and_gives_the_name) {
  write("config.json", json(gpt2_fields()));
  for (const std::string& path :
       {folder_.string(), folder_.string() + "/", (folder_ / "config.json").string()}) {
    const auto m = load_model(path);
    ASSERT_TRUE(m) << m.error().to_string();
    EXPECT_EQ(m->name, "my-gpt") << path;
  }
}

TEST_F(LoadModel, a_folder_needs_no_slash) {
  write("config.json", json(gpt2_fields()));
  const std::filesystem::path before = std::filesystem::current_path();
  for (const auto& [from, path] : {std::pair(folder_.parent_path(), folder_.filename().string()),
                                   std::pair(folder_, std::string("."))}) {
    std::filesystem::current_path(from);
    const auto m = load_model(path);
    std::filesystem::current_path(before);
    ASSERT_TRUE(m) << m.error().to_string();
    EXPECT_EQ(m->name, "my-gpt") << path;
  }
}

TEST_F(LoadModel, a_file_gives_its_own_name) {
  write("tiny.json", json(gpt2_fields()));
  const auto m = load_model((folder_ / "tiny.json").string());
  ASSERT_TRUE(m) << m.error().to_string();
  EXPECT_EQ(m->name, "tiny");
}

TEST_F(LoadModel, broken_and_missing_files_are_mistakes_that_name_the_file) {
  write("broken.json", "{\"model_type\": \"gpt2\",");
  const auto broken = load_model((folder_ / "broken.json").string());
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().to_string(), HasSubstr("broken.json"));
  const auto missing = load_model((folder_ / "missing.json").string());
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().to_string(), HasSubstr("missing.json"));
  EXPECT_FALSE(load_model(folder_.string()));  // no config.json in it
}

TEST(LoadShippedModel, unknown_name_suggests_a_shipped_one) {
  const auto m = load_model("gpt3-175");
  ASSERT_FALSE(m);
  EXPECT_THAT(m.error().to_string(), HasSubstr("gpt3-175b"));
}

TEST(ParseModel, MptIsReadAsItsCheckpointsSay) {
  // 50,432 x 4,096 + 32 x (12 x 4,096^2 + 2 x 4,096) + 4,096 parameters, as published for MPT-7B.
  const Fields fields{{"model_type", "\"mpt\""},
                      {"d_model", "4096"},
                      {"n_heads", "32"},
                      {"n_layers", "32"},
                      {"expansion_ratio", "4"},
                      {"max_seq_len", "2048"},
                      {"vocab_size", "50432"},
                      {"no_bias", "true"},
                      {"learned_pos_emb", "true"},
                      {"attn_config", R"({"alibi": true, "attn_pdrop": 0, "qk_ln": false})"}};
  const Model model = parse(json(fields)).value();
  EXPECT_EQ(count_parameters(model).total, 6'649'286'656);
  EXPECT_EQ(model.position, PositionKind::relative);
  Fields wrong = fields;
  wrong["attn_config"] = R"({"qk_ln": true})";
  EXPECT_THAT(parse(json(wrong)).error().to_string(), HasSubstr("qk_ln"));
}

TEST(ParseModel, GraniteHybridNamesEveryLayer) {
  const Fields fields{{"model_type", "\"granitemoehybrid\""},
                      {"hidden_size", "64"},
                      {"num_hidden_layers", "2"},
                      {"num_attention_heads", "4"},
                      {"num_key_value_heads", "2"},
                      {"vocab_size", "128"},
                      {"max_position_embeddings", "64"},
                      {"shared_intermediate_size", "96"},
                      {"mamba_n_heads", "2"},
                      {"mamba_d_head", "64"},
                      {"mamba_d_state", "16"},
                      {"position_embedding_type", "\"nope\""},
                      {"layer_types", R"(["mamba", "attention"])"}};
  const Model model = parse(json(fields)).value();
  ASSERT_EQ(model.kinds.size(), 2U);
  EXPECT_EQ(model.kinds[0].mixer, MixerKind::mamba);
  EXPECT_EQ(model.kinds[1].feed_forward, FeedForwardKind::dense);  // no num_local_experts
  EXPECT_EQ(model.position, PositionKind::none);
  Fields wrong = fields;
  wrong["layer_types"] = R"(["mamba", "window"])";
  EXPECT_THAT(parse(json(wrong)).error().to_string(), HasSubstr("found 'window'"));
}

}  // namespace
}  // namespace orrery::zoo
