// SPDX-License-Identifier: Apache-2.0
/// Gemma 1 to 4: GeLU-gated MLP, tied embedding, heads of a width of their own.
#include <array>

#include "workload/zoo/families.h"
#include "workload/zoo/fields.h"

namespace orrery::zoo {
namespace {

/// Soft caps are part of the kernels that apply them.
constexpr std::array<std::string_view, 5> kNoEffect{
    "attn_logit_softcapping", "cache_implementation", "final_logit_softcapping", "hidden_act",
    "query_pre_attn_scalar"};

Model read_any(Reader& read, const DecoderDefaults& defaults) {
  ignore_all(read, kNoEffect);
  Model m = read_decoder(read, defaults);
  m.attention_bias = m.attention_output_bias = read.optional("attention_bias", false);
  return m;
}

/// Reads windows: the last of every `period` layers sees all keys, unless `layer_types` says
/// otherwise.
void read_windows(Reader& read, Model& m, std::int64_t period) {
  const std::int64_t window = count(read, "sliding_window", kMaxPositions, 4096);
  std::vector<std::string> types = layer_types(read, m);
  for (auto i = static_cast<std::int64_t>(types.size()); i < m.layers; ++i) {
    const bool full = period > 0 && (i + 1) % period == 0;
    types.emplace_back(full ? "full_attention" : "sliding_attention");
  }
  if (window > 0) {
    set_windows(m, types, window);
  }
}

}  // namespace

Model read_gemma(Reader& read) {
  DecoderDefaults defaults{.function = "gelu_pytorch_tanh", .tied = true, .head_dim = 256};
  // Newer files name the function that is used; older ones have only hidden_act.
  const ConfigNode* newer = read.node().find("hidden_activation");
  if (newer != nullptr && newer->kind != ConfigNode::Kind::null) {
    defaults.activation = "hidden_activation";
  } else {
    read.ignore("hidden_activation");
    defaults.activation = "hidden_act";
  }
  Model m = read_any(read, defaults);
  check_size(read, m, kLayers);
  return m;
}

Model read_gemma2(Reader& read) {
  Model m = read_any(read, {.activation = "hidden_activation",
                            .function = "gelu_pytorch_tanh",
                            .tied = true,
                            .head_dim = 256});
  m.norm_place = NormPlace::around;
  read_windows(read, m, 2);
  check_size(read, m, kLayers);
  return m;
}

Model read_gemma3_text(Reader& read) {
  Model m = read_any(read, {.activation = "hidden_activation",
                            .function = "gelu_pytorch_tanh",
                            .tied = true,
                            .heads = 8,  // the published files leave out what is as in the class
                            .kv_heads = 4,
                            .head_dim = 256,
                            .vocab = 262'208,
                            .positions = 131'072});
  m.norm_place = NormPlace::around;
  m.query_key_norm = QueryKeyNorm::scaled;
  const std::int64_t period = count(read, "sliding_window_pattern", kMaxLayers, 6);
  read.ignore("_sliding_window_pattern");
  read_windows(read, m, period);
  check_size(read, m, kLayers);
  return m;
}

Model read_gemma3(Reader& read) {
  Model m = read_nested(read, read_gemma3_text);
  add_vision(read, m, {"siglip_vision_model"});
  return m;
}

namespace {

/// Experts beside the dense MLP, which is their shared expert; every one has norms of its own.
void read_gemma_experts(Reader& read, Model& m) {
  m.experts = extent(read, "num_experts", kMaxExperts);
  m.top_k = extent(read, "top_k_experts", kMaxExperts);
  read.require(m.experts == 0 || m.top_k <= m.experts, "top_k_experts",
               "at most the number of experts, " + std::to_string(m.experts));
  m.expert.ffn = extent(read, "moe_intermediate_size", 8 * kMaxHidden);
  m.expert.shared_ffn = m.ffn;
  m.expert.normed = true;
}

/// The last of every six layers, and the last of all, see all keys, unless `layer_types` says
/// otherwise. These have heads of their own width and number, and may have one product for keys and
/// values. Every layer has the feed-forward part of `plain`.
void set_gemma_layers(Reader& read, Model& m, const LayerKind& plain) {
  constexpr std::int64_t kPeriod = 6;
  LayerKind window = plain;
  window.name = "window";
  window.window = count(read, "sliding_window", kMaxPositions, 512);
  LayerKind full = plain;
  full.name = "full";
  full.head_dim = extent(read, "global_head_dim", kMaxHidden, 512);
  full.shared_key_value = read.optional("attention_k_eq_v", false);
  const auto kv_heads = optional_extent(read, "num_global_key_value_heads", kMaxHidden);
  full.kv_heads = full.shared_key_value ? kv_heads.value_or(0) : 0;
  expect_divides(read, "num_global_key_value_heads", full.kv_heads, m.heads,
                 "number of query heads");
  const std::vector<std::string> types = layer_types(read, m);
  std::vector<LayerKind> layers;
  for (std::int64_t i = 0; i < m.layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool sees_all = at < types.size() ? types[at] == "full_attention"
                                            : (i + 1) % kPeriod == 0 || i + 1 == m.layers;
    layers.push_back(sees_all ? full : window);
  }
  set_layers(m, layers);
}

}  // namespace

/// Gemma 4 (Google 2026), as in Hugging Face's modeling_gemma4. The smaller models (E2B, E4B) give
/// every layer an embedding of its own and let the last ones read the keys of others: refused.
Model read_gemma4_text(Reader& read) {
  Model m = read_any(read, {.activation = "hidden_activation",
                            .function = "gelu_pytorch_tanh",
                            .tied = true,
                            .head_dim = 256,
                            .vocab = 262'144,
                            .positions = 131'072});
  m.norm_place = NormPlace::around;
  m.query_key_norm = QueryKeyNorm::values;
  constexpr std::array<std::string_view, 2> kNotModelled{"hidden_size_per_layer_input",
                                                         "num_kv_shared_layers"};
  for (const std::string_view name : kNotModelled) {
    read.require(
        count(read, name, kMaxHidden) == 0, name,
        "0: layers with an embedding of their own, or with the keys of others (Gemma 4 E2B "
        "and E4B), are not modelled");
  }
  expect_false(read, "use_double_wide_mlp");
  read.ignore("vocab_size_per_layer_input");
  read.ignore("expert_intermediate_size");
  LayerKind plain;
  if (read.optional("enable_moe_block", false)) {
    plain.feed_forward = FeedForwardKind::experts;
    read_gemma_experts(read, m);
  } else {
    ignore_all(read, std::array<std::string_view, 3>{"num_experts", "top_k_experts",
                                                     "moe_intermediate_size"});
  }
  set_gemma_layers(read, m, plain);
  check_size(read, m, kLayers);
  return m;
}

Model read_gemma4(Reader& read) {
  Model m = read_nested(read, read_gemma4_text);
  add_vision(read, m, {"gemma4_vision"});
  return m;
}

}  // namespace orrery::zoo
