// SPDX-License-Identifier: Apache-2.0
/// Decoders of Llama's shape: rotary positions, RMSNorm, a gated MLP.
#include <algorithm>
#include <array>
#include <string>

#include "workload/zoo/families.h"
#include "workload/zoo/fields.h"
#include "workload/zoo/known_fields.h"

namespace orrery::zoo {
namespace {

/// A window on every layer.
void read_window(Reader& read, Model& m) {
  const std::int64_t window = count(read, "sliding_window", kMaxPositions);
  if (window > 0) {
    set_windows(m, {"sliding_attention"}, window);
  }
}

/// Qwen: a window on the layers from max_window_layers on, when use_sliding_window is set.
void read_qwen_window(Reader& read, Model& m) {
  const bool uses = read.optional("use_sliding_window", false);
  const std::int64_t window = count(read, "sliding_window", kMaxPositions);
  const std::int64_t full = count(read, "max_window_layers", kMaxLayers, m.layers);
  std::vector<std::string> types = layer_types(read, m);
  if (!uses || window == 0 || window >= m.max_positions) {
    return;
  }
  for (std::int64_t i = static_cast<std::int64_t>(types.size()); i < m.layers; ++i) {
    types.emplace_back(i < full ? "full_attention" : "sliding_attention");
  }
  set_windows(m, types, window);
}

Model read_llama_of(Reader& read, const DecoderDefaults& defaults) {
  Model m = read_decoder(read, defaults);
  m.attention_bias = m.attention_output_bias = read.optional("attention_bias", false);
  m.mlp_bias = read.optional("mlp_bias", false);
  check_size(read, m, kLayers);
  return m;
}

}  // namespace

Model read_llama(Reader& read) {
  // The first Llamas' name of their positions.
  return read_llama_of(read,
                       {.positions = optional_extent(read, "max_sequence_length", kMaxPositions)});
}

Model read_mistral(Reader& read) {
  Model m = read_decoder(read);
  read_window(read, m);
  check_size(read, m, kLayers);
  return m;
}

Model read_mistral3(Reader& read) {
  Model m = read_nested(read, read_mistral);
  add_vision(read, m, {"pixtral"});
  return m;
}

Model read_qwen2(Reader& read) {
  Model m = read_decoder(read);
  m.attention_bias = read.optional("qkv_bias", true);
  read_qwen_window(read, m);
  check_size(read, m, kLayers);
  return m;
}

Model read_qwen3(Reader& read) {
  Model m = read_decoder(read, {.head_dim = 128});
  m.attention_bias = m.attention_output_bias = read.optional("attention_bias", false);
  m.query_key_norm = QueryKeyNorm::scaled;
  read_qwen_window(read, m);
  check_size(read, m, kLayers);
  return m;
}

Model read_qwen3_vl(Reader& read) {
  Model m = read_nested(read, read_qwen3);
  add_vision(read, m, {"qwen3_vl"});
  return m;
}

namespace {

/// The first files have the text's fields beside the map of the encoder.
Model read_qwen2_with(Reader& read, std::string_view encoder) {
  Model m;
  if (read.node().find("text_config") != nullptr) {
    m = read_nested(read, read_qwen2);
  } else {
    ignore_all(read, kIgnoredMultimodal);
    m = read_qwen2(read);
  }
  m.tied_embedding = read.optional("tie_word_embeddings", m.tied_embedding);
  add_vision(read, m, {encoder});
  return m;
}

/// A part that states no sizes has those of transformers' LlamaConfig (LLaVA 1.5), since the
/// library writes of a part what differs from its class.
Model read_llama_part(Reader& text) {
  Model m = read_llama_of(text, {.layers = 32,
                                 .hidden = 4096,
                                 .width = 11008,
                                 .heads = 32,
                                 .vocab = 32000,
                                 .positions = 2048});
  if (text.node().find("hidden_size") == nullptr) {
    m.notes.push_back(text.node().where() +
                      ": no hidden_size: sizes that are missing are LlamaConfig's, 4096 wide");
  }
  return m;
}

/// A text part that is a model of any family.
Model read_any_family(Reader& text) {
  const auto type = text.required<std::string>("model_type");
  if (type == "llama") {
    return read_llama_part(text);
  }
  const auto* family = std::ranges::find(kFamilies, type, &Family::model_type);
  if (family == kFamilies.end()) {
    text.reject("model_type", "a family of models of text");
    return {};
  }
  return family->read(text);
}

}  // namespace

Model read_qwen2_vl(Reader& read) {
  return read_qwen2_with(read, "qwen2_vl");
}

Model read_qwen2_5_vl(Reader& read) {
  return read_qwen2_with(read, "qwen2_5_vl");
}

Model read_llava(Reader& read) {
  Model m = read_nested(read, read_any_family);
  add_vision(read, m, {"clip_vision_model", "pixtral"});
  return m;
}

/// InternVL 2 to 3.5, as published (`llm_config`) and as transformers has it.
Model read_internvl(Reader& read) {
  const bool published = read.node().find("llm_config") != nullptr;
  Model m = read_nested(read, read_any_family, published ? "llm_config" : "text_config");
  add_vision(read, m, {"internvl_vision", "intern_vit_6b"});
  return m;
}

/// OLMo 2 and 3 (Ai2 2024, 2025): a branch's result is normalised before it is added, which is
/// counted and timed as a norm after the sum; all heads of queries, and of keys, are normalised
/// together. OLMo 3 has windows on three of four layers.
Model read_olmo2(Reader& read) {
  Model m = read_decoder(read);
  m.attention_bias = m.attention_output_bias = read.optional("attention_bias", false);
  m.norm_place = NormPlace::after;
  m.query_key_norm = QueryKeyNorm::whole;
  const std::int64_t window = count(read, "sliding_window", kMaxPositions);
  const std::vector<std::string> types = layer_types(read, m);
  if (window > 0 && !types.empty()) {
    set_windows(m, types, window);
  }
  check_size(read, m, kLayers);
  return m;
}

/// Phi-1.5 and Phi-2: GPT-J's parallel layer with LayerNorm, biases everywhere and GeLU.
Model read_phi(Reader& read) {
  Model m = read_decoder(read, {.function = "gelu_new", .gated = false});
  m.norm = NormKind::layer_norm;
  m.rotary_share = rotary_share(read, "partial_rotary_factor", 0.5);
  read.ignore("rotary_dim");  // the same, of the first versions
  m.attention_bias = m.attention_output_bias = m.mlp_bias = m.head_bias = true;
  m.parallel_residual = m.shared_norm = true;
  m.dropout = probability(read, "resid_pdrop", 0);
  m.embedding_dropout = probability(read, "embd_pdrop", 0);
  expect_false(read, "qk_layernorm");
  check_size(read, m, kLayers);
  return m;
}

Model read_phi3(Reader& read) {
  Model m = read_decoder(read);
  m.rotary_share = rotary_share(read, "partial_rotary_factor", 1);
  constexpr std::array<std::string_view, 2> kNoEffect{"full_attn_mod", "interpolate_factor"};
  ignore_all(read, kNoEffect);
  constexpr std::array<std::string_view, 2> kNotModelled{"attention_bias", "mlp_bias"};
  expect_all_false(read, kNotModelled);
  m.head_bias = read.optional("lm_head_bias", false);
  m.dropout = probability(read, "resid_pdrop", 0);
  m.embedding_dropout = probability(read, "embd_pdrop", 0);
  read_window(read, m);
  check_size(read, m, kLayers);
  return m;
}

/// PaLM (Chowdhery et al. 2022); no Hugging Face class exists, so the fields are those of llama:
/// GPT-J's parallel layer with SwiGLU, one key-value head, no biases, no shift in the norms.
Model read_palm(Reader& read) {
  Model m = read_decoder(read, {.tied = true, .kv_heads = 1});
  m.parallel_residual = m.shared_norm = true;
  check_size(read, m, kLayers);
  return m;
}

/// Nemotron-4 (Parmar et al. 2024): squared ReLU, LayerNorm, half of each head rotated.
Model read_nemotron(Reader& read) {
  Model m = read_decoder(read, {.function = "relu2", .gated = false});
  m.norm = NormKind::layer_norm;
  m.rotary_share = rotary_share(read, "partial_rotary_factor", 0.5);
  m.attention_bias = m.attention_output_bias = read.optional("attention_bias", false);
  m.mlp_bias = read.optional("mlp_bias", false);
  // Left from Megatron-LM in some files: the width of a head, its norm, and the rotated share.
  const std::int64_t width = optional_extent(read, "kv_channels", kMaxHidden).value_or(m.head_dim);
  read.require(width == m.head_dim, "kv_channels", "head_dim, " + std::to_string(m.head_dim));
  read.require(read.optional("norm", std::string("layernorm1p")) == "layernorm1p", "norm",
               "layernorm1p");
  read.ignore("rope_percent");
  check_size(read, m, kLayers);
  return m;
}

}  // namespace orrery::zoo
