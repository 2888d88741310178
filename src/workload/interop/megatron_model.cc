// SPDX-License-Identifier: Apache-2.0
/// The model that Megatron-LM's arguments describe, as a Hugging Face config.json.
#include <algorithm>

#include "workload/interop/megatron.h"
#include "workload/interop/megatron_model_arguments.h"
#include "workload/interop/text.h"

namespace orrery::interop {
namespace {

JsonObject gpt2(Arguments& arguments, const ModelArguments& m) {
  arguments.require(m.kv_heads == m.heads, "--num-query-groups", "rotary positions beside it");
  arguments.require(m.head_dim * m.heads == m.hidden, "--kv-channels", "hidden size / heads");
  arguments.require(m.biases, "--disable-bias-linear", "rotary positions beside it");
  arguments.require(m.experts == 0, "--num-experts", "rotary positions beside it");
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

/// The fields that all families of Llama's shape share.
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

/// Layers without experts, of families that list them.
void list_dense_layers(JsonObject& config, const ModelArguments& m) {
  std::vector<std::int64_t> plain;
  for (std::int64_t i = 0; i < std::ssize(m.expert_layers); ++i) {
    if (!m.expert_layers[static_cast<std::size_t>(i)]) {
      plain.push_back(i);
    }
  }
  config.raw("mlp_only_layers", "[" + comma_list(plain) + "]");
}

JsonObject with_experts(std::string_view type, const ModelArguments& m) {
  JsonObject config = decoder(type, m, m.ffn);
  config.field("head_dim", m.head_dim);
  config.field("num_experts", m.experts);
  config.field("num_experts_per_tok", m.top_k);
  config.field("moe_intermediate_size", m.expert_ffn);
  list_dense_layers(config, m);
  return config;
}

JsonObject mixture(Arguments& arguments, const ModelArguments& m) {
  if (m.windows) {
    JsonObject config = decoder("gpt_oss", m, m.expert_ffn);
    config.field("head_dim", m.head_dim);
    config.field("num_local_experts", m.experts);
    config.field("num_experts_per_tok", m.top_k);
    config.field("sliding_window",
                 number_list(arguments.word("--window-size").value_or("128")).front());
    return config;
  }
  if (m.shared_ffn > 0) {
    if (m.query_key_norm) {
      arguments.note("--qk-layernorm",
                     "queries and keys are not normalised in qwen2_moe, whose "
                     "shared expert the model has");
    }
    JsonObject config = with_experts("qwen2_moe", m);
    config.field("qkv_bias", m.qkv_bias);
    config.field("shared_expert_intermediate_size", m.shared_ffn);
    return config;
  }
  const bool everywhere =
      std::find(m.expert_layers.begin(), m.expert_layers.end(), false) == m.expert_layers.end();
  if (!m.query_key_norm) {
    arguments.require(everywhere, "--moe-layer-freq", "1 (mixtral), or --qk-layernorm (qwen3_moe)");
    JsonObject config = decoder("mixtral", m, m.expert_ffn);
    config.field("head_dim", m.head_dim);
    config.field("num_local_experts", m.experts);
    config.field("num_experts_per_tok", m.top_k);
    return config;
  }
  return with_experts("qwen3_moe", m);
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
  if (m.expert_groups > 1) {
    config.field("n_group", m.expert_groups);
    config.field("topk_group", m.chosen_groups);
  }
  config.field("moe_intermediate_size", m.expert_ffn);
  config.field("n_shared_experts", m.shared_ffn / m.expert_ffn);
  config.field("first_k_dense_replace", first - m.expert_layers.begin());
  config.field("num_nextn_predict_layers", m.predictions);
  return config;
}

/// Rotary positions with an MLP without a gate: nemotron (squared ReLU), gpt_neox (GeLU).
JsonObject ungated(Arguments& arguments, const ModelArguments& m) {
  arguments.require(m.experts == 0 && !m.latent, "--swiglu", "the switch, with experts");
  if (m.rms_norm) {
    arguments.note("--normalization", "norms are LayerNorm in a model whose MLP has no gate");
  }
  if (m.squared_relu || m.kv_heads != m.heads) {
    if (!m.squared_relu) {
      arguments.note("--num-query-groups", "the MLP is read as nemotron's, with squared ReLU");
    }
    JsonObject config = decoder("nemotron", m, m.ffn, "relu2");
    config.field("partial_rotary_factor", m.rotary_share);
    config.field("attention_bias", m.biases);
    config.field("mlp_bias", m.biases);
    return config;
  }
  if (!m.biases) {
    arguments.note("--disable-bias-linear", "the MLP keeps its biases, as gpt_neox has them");
  }
  JsonObject config;
  config.field("model_type", "gpt_neox");
  config.field("num_hidden_layers", m.layers);
  config.field("hidden_size", m.hidden);
  config.field("num_attention_heads", m.heads);
  config.field("intermediate_size", m.ffn);
  config.field("max_position_embeddings", m.positions);
  config.field("vocab_size", m.vocab);
  config.field("tie_word_embeddings", !m.untied);
  config.field("rotary_pct", m.rotary_share);
  config.field("attention_bias", m.biases);
  config.raw("use_parallel_residual", "false");
  config.field("hidden_dropout", m.hidden_dropout);
  config.field("attention_dropout", m.attention_dropout);
  return config;
}

/// Positions as a bias of the scores: bloom, with a norm on the embedding, or falcon.
JsonObject alibi(Arguments& arguments, const ModelArguments& m) {
  arguments.require(!m.swiglu && !m.rms_norm && m.experts == 0 && m.kv_heads == m.heads,
                    "--position-embedding-type", "rope with gates, RMSNorm, experts or groups");
  JsonObject config;
  config.field("model_type", m.embedding_norm ? "bloom" : "falcon");
  config.field(m.embedding_norm ? "n_layer" : "num_hidden_layers", m.layers);
  config.field("hidden_size", m.hidden);
  config.field(m.embedding_norm ? "n_head" : "num_attention_heads", m.heads);
  config.field(m.embedding_norm ? "n_inner" : "ffn_hidden_size", m.ffn);
  config.field("vocab_size", m.vocab);
  config.field("tie_word_embeddings", !m.untied);
  config.field("hidden_dropout", m.hidden_dropout);
  config.field("attention_dropout", m.attention_dropout);
  if (!m.embedding_norm) {
    config.raw("alibi", "true");
    config.raw("parallel_attn", "false");
    config.raw("multi_query", "false");
    config.raw("bias", m.biases ? "true" : "false");
  }
  return config;
}

JsonObject rotary(Arguments& arguments, const ModelArguments& m) {
  if (!m.swiglu && !m.windows) {
    return ungated(arguments, m);
  }
  if (!m.rms_norm) {
    arguments.note("--normalization", "norms are RMSNorm in a model with a gated MLP");
  }
  if (m.hidden_dropout > 0) {
    arguments.note("--hidden-dropout", "residuals have no dropout in a model with a gated MLP");
  }
  const bool plain = m.experts == 0 && !m.latent && !m.query_key_norm;
  if (!plain && m.qkv_bias && !m.windows && m.shared_ffn == 0) {
    arguments.note("--disable-bias-linear",
                   "not given; a model with experts or normalised queries has no biases");
  }
  if (!m.latent && m.predictions > 0) {
    arguments.note("--mtp-num-layers", "layers that predict further tokens are left out");
  }
  if (m.latent) {
    return deepseek(arguments, m);
  }
  return m.experts > 0 ? mixture(arguments, m) : dense(m);
}

}  // namespace

Result<std::string> read_megatron_model(Arguments& arguments, std::int64_t sequence) {
  const ModelArguments m = read_model_arguments(arguments, sequence);
  JsonObject config;
  if (m.alibi) {
    config = alibi(arguments, m);
  } else if (m.rotary) {
    config = rotary(arguments, m);
  } else {
    arguments.require(!m.rms_norm && !m.swiglu && !m.query_key_norm && !m.latent,
                      "--position-embedding-type",
                      "rope with --normalization RMSNorm, --swiglu, --qk-layernorm or "
                      "--multi-latent-attention");
    config = gpt2(arguments, m);
  }
  Error mistakes = arguments.take_mistakes();
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return config.text() + "\n";
}

}  // namespace orrery::interop
