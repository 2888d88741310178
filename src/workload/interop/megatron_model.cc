// SPDX-License-Identifier: Apache-2.0
/// The model that Megatron-LM's arguments describe, as a Hugging Face config.json.
#include <algorithm>

#include "base/lists.h"
#include "workload/interop/megatron.h"
#include "workload/interop/megatron_model_arguments.h"
#include "workload/interop/text.h"

namespace orrery::interop {
namespace {

bool has_own_heads(const ModelArguments& m) {
  return m.kv_heads == m.heads && m.head_dim * m.heads == m.hidden;
}

/// Returns whether the layers are those of GPT-2 and BLOOM, wherever the positions are.
bool is_plain(const ModelArguments& m) {
  return !m.rms_norm && !m.gated && m.function == "gelu" && m.biases && m.experts == 0 &&
         m.pattern.empty() && !m.query_key_norm && !m.attention_gate && m.predictions == 0 &&
         has_own_heads(m);
}

JsonObject gpt2(const ModelArguments& m) {
  JsonObject config;
  config.field("model_type", "gpt2");
  config.field("activation_function", "gelu_new");
  config.field("n_layer", m.layers);
  config.field("n_embd", m.hidden);
  config.field("n_head", m.heads);
  config.field("n_inner", m.ffn);
  config.field("n_positions", m.positions);
  config.field("vocab_size", m.vocab);
  config.field("tie_word_embeddings", !m.untied);
  config.field("attn_pdrop", m.attention_dropout);
  config.field("embd_pdrop", m.hidden_dropout);
  config.field("resid_pdrop", m.hidden_dropout);
  return config;
}

/// Returns the fields that all families of Llama's shape share.
JsonObject decoder(std::string_view type, const ModelArguments& m, std::int64_t ffn,
                   std::string_view function = "silu") {
  JsonObject config;
  config.field("model_type", type);
  config.field("hidden_act", function);
  config.field("num_hidden_layers", m.layers);
  config.field("hidden_size", m.hidden);
  config.field("num_attention_heads", m.heads);
  config.field("num_key_value_heads", m.kv_heads);
  config.field("intermediate_size", ffn);
  config.field("max_position_embeddings", m.positions);
  config.field("vocab_size", m.vocab);
  config.field("tie_word_embeddings", !m.untied);
  config.field("attention_dropout", m.attention_dropout);
  return config;
}

/// Llama, with biases on queries, keys and values Qwen2, with norms of queries and keys Qwen3.
JsonObject dense(const ModelArguments& m) {
  const bool only_qkv = m.qkv_bias && !m.biases;
  JsonObject config = decoder(m.query_key_norm ? "qwen3" : only_qkv ? "qwen2" : "llama", m, m.ffn);
  config.field("head_dim", m.head_dim);
  if (!m.query_key_norm && !only_qkv) {
    config.field("attention_bias", m.biases);
    config.field("mlp_bias", m.biases);
  }
  return config;
}

/// Returns whether layers are those of Llama's relatives, with Mixtral's or Qwen3's experts or
/// none.
bool is_llama(const ModelArguments& m) {
  const bool experts = m.experts > 0;
  const bool norms_alone = !m.query_key_norm || !m.qkv_bias;
  return m.position == zoo::PositionKind::rotary && m.rms_norm && m.function == "silu" &&
         m.rotary_share == 1 && m.hidden_dropout == 0 && m.pattern.empty() && !m.attention_gate &&
         !m.embedding_norm && m.predictions == 0 && norms_alone &&
         (!experts || (!m.qkv_bias && m.shared_ffn == 0 && m.expert_width == 0));
}

bool everywhere(const ModelArguments& m) {
  return std::find(m.expert_layers.begin(), m.expert_layers.end(), false) == m.expert_layers.end();
}

/// Adds the layers without experts, of families that list them.
void list_dense_layers(JsonObject& config, const ModelArguments& m) {
  std::vector<std::int64_t> plain;
  for (std::int64_t i = 0; i < std::ssize(m.expert_layers); ++i) {
    if (!m.expert_layers[static_cast<std::size_t>(i)]) {
      plain.push_back(i);
    }
  }
  config.raw("mlp_only_layers", "[" + joined(plain, ",") + "]");
}

JsonObject gpt_oss(Arguments& arguments, const ModelArguments& m) {
  JsonObject config = decoder("gpt_oss", m, m.expert_ffn);
  config.field("head_dim", m.head_dim);
  config.field("num_local_experts", m.experts);
  config.field("num_experts_per_tok", m.top_k);
  std::string text = arguments.word("--window-size").value_or("128");
  std::erase(text, '(');  // of a tuple
  const std::vector<std::int64_t> window = number_list(text);
  arguments.require(!window.empty() && window.front() > 0, "--window-size",
                    "tokens that are seen before and behind, such as 128,0");
  config.field("sliding_window", window.empty() ? 0 : window.front());
  return config;
}

JsonObject mixture(const ModelArguments& m) {
  if (!m.query_key_norm) {
    JsonObject config = decoder("mixtral", m, m.expert_ffn);
    config.field("head_dim", m.head_dim);
    config.field("num_local_experts", m.experts);
    config.field("num_experts_per_tok", m.top_k);
    return config;
  }
  JsonObject config = decoder("qwen3_moe", m, m.ffn);
  config.field("head_dim", m.head_dim);
  config.field("num_experts", m.experts);
  config.field("num_experts_per_tok", m.top_k);
  config.field("moe_intermediate_size", m.expert_ffn);
  list_dense_layers(config, m);
  return config;
}

void groups(JsonObject& config, const ModelArguments& m) {
  if (m.expert_groups > 1) {
    config.field("n_group", m.expert_groups);
    config.field("topk_group", m.chosen_groups);
  }
}

JsonObject deepseek(Arguments& arguments, const ModelArguments& m) {
  const auto first = std::find(m.expert_layers.begin(), m.expert_layers.end(), true);
  arguments.require(m.experts > 0, "--num-experts", "experts beside --multi-latent-attention");
  arguments.require(std::find(first, m.expert_layers.end(), false) == m.expert_layers.end(),
                    "--moe-layer-freq", "dense layers first, then experts: '([0]*3+[1]*58)'");
  arguments.require(m.shared_ffn % m.expert_ffn == 0, "--moe-shared-expert-intermediate-size",
                    "a multiple of --moe-ffn-hidden-size");
  JsonObject config = decoder("deepseek_v3", m, m.ffn);
  if (m.query_rank > 0) {
    config.field("q_lora_rank", m.query_rank);
  } else {
    config.raw("q_lora_rank", "null");
  }
  config.field("kv_lora_rank", m.key_value_rank);
  config.field("qk_nope_head_dim", m.plain_dim);
  config.field("qk_rope_head_dim", m.rotary_dim);
  config.field("v_head_dim", m.value_dim);
  config.field("n_routed_experts", m.experts);
  config.field("num_experts_per_tok", m.top_k);
  groups(config, m);
  config.field("moe_intermediate_size", m.expert_ffn);
  config.field("n_shared_experts", m.shared_ffn / m.expert_ffn);
  config.field("first_k_dense_replace", first - m.expert_layers.begin());
  config.field("num_nextn_predict_layers", m.predictions);
  return config;
}

/// Positions as a bias of the scores and a norm on the embedding.
JsonObject bloom(const ModelArguments& m) {
  JsonObject config;
  config.field("model_type", "bloom");
  config.field("n_layer", m.layers);
  config.field("hidden_size", m.hidden);
  config.field("n_head", m.heads);
  config.field("n_inner", m.ffn);
  config.field("vocab_size", m.vocab);
  config.field("tie_word_embeddings", !m.untied);
  config.field("hidden_dropout", m.hidden_dropout);
  config.field("attention_dropout", m.attention_dropout);
  return config;
}

JsonObject bert(Arguments& arguments, const ModelArguments& m) {
  arguments.require(is_plain(m) && m.position == zoo::PositionKind::learned,
                    "--position-embedding-type",
                    "BERT's layers: learned positions, LayerNorm, GeLU, biases, no experts");
  arguments.note("program",
                 "its name says that it trains BERT: the model is read as that, with "
                 "norms after the sums and a next-sentence head");
  JsonObject config;
  config.field("model_type", "bert");
  config.field("hidden_act", "gelu");
  config.field("num_hidden_layers", m.layers);
  config.field("hidden_size", m.hidden);
  config.field("num_attention_heads", m.heads);
  config.field("intermediate_size", m.ffn);
  config.field("max_position_embeddings", m.positions);
  config.field("type_vocab_size", std::int64_t{2});
  config.field("vocab_size", m.vocab);
  config.field("hidden_dropout_prob", m.hidden_dropout);
  config.field("attention_probs_dropout_prob", m.attention_dropout);
  return config;
}

/// Returns a model that no checkpoint's family has.
JsonObject any_decoder(const ModelArguments& m) {
  JsonObject config = decoder("decoder", m, m.ffn, m.function);
  config.field("gated", m.gated);
  config.field("position", name_of(m.position));
  config.field("norm", m.rms_norm ? "rms_norm" : "layer_norm");
  config.field("head_dim", m.head_dim);
  config.field("partial_rotary_factor", m.rotary_share);
  config.field("attention_bias", m.qkv_bias);
  config.field("attention_output_bias", m.biases);
  config.field("mlp_bias", m.biases);
  config.field("use_qk_norm", m.query_key_norm);
  config.field("attention_gate", m.attention_gate);
  config.field("embedding_norm", m.embedding_norm);
  config.field("hidden_dropout", m.hidden_dropout);
  if (m.experts > 0) {
    config.field("n_routed_experts", m.experts);
    config.field("num_experts_per_tok", m.top_k);
    groups(config, m);
    config.field("moe_intermediate_size", m.expert_ffn);
    config.field("moe_latent_size", m.expert_width);
    config.field("moe_shared_expert_intermediate_size", m.shared_ffn);
    config.field("shared_expert_gate", m.shared_gate);
  }
  if (m.pattern.empty()) {
    list_dense_layers(config, m);
  } else {
    config.field("layer_pattern", m.pattern);
    config.field("mamba_num_heads", m.mamba_heads);
    config.field("mamba_head_dim", m.mamba_head_dim);
    config.field("n_groups", m.mamba_groups);
    config.field("ssm_state_size", m.mamba_state);
    config.field("conv_kernel", std::int64_t{4});  // d_conv of Megatron-Core's MambaMixer
  }
  config.field("num_nextn_predict_layers", m.predictions);
  if (!m.prediction_pattern.empty()) {
    config.field("mtp_layer_pattern", m.prediction_pattern);
  }
  return config;
}

JsonObject described(Arguments& arguments, const ModelArguments& m, bool of_bert) {
  if (of_bert) {
    return bert(arguments, m);
  }
  if (m.latent) {
    return deepseek(arguments, m);
  }
  if (m.windows) {
    return gpt_oss(arguments, m);
  }
  if (is_llama(m) && (m.experts == 0 || m.query_key_norm || everywhere(m))) {
    return m.experts > 0 ? mixture(m) : dense(m);
  }
  if (is_plain(m) && m.position == zoo::PositionKind::learned && !m.embedding_norm) {
    return gpt2(m);
  }
  const bool biased_scores = m.position == zoo::PositionKind::relative;
  return is_plain(m) && biased_scores && m.embedding_norm ? bloom(m) : any_decoder(m);
}

}  // namespace

Result<std::string> read_megatron_model(Arguments& arguments, std::int64_t sequence,
                                        std::string_view program) {
  const ModelArguments m = read_model_arguments(arguments, sequence);
  const JsonObject config = described(arguments, m, program.find("bert") != std::string_view::npos);
  Error mistakes = arguments.take_mistakes();
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return config.text() + "\n";
}

}  // namespace orrery::interop
