// SPDX-License-Identifier: Apache-2.0
/// The model that Megatron-LM's arguments describe, as a Hugging Face config.json.
#include <algorithm>
#include <optional>

#include "workload/interop/layer_pattern.h"
#include "workload/interop/megatron.h"
#include "workload/interop/text.h"

namespace orrery::interop {
namespace {

/// The arguments of one model, with Megatron-LM's defaults.
struct ModelArguments {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;
  std::int64_t positions = 0;
  std::int64_t vocab = 0;
  bool swiglu = false;
  bool rms_norm = false;
  bool rotary = false;
  bool untied = false;
  bool biases = true;
  bool qkv_bias = true;
  bool query_key_norm = false;
  double attention_dropout = 0.1;
  double hidden_dropout = 0.1;
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t expert_groups = 1;
  std::int64_t chosen_groups = 1;
  std::int64_t expert_ffn = 0;
  std::int64_t shared_ffn = 0;
  std::vector<bool> expert_layers{};
  std::int64_t predictions = 0;
  bool latent = false;
  std::int64_t query_rank = 0;
  std::int64_t key_value_rank = 0;
  std::int64_t plain_dim = 0;
  std::int64_t rotary_dim = 0;
  std::int64_t value_dim = 0;
};

std::int64_t required(Arguments& arguments, std::string_view name) {
  const auto value = arguments.number(name, 1);
  arguments.require(value.has_value(), name, "required to describe the model, but missing");
  return value.value_or(1);
}

void read_width(Arguments& arguments, ModelArguments& m) {
  m.hidden = required(arguments, "--hidden-size");
  m.heads = required(arguments, "--num-attention-heads");
  m.head_dim = arguments.number_or("--kv-channels", m.hidden / m.heads);
  const std::int64_t groups = arguments.number_or("--num-query-groups", 1);
  m.kv_heads = arguments.flag("--group-query-attention") ? groups : m.heads;
  m.swiglu = arguments.flag("--swiglu");
  // Megatron-LM: with a gate two thirds of 4H, in multiples of 64.
  const std::int64_t standard = m.swiglu ? 4 * m.hidden * 2 / 3 / 64 * 64 : 4 * m.hidden;
  m.ffn = arguments.number_or("--ffn-hidden-size", standard);
}

void read_shape(Arguments& arguments, ModelArguments& m, std::int64_t sequence) {
  m.layers = required(arguments, "--num-layers");
  read_width(arguments, m);
  m.positions =
      arguments.number_or("--max-position-embeddings", std::max<std::int64_t>(sequence, 1));
  const auto vocab = arguments.number("--vocab-size", 1);
  const auto padded = arguments.number("--padded-vocab-size", 1);
  arguments.require(vocab || padded, "--vocab-size",
                    "required to describe the model, but missing (the tokenizer's file states it)");
  m.vocab = vocab ? *vocab : padded.value_or(1);
}

void read_kinds(Arguments& arguments, ModelArguments& m) {
  const std::string norm = arguments.word("--normalization").value_or("LayerNorm");
  m.rms_norm = norm == "RMSNorm";
  arguments.require(m.rms_norm || norm == "LayerNorm", "--normalization", "LayerNorm or RMSNorm");
  const std::string position =
      arguments.word("--position-embedding-type").value_or("learned_absolute");
  m.rotary = arguments.flag("--use-rotary-position-embeddings") || position == "rope";
  arguments.require(m.rotary || position == "learned_absolute", "--position-embedding-type",
                    "learned_absolute or rope");
  arguments.flag("--no-position-embedding");  // the table is left out with rotary positions
  m.untied = arguments.flag("--untie-embeddings-and-output-weights");
  m.biases = !arguments.flag("--disable-bias-linear");
  m.qkv_bias = arguments.flag("--add-qkv-bias") || m.biases;
  m.query_key_norm = arguments.flag("--qk-layernorm");
  m.attention_dropout = arguments.real("--attention-dropout").value_or(0.1);
  m.hidden_dropout = arguments.real("--hidden-dropout").value_or(0.1);
  for (const std::string_view name :
       {"--squared-relu", "--quick-geglu", "--window-size", "--window-attn-skip-freq",
        "--qk-l2-norm", "--apply-residual-connection-post-layernorm", "--softmax-type",
        "--no-rope-freq", "--relative-attention-num-buckets", "--relative-attention-max-distance",
        "--mrope-section", "--glu-linear-offset", "--activation-func-clamp-value",
        "--use-fused-weighted-squared-relu", "--moe-apply-probs-on-input"}) {
    arguments.require(!arguments.has(name), name,
                      "an architecture of gpt2, llama, qwen2, qwen3, mixtral or deepseek_v3; give "
                      "the model's own config.json to orrery simulate instead");
  }
}

void read_experts(Arguments& arguments, ModelArguments& m) {
  m.experts = arguments.number("--num-experts").value_or(0);
  m.top_k = arguments.number_or("--moe-router-topk", 2);
  m.expert_groups = arguments.number_or("--moe-router-num-groups", 1);
  m.chosen_groups = arguments.number_or("--moe-router-group-topk", m.expert_groups);
  m.expert_ffn = arguments.number_or("--moe-ffn-hidden-size", m.ffn);
  m.shared_ffn = arguments.number("--moe-shared-expert-intermediate-size").value_or(0);
  const std::string pattern = arguments.word("--moe-layer-freq").value_or("1");
  constexpr std::int64_t kMostLayers = std::int64_t{1} << 16;
  auto layers = parse_layer_pattern(pattern, std::min(m.layers, kMostLayers));
  if (!layers) {
    arguments.reject("--moe-layer-freq", layers.error().mistakes.front().expected);
  } else {
    m.expert_layers = std::move(*layers);
  }
  m.predictions = arguments.number("--mtp-num-layers").value_or(0);
}

void read_latent(Arguments& arguments, ModelArguments& m) {
  m.latent = arguments.flag("--multi-latent-attention");
  m.query_rank = arguments.number("--q-lora-rank").value_or(0);
  m.key_value_rank = arguments.number_or("--kv-lora-rank", 32);
  m.plain_dim = arguments.number_or("--qk-head-dim", 128);
  m.rotary_dim = arguments.number_or("--qk-pos-emb-head-dim", 64);
  m.value_dim = arguments.number_or("--v-head-dim", 128);
}

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
JsonObject decoder(std::string_view type, const ModelArguments& m, std::int64_t ffn) {
  JsonObject config;
  config.field("model_type", type);
  config.field("hidden_act", "silu");
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

JsonObject mixture(Arguments& arguments, const ModelArguments& m) {
  arguments.require(m.shared_ffn == 0, "--moe-shared-expert-intermediate-size",
                    "--multi-latent-attention beside it (deepseek_v3)");
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
  JsonObject config = decoder("qwen3_moe", m, m.ffn);
  config.field("head_dim", m.head_dim);
  config.field("num_experts", m.experts);
  config.field("num_experts_per_tok", m.top_k);
  config.field("moe_intermediate_size", m.expert_ffn);
  std::vector<std::int64_t> plain;
  for (std::int64_t i = 0; i < std::ssize(m.expert_layers); ++i) {
    if (!m.expert_layers[static_cast<std::size_t>(i)]) {
      plain.push_back(i);
    }
  }
  config.raw("mlp_only_layers", "[" + comma_list(plain) + "]");
  return config;
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

JsonObject rotary(Arguments& arguments, const ModelArguments& m) {
  arguments.require(m.rms_norm, "--normalization", "RMSNorm with rotary positions");
  arguments.require(m.swiglu, "--swiglu", "the switch, with rotary positions");
  arguments.require(m.hidden_dropout == 0, "--hidden-dropout",
                    "0 with rotary positions (Megatron-LM's default is 0.1)");
  const bool plain = m.experts == 0 && !m.latent && !m.query_key_norm;
  arguments.require(plain || !m.qkv_bias, "--disable-bias-linear",
                    "the switch, with experts or normalised queries and keys");
  arguments.require(m.latent || m.predictions == 0, "--mtp-num-layers",
                    "0 without --multi-latent-attention");
  if (m.latent) {
    return deepseek(arguments, m);
  }
  return m.experts > 0 ? mixture(arguments, m) : dense(m);
}

}  // namespace

Result<std::string> read_megatron_model(Arguments& arguments, std::int64_t sequence) {
  ModelArguments m;
  read_shape(arguments, m, sequence);
  read_kinds(arguments, m);
  read_experts(arguments, m);
  read_latent(arguments, m);
  JsonObject config;
  if (m.rotary) {
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
