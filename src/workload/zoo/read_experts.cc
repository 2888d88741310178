// SPDX-License-Identifier: Apache-2.0
/// Decoders with mixtures of experts.
#include <algorithm>
#include <array>

#include "workload/zoo/families.h"
#include "workload/zoo/fields.h"
#include "workload/zoo/known_fields.h"

namespace orrery::zoo {
namespace {

LayerKind expert_layer() {
  return {.name = "moe", .feed_forward = FeedForwardKind::experts};
}

/// Layer i has experts where i + 1 is a multiple of `step`, except those of `dense`.
void set_sparse_layers(Model& m, std::int64_t step, const std::vector<std::int64_t>& dense) {
  std::vector<LayerKind> layers;
  for (std::int64_t i = 0; i < m.layers; ++i) {
    const bool listed = std::find(dense.begin(), dense.end(), i) != dense.end();
    const bool sparse = !listed && step > 0 && (i + 1) % step == 0;
    layers.push_back(sparse ? expert_layer() : LayerKind{.name = "dense"});
  }
  set_layers(m, layers);
}

/// Qwen2-MoE and Qwen3-MoE.
void read_qwen_experts(Reader& read, Model& m) {
  read_routing(read, m, "num_experts");
  m.expert.ffn = extent(read, "moe_intermediate_size", 8 * kMaxHidden);
  const std::int64_t step = count(read, "decoder_sparse_step", kMaxLayers, 1);
  set_sparse_layers(m, step, read.list<std::int64_t>("mlp_only_layers"));
  read.require(!read.optional("use_sliding_window", false), "use_sliding_window",
               "false (windows beside experts are not modelled)");
  for (const char* unused : {"layer_types", "max_window_layers", "sliding_window"}) {
    read.ignore(unused);
  }
}

/// Mixtral: experts as wide as intermediate_size and one window on every layer.
void read_uniform_experts(Reader& read, Model& m) {
  read_routing(read, m, "num_local_experts");
  m.expert.ffn = m.ffn;
  const std::int64_t window = count(read, "sliding_window", kMaxPositions);
  LayerKind kind = expert_layer();
  kind.window = window < m.max_positions ? window : 0;
  set_layers(m, {kind});
}

/// Multi-head latent attention.
void read_latent(Reader& read, Model& m) {
  m.latent.query_rank = count(read, "q_lora_rank", kMaxHidden);
  m.latent.key_value_rank = extent(read, "kv_lora_rank", kMaxHidden);
  m.latent.rotary = extent(read, "qk_rope_head_dim", kMaxHidden);
  const std::int64_t plain = extent(read, "qk_nope_head_dim", kMaxHidden);
  m.value_dim = extent(read, "v_head_dim", kMaxHidden);
  m.head_dim = plain + m.latent.rotary;
  m.kv_heads = m.heads;  // every head has keys and values of its own
}

/// Returns by layer whether it has experts: as mlp_layer_types lists, else but for the first ones.
std::vector<bool> sparse_layers(Reader& read, const Model& m) {
  const std::int64_t dense = count(read, "first_k_dense_replace", kMaxLayers);
  const std::vector<std::string> types = read.list<std::string>("mlp_layer_types");
  const bool known = std::ranges::all_of(
      types, [](const std::string& type) { return type == "dense" || type == "sparse"; });
  read.require(types.empty() || (known && static_cast<std::int64_t>(types.size()) == m.layers),
               "mlp_layer_types", "dense or sparse for each of the layers");
  std::vector<bool> sparse;
  for (std::int64_t i = 0; i < m.layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    sparse.push_back(at < types.size() ? types[at] == "sparse" : i >= dense);
  }
  return sparse;
}

Model read_deepseek(Reader& read) {
  ignore_all(read, std::array<std::string_view, 2>{"qk_head_dim", "partial_rotary_factor"});
  Model m = read_decoder(read, {.head_dim = 1});  // replaced by read_latent
  read_latent(read, m);
  m.attention_bias = m.attention_output_bias = read.optional("attention_bias", false);
  read_routing(read, m, "n_routed_experts");
  m.expert.ffn = extent(read, "moe_intermediate_size", 8 * kMaxHidden);
  const std::int64_t shared = count(read, "n_shared_experts", kMaxExperts);
  m.expert.shared_ffn = shared * m.expert.ffn;
  const std::int64_t step = count(read, "moe_layer_freq", kMaxLayers, 1);
  read.require(step == 1, "moe_layer_freq", "1 (experts in every layer after the dense ones)");
  std::vector<LayerKind> layers;
  for (const bool sparse : sparse_layers(read, m)) {
    layers.push_back(sparse ? expert_layer() : LayerKind{.name = "dense"});
    layers.back().mixer = MixerKind::latent_attention;
  }
  set_layers(m, layers);
  return m;
}

}  // namespace

Model read_mixtral(Reader& read) {
  Model m = read_decoder(read);
  read_uniform_experts(read, m);
  check_size(read, m, kLayers);
  return m;
}

/// Phi-3.5-MoE: as mixtral with LayerNorm and biases around attention.
Model read_phimoe(Reader& read) {
  read.ignore("input_jitter_noise");
  Model m = read_decoder(read);
  m.norm = NormKind::layer_norm;
  m.attention_bias = m.attention_output_bias = read.optional("attention_bias", false);
  m.head_bias = read.optional("lm_head_bias", false);
  m.dropout = probability(read, "hidden_dropout", 0);
  read_uniform_experts(read, m);
  check_size(read, m, kLayers);
  return m;
}

Model read_qwen2_moe(Reader& read) {
  Model m = read_decoder(read);
  m.attention_bias = read.optional("qkv_bias", true);
  read_qwen_experts(read, m);
  m.expert.shared_ffn = extent(read, "shared_expert_intermediate_size", 8 * kMaxHidden);
  m.expert.shared_gate = true;
  check_size(read, m, kLayers);
  return m;
}

Model read_qwen3_moe(Reader& read) {
  Model m = read_decoder(read, {.head_dim = 128});
  m.attention_bias = m.attention_output_bias = read.optional("attention_bias", false);
  expect_true(read, "use_qk_norm");
  m.query_key_norm = QueryKeyNorm::scaled;
  read_qwen_experts(read, m);
  check_size(read, m, kLayers);
  return m;
}

Model read_deepseek_v2(Reader& read) {
  Model m = read_deepseek(read);
  check_size(read, m, kLayers);
  return m;
}

Model read_deepseek_v3(Reader& read) {
  Model m = read_deepseek(read);
  m.mtp = count(read, "num_nextn_predict_layers", kMaxPredictions);
  check_size(read, m, kLayers);
  return m;
}

/// Notes layers that see the keys that another's indexer has chosen (GLM-5.2).
void note_shared_indexers(Reader& read, Model& m) {
  const std::vector<std::string> types = read.list<std::string>("indexer_types");
  const std::int64_t every = count(read, "index_topk_freq", kMaxLayers, 1);
  const auto shared = std::ranges::count(types, "shared");
  if (shared > 0 || every > 1) {
    m.notes.push_back(read.node().where() + ": " +
                      (shared > 0 ? "indexer_types" : "index_topk_freq") +
                      ": layers that share an indexer are counted with one of their own");
  }
}

/// DeepSeek-V3.2 and GLM-5: the indexer's fields beside those of deepseek_v3.
Model read_deepseek_v32(Reader& read) {
  ignore_all(read,
             std::array<std::string_view, 2>{"index_rope_interleave", "indexer_rope_interleave"});
  Model m = read_deepseek(read);
  m.mtp = count(read, "num_nextn_predict_layers", kMaxPredictions);
  // Files may leave out what is as in the class: DeepseekV32Config, GlmMoeDsaConfig.
  const ConfigNode* type = read.node().find("model_type");
  const bool is_glm = type != nullptr && type->text == "glm_moe_dsa";
  m.index.heads = extent(read, "index_n_heads", kMaxHidden, is_glm ? 32 : 64);
  m.index.dim = extent(read, "index_head_dim", kMaxHidden, 128);
  m.index.chosen = extent(read, "index_topk", kMaxPositions, 2048);
  note_shared_indexers(read, m);
  read.require(m.latent.query_rank > 0, "q_lora_rank", "the width of what the indexer reads");
  check_size(read, m, kLayers);
  return m;
}

/// Some programs keep the text part's fields without the map around them.
Model read_kimi_k25(Reader& read) {
  if (read.node().find("text_config") == nullptr) {
    ignore_all(read, kIgnoredMultimodal);
    return read_deepseek_v3(read);
  }
  Model m = read_nested(read, read_deepseek_v3);
  add_vision(read, m, {});  // its encoder, MoonViT, is not modelled
  return m;
}

Model read_qwen3_vl_moe(Reader& read) {
  Model m = read_nested(read, read_qwen3_moe);
  add_vision(read, m, {"qwen3_vl_moe"});
  return m;
}

/// MiniMax-M2: experts as wide as intermediate_size in every layer.
Model read_minimax_m2(Reader& read) {
  constexpr std::array<std::string_view, 13> kNoEffect{"attn_type_list",
                                                       "layernorm_full_attention_beta",
                                                       "layernorm_linear_attention_beta",
                                                       "layernorm_mlp_beta",
                                                       "mlp_intermediate_size",
                                                       "mtp_transformer_layers",
                                                       "num_mtp_modules",
                                                       "qk_norm_type",
                                                       "rotary_dim",
                                                       "shared_intermediate_size",
                                                       "use_mtp",
                                                       "use_routing_bias",
                                                       "shared_moe_mode"};
  ignore_all(read, kNoEffect);
  Model m = read_decoder(read, {.head_dim = 128});
  m.attention_bias = m.attention_output_bias = read.optional("attention_bias", false);
  m.query_key_norm = read.optional("use_qk_norm", true) ? QueryKeyNorm::whole : QueryKeyNorm::none;
  const double rotary = read.node().find("rotary_dim") == nullptr
                            ? static_cast<double>(m.head_dim)
                            : parse_number(read.node().find("rotary_dim")->text).value_or(0);
  read.require(m.head_dim < 1 || (rotary >= 0 && rotary <= static_cast<double>(m.head_dim)),
               "rotary_dim", "at most head_dim");
  m.rotary_share = m.head_dim > 0 ? rotary / static_cast<double>(m.head_dim) : 1;
  read_uniform_experts(read, m);
  check_size(read, m, kLayers);
  return m;
}

/// GLM-4.5: dense layers, then experts and a shared one.
Model read_glm4_moe(Reader& read) {
  Model m = read_decoder(read, {.head_dim = 128});
  m.attention_bias = read.optional("attention_bias", false);
  m.query_key_norm =
      read.optional("use_qk_norm", false) ? QueryKeyNorm::scaled : QueryKeyNorm::none;
  m.rotary_share = rotary_share(read, "partial_rotary_factor", 0.5);
  read_routing(read, m, "n_routed_experts");
  m.expert.ffn = extent(read, "moe_intermediate_size", 8 * kMaxHidden);
  m.expert.shared_ffn = count(read, "n_shared_experts", kMaxExperts) * m.expert.ffn;
  const std::int64_t dense = count(read, "first_k_dense_replace", kMaxLayers);
  m.mtp = count(read, "num_nextn_predict_layers", kMaxPredictions);
  std::vector<LayerKind> layers;
  for (std::int64_t i = 0; i < m.layers; ++i) {
    layers.push_back(i < dense ? LayerKind{.name = "dense"} : expert_layer());
  }
  set_layers(m, layers);
  check_size(read, m, kLayers);
  return m;
}

/// Reads the gated delta nets of Qwen3-Next and Qwen3.5 and which layers attend; in all else the
/// layers are as `like`.
void read_delta_layers(Reader& read, Model& m, const LayerKind& like) {
  m.mamba.heads = extent(read, "linear_num_value_heads", kMaxHidden);
  m.mamba.head_dim = extent(read, "linear_value_head_dim", kMaxHidden);
  m.mamba.groups = extent(read, "linear_num_key_heads", kMaxHidden);
  m.mamba.state = extent(read, "linear_key_head_dim", kMaxHidden);
  m.mamba.kernel = extent(read, "linear_conv_kernel_dim", kMaxHidden);
  m.mamba.chunk = 64;  // of the kernels (flash-linear-attention)
  m.mamba.convolution_bias = false;
  expect_divides(read, "linear_num_key_heads", m.mamba.groups, m.mamba.heads,
                 "number of value heads");
  const ConfigNode* interval = read.node().find("full_attention_interval");
  const std::int64_t period = interval == nullptr ? 4 : parse_integer(interval->text).value_or(0);
  read.require(period >= 1, "full_attention_interval", "a whole number from 1 on");
  const auto types = read.list<std::string>("layer_types");
  std::vector<LayerKind> layers;
  for (std::int64_t i = 0; i < m.layers && period >= 1; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool full = at < types.size() ? types[at] == "full_attention" : (i + 1) % period == 0;
    LayerKind kind = like;
    kind.name = std::string(like.name == "moe" ? "moe_" : "") + (full ? "attention" : "delta");
    kind.mixer = full ? MixerKind::attention : MixerKind::gated_delta;
    layers.push_back(kind);
  }
  read.require(types.empty() || static_cast<std::int64_t>(types.size()) == m.layers, "layer_types",
               "an entry for each of the layers");
  set_layers(m, layers);
}

/// Qwen3-Next and Qwen3.5: every full_attention_interval-th layer attends, with a gate; the others
/// are gated delta nets. Experts and a gated shared one in every layer; qwen3_5_text has an MLP.
Model read_qwen3_next(Reader& read) {
  constexpr std::array<std::string_view, 7> kNoEffect{"attn_output_gate",
                                                      "intermediate_size",
                                                      "mamba_ssm_dtype",
                                                      "mtp_num_hidden_layers",
                                                      "mtp_use_dedicated_embeddings",
                                                      "mlp_only_layers",
                                                      "full_attention_interval"};
  const ConfigNode* type = read.node().find("model_type");
  const bool dense = type != nullptr && type->text == "qwen3_5_text";
  Model m = read_decoder(
      read, {.ffn = dense ? "intermediate_size" : "moe_intermediate_size", .head_dim = 256});
  ignore_all(read, kNoEffect);
  m.attention_bias = m.attention_output_bias = read.optional("attention_bias", false);
  m.query_key_norm = QueryKeyNorm::scaled;
  m.attention_gate = true;
  m.rotary_share = rotary_share(read, "partial_rotary_factor", 0.25);
  if (!dense) {
    read_routing(read, m, "num_experts");
    m.expert.ffn = m.ffn;
    m.expert.shared_ffn = extent(read, "shared_expert_intermediate_size", 8 * kMaxHidden);
    m.expert.shared_gate = true;
    read.require(count(read, "decoder_sparse_step", kMaxLayers, 1) == 1, "decoder_sparse_step",
                 "1 (experts in every layer)");
  }
  read_delta_layers(read, m, dense ? LayerKind{} : expert_layer());
  check_size(read, m, kLayers);
  return m;
}
Model read_qwen3_5(Reader& read) {
  Model m = read_nested(read, read_qwen3_next);
  add_vision(read, m, {"qwen3_5_moe", "qwen3_5"});
  return m;
}

/// Llama 4: experts on every layer or every second one; three of four layers rotate and attend
/// within chunks, the fourth neither rotates nor is cut. One shared expert of the experts' width.
Model read_llama4_text(Reader& read) {
  constexpr std::array<std::string_view, 5> kNoEffect{"attn_scale", "attn_temperature_tuning",
                                                      "cache_implementation", "floor_scale",
                                                      "for_llm_compressor"};
  ignore_all(read, kNoEffect);
  Model m = read_decoder(read, {.head_dim = 128});
  m.attention_bias = m.attention_output_bias = read.optional("attention_bias", false);
  m.query_key_norm = read.optional("use_qk_norm", true) ? QueryKeyNorm::plain : QueryKeyNorm::none;
  const bool dense = count(read, "num_local_experts", kMaxExperts, 1) == 0;  // Llama Guard 4
  if (dense) {
    read.ignore("num_experts_per_tok");
    ignore_all(read, kIgnoredRouter);
  } else {
    read_routing(read, m, "num_local_experts");
    m.expert.ffn = m.expert.shared_ffn = m.ffn;
  }
  m.ffn = extent(read, "intermediate_size_mlp", 8 * kMaxHidden);
  const std::int64_t chunk = count(read, "attention_chunk_size", kMaxPositions);
  const std::int64_t step = count(read, "interleave_moe_layer_step", kMaxLayers, 1);
  const std::int64_t period = count(read, "no_rope_layer_interval", kMaxLayers,
                                    count(read, "nope_layer_interval", kMaxLayers, 4));
  const auto rotates = read.list<std::int64_t>("no_rope_layers");
  const bool listed = read.node().find("moe_layers") != nullptr;
  const auto sparse = read.list<std::int64_t>("moe_layers");
  const std::vector<std::string> types = layer_types(read, m);
  read.require(rotates.empty() || static_cast<std::int64_t>(rotates.size()) >= m.layers,
               "no_rope_layers", "an entry for each of the layers");
  std::vector<LayerKind> layers;
  for (std::int64_t i = 0; i < m.layers && read.ok(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool experts = dense    ? false
                         : listed ? std::find(sparse.begin(), sparse.end(), i) != sparse.end()
                                  : step > 0 && (i + 1) % step == 0;
    LayerKind kind = experts ? expert_layer() : LayerKind{.name = "dense"};
    kind.rotary = rotates.empty() ? period == 0 || (i + 1) % period != 0 : rotates[at] != 0;
    const bool cut = types.empty() ? kind.rotary : types[at] == "chunked_attention";
    kind.chunk = cut && chunk < m.max_positions ? chunk : 0;
    kind.name += std::string(cut ? "_chunked" : "_full") + (kind.rotary ? "" : "_unrotated");
    layers.push_back(kind);
  }
  set_layers(m, layers);
  check_size(read, m, kLayers);
  return m;
}

Model read_llama4(Reader& read) {
  Model m = read_nested(read, read_llama4_text);
  add_vision(read, m, {"llama4_vision_model"});
  return m;
}

Model read_gpt_oss(Reader& read) {
  constexpr std::array<std::string_view, 4> kNoEffect{"experts_per_token", "initial_context_length",
                                                      "swiglu_alpha", "router_bias"};
  Model m = read_decoder(read);
  ignore_all(read, kNoEffect);
  m.expert.clamped = read.optional("swiglu_limit", 7.0) > 0;
  m.attention_bias = m.attention_output_bias = read.optional("attention_bias", true);
  read_routing(read, m, "num_local_experts");
  m.expert.ffn = m.ffn;
  m.expert.bias = m.expert.router_bias = true;
  m.sinks = true;
  const std::int64_t window = count(read, "sliding_window", kMaxPositions);
  std::vector<std::string> types = layer_types(read, m);
  for (std::int64_t i = static_cast<std::int64_t>(types.size()); i < m.layers; ++i) {
    types.emplace_back(i % 2 == 0 ? "sliding_attention" : "full_attention");
  }
  std::vector<LayerKind> layers;
  for (const std::string& type : types) {
    layers.push_back(expert_layer());
    const bool slides = type == "sliding_attention" && window < m.max_positions;
    layers.back().window = slides ? window : 0;
    layers.back().name = slides ? "moe_window" : "moe_full";
  }
  set_layers(m, layers);
  check_size(read, m, kLayers);
  return m;
}

}  // namespace orrery::zoo
