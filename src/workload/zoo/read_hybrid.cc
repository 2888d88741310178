// SPDX-License-Identifier: Apache-2.0
/// Models of layers of several kinds: Granite 4.0, Nemotron-H and Nemotron 3 (NVIDIA 2025,
/// arXiv:2504.03624, arXiv:2512.20848), whose layers are each one of a Mamba-2 mixer, attention
/// without positions, an MLP, or experts; and decoders of fields of our own, with any of these.
#include <algorithm>
#include <array>
#include <optional>

#include "workload/zoo/families.h"
#include "workload/zoo/fields.h"
#include "workload/zoo/known_fields.h"

namespace orrery::zoo {
namespace {

struct HybridLayer {
  char letter;
  std::string_view name;
  std::string_view newer_name;
  MixerKind mixer;
  FeedForwardKind feed_forward;
};
constexpr auto kHybridLayers = std::to_array<HybridLayer>({
    {'M', "mamba", "linear_attention", MixerKind::mamba, FeedForwardKind::none},
    {'*', "attention", "full_attention", MixerKind::attention, FeedForwardKind::none},
    {'-', "mlp", "mlp", MixerKind::none, FeedForwardKind::dense},
    {'E', "moe", "moe", MixerKind::none, FeedForwardKind::experts},
});

template <class Matches>
std::optional<LayerKind> find_layer(Matches matches) {
  for (const HybridLayer& layer : kHybridLayers) {
    if (matches(layer)) {
      return LayerKind{.name = std::string(layer.name),
                       .mixer = layer.mixer,
                       .feed_forward = layer.feed_forward};
    }
  }
  return std::nullopt;
}

/// One layer per letter; empty when a letter is unknown.
std::vector<LayerKind> pattern_of(std::string_view letters) {
  std::vector<LayerKind> layers;
  for (const char letter : letters) {
    auto layer = find_layer([&](const HybridLayer& l) { return l.letter == letter; });
    if (!layer) {
      return {};
    }
    layers.push_back(std::move(*layer));
  }
  return layers;
}

/// Reads the kinds of layers from the string of one letter per layer, or from the list of names.
std::vector<LayerKind> read_pattern(Reader& read, std::string_view letters, std::string_view list) {
  const auto pattern = read.maybe<std::string>(letters);
  if (pattern) {
    read.ignore(list);
    auto layers = pattern_of(*pattern);
    if (layers.empty()) {
      read.reject(letters, "letters M (Mamba), * (attention), - (MLP), E (experts)");
    }
    return layers;
  }
  std::vector<LayerKind> layers;
  for (const std::string& name : read.list<std::string>(list)) {
    auto layer =
        find_layer([&](const HybridLayer& l) { return l.name == name || l.newer_name == name; });
    if (!layer) {
      read.reject(list, "entries mamba, attention, mlp, moe; found '" + name + "'");
      return {};
    }
    layers.push_back(std::move(*layer));
  }
  return layers;
}

constexpr std::array<std::string_view, 8> kMambaNoEffect{
    "expand",        "mamba_ssm_cache_dtype", "time_step_floor", "time_step_limit",
    "time_step_max", "time_step_min",         "time_step_rank",  "use_mamba_kernels"};
constexpr std::array<std::string_view, 10> kMambaFields{
    "chunk_size",      "conv_kernel", "mamba_head_dim", "mamba_hidden_act", "mamba_num_heads",
    "mamba_proj_bias", "n_groups",    "ssm_state_size", "use_bias",         "use_conv_bias"};

void read_mamba(Reader& read, Model& m) {
  m.mamba.heads = extent(read, "mamba_num_heads", kMaxHidden);
  m.mamba.head_dim = extent(read, "mamba_head_dim", kMaxHidden);
  m.mamba.groups = extent(read, "n_groups", kMaxHidden);
  m.mamba.state = extent(read, "ssm_state_size", kMaxHidden);
  m.mamba.kernel = extent(read, "conv_kernel", kMaxHidden);
  m.mamba.chunk = optional_extent(read, "chunk_size", kMaxPositions).value_or(128);
  m.mamba.convolution_bias = read.optional("use_conv_bias", true);
  m.mamba.projection_bias = read.optional("use_bias", false);
  expect_divides(read, "n_groups", m.mamba.groups, m.mamba.heads, "number of Mamba heads");
  read.require(read.optional("mamba_hidden_act", std::string("silu")) == "silu", "mamba_hidden_act",
               "silu");
  read.require(read.optional("mamba_proj_bias", m.mamba.projection_bias) == m.mamba.projection_bias,
               "mamba_proj_bias", "the same as use_bias");
}

constexpr std::array<std::string_view, 10> kExpertFields{"moe_intermediate_size",
                                                         "moe_latent_size",
                                                         "moe_shared_expert_intermediate_size",
                                                         "moe_shared_expert_overlap",
                                                         "n_routed_experts",
                                                         "n_shared_experts",
                                                         "num_experts_per_tok",
                                                         "n_group",
                                                         "topk_group",
                                                         "topk_method"};

void read_hybrid_experts(Reader& read, Model& m) {
  ignore_all(read, kIgnoredRouter);
  read.ignore("moe_shared_expert_overlap");
  m.experts = extent(read, "n_routed_experts", kMaxExperts);
  m.top_k = extent(read, "num_experts_per_tok", kMaxExperts);
  read.require(m.experts == 0 || m.top_k <= m.experts, "num_experts_per_tok",
               "at most the number of experts, " + std::to_string(m.experts));
  read_expert_groups(read, m);
  m.expert.ffn = extent(read, "moe_intermediate_size", 8 * kMaxHidden);
  m.expert.latent = count(read, "moe_latent_size", kMaxHidden);
  const bool shared = count(read, "n_shared_experts", kMaxExperts, 1) > 0;
  const std::int64_t width = count(read, "moe_shared_expert_intermediate_size", 8 * kMaxHidden);
  m.expert.shared_ffn = shared ? width : 0;
}

bool has(const std::vector<LayerKind>& layers, FeedForwardKind kind) {
  for (const LayerKind& layer : layers) {
    if (layer.feed_forward == kind) {
      return true;
    }
  }
  return false;
}

bool has(const std::vector<LayerKind>& layers, MixerKind kind) {
  for (const LayerKind& layer : layers) {
    if (layer.mixer == kind) {
      return true;
    }
  }
  return false;
}

/// Reads what every Nemotron-H has, with or without experts; newer files leave the number of layers
/// to the list.
Model read_common(Reader& read, std::int64_t layers) {
  constexpr std::array<std::string_view, 6> kNoEffect{
      "layer_norm_epsilon", "num_logits_to_keep",       "partial_rotary_factor",
      "residual_in_fp32",   "rescale_prenorm_residual", "sliding_window"};
  ignore_all(read, kNoEffect);
  // Attention heads of older files are named attention_head_dim.
  const auto older = optional_extent(read, "attention_head_dim", kMaxHidden);
  Model m = read_decoder(read, {.activation = "mlp_hidden_act",
                                .function = "relu2",
                                .gated = false,
                                .layers = std::clamp(layers, std::int64_t{1}, kMaxLayers),
                                .head_dim = older});
  read.ignore("hidden_act");
  m.position = PositionKind::none;
  m.attention_bias = m.attention_output_bias = read.optional("attention_bias", false);
  m.mlp_bias = read.optional("mlp_bias", false);
  m.dropout = probability(read, "hidden_dropout", 0);
  m.mtp = count(read, "num_nextn_predict_layers", kMaxPredictions);
  return m;
}

}  // namespace

Model read_nemotron_h(Reader& read) {
  const auto layers = read_pattern(read, "hybrid_override_pattern", "layers_block_type");
  Model m = read_common(read, static_cast<std::int64_t>(layers.size()));
  auto prediction = read_pattern(read, "mtp_hybrid_override_pattern", "mtp_layers_block_type");
  if (prediction.empty() && m.mtp > 0) {  // as Hugging Face's class does
    prediction = pattern_of("*E");
  }
  if (m.layers > 0 && read.ok() && static_cast<std::int64_t>(layers.size()) != m.layers) {
    const bool letters = read.node().find("hybrid_override_pattern") != nullptr;
    read.reject(letters ? "hybrid_override_pattern" : "layers_block_type",
                "one entry for each of the " + std::to_string(m.layers) + " layers; found " +
                    std::to_string(layers.size()));
  }
  const bool experts = has(layers, FeedForwardKind::experts);
  if (has(layers, MixerKind::mamba) || has(prediction, MixerKind::mamba)) {
    read_mamba(read, m);
  } else {
    ignore_all(read, kMambaFields);
  }
  ignore_all(read, kMambaNoEffect);
  if (experts || (m.mtp > 0 && has(prediction, FeedForwardKind::experts))) {
    read_hybrid_experts(read, m);
    read.require(!m.mlp_bias, "mlp_bias", "false (biases of experts are not modelled)");
  } else {
    ignore_all(read, kIgnoredRouter);
    ignore_all(read, kExpertFields);
  }
  set_layers(m, layers);
  if (m.mtp > 0) {
    set_prediction(m, prediction);
  }
  check_size(read, m, "num_hidden_layers");
  return m;
}

namespace {

constexpr std::array<std::string_view, 8> kGraniteMambaFields{
    "mamba_n_heads", "mamba_d_head",     "mamba_n_groups",  "mamba_d_state",
    "mamba_d_conv",  "mamba_chunk_size", "mamba_conv_bias", "mamba_proj_bias"};

void read_granite_mamba(Reader& read, Model& m) {
  m.mamba.heads = extent(read, "mamba_n_heads", kMaxHidden);
  m.mamba.head_dim = extent(read, "mamba_d_head", kMaxHidden);
  m.mamba.groups = extent(read, "mamba_n_groups", kMaxHidden, 1);
  m.mamba.state = extent(read, "mamba_d_state", kMaxHidden);
  m.mamba.kernel = extent(read, "mamba_d_conv", kMaxHidden, 4);
  m.mamba.chunk = optional_extent(read, "mamba_chunk_size", kMaxPositions).value_or(256);
  m.mamba.convolution_bias = read.optional("mamba_conv_bias", true);
  m.mamba.projection_bias = read.optional("mamba_proj_bias", false);
  expect_divides(read, "mamba_n_groups", m.mamba.groups, m.mamba.heads, "number of Mamba heads");
}

}  // namespace

/// Granite 4.0 (IBM 2025): every layer is a Mamba-2 mixer or attention, and experts with a shared
/// one, or that one alone.
Model read_granite_hybrid(Reader& read) {
  constexpr std::array<std::string_view, 11> kNoEffect{
      "attention_multiplier", "embedding_multiplier",  "init_method",
      "logits_scaling",       "mamba_expand",          "normalization_function",
      "residual_multiplier",  "shared_expert_overlap", "time_step_limit",
      "time_step_max",        "time_step_min"};
  ignore_all(read, kNoEffect);
  ignore_all(read, kIgnoredRouter);
  Model m = read_decoder(read, {.ffn = "shared_intermediate_size"});
  m.attention_bias = m.attention_output_bias = read.optional("attention_bias", false);
  m.position = read.optional("position_embedding_type", std::string("rope")) == "rope"
                   ? PositionKind::rotary
                   : PositionKind::none;
  m.experts = count(read, "num_local_experts", kMaxExperts);
  m.top_k = count(read, "num_experts_per_tok", kMaxExperts);
  const std::int64_t width = extent(read, "intermediate_size", 8 * kMaxHidden, m.ffn);
  if (m.experts > 0) {
    m.expert.ffn = width;
    m.expert.shared_ffn = m.ffn;
    read.require(m.top_k >= 1 && m.top_k <= m.experts, "num_experts_per_tok",
                 "1 to the number of experts, " + std::to_string(m.experts));
  } else {
    m.top_k = 0;
  }
  std::vector<LayerKind> layers;
  for (const std::string& name : read.list<std::string>("layer_types", true)) {
    read.require(name == "mamba" || name == "attention", "layer_types",
                 "entries mamba or attention; found '" + name + "'");
    layers.push_back(
        {.name = name,
         .mixer = name == "mamba" ? MixerKind::mamba : MixerKind::attention,
         .feed_forward = m.experts > 0 ? FeedForwardKind::experts : FeedForwardKind::dense});
  }
  read.require(layers.empty() || static_cast<std::int64_t>(layers.size()) == m.layers,
               "layer_types", "one entry for each of the " + std::to_string(m.layers) + " layers");
  if (has(layers, MixerKind::mamba)) {
    read_granite_mamba(read, m);
  } else {
    ignore_all(read, kGraniteMambaFields);
  }
  if (read.ok()) {
    set_layers(m, layers);
  }
  check_size(read, m, kLayers);
  return m;
}

namespace {

/// Layers by letters (layer_pattern), or of attention and an MLP or experts each.
void read_any_layers(Reader& read, Model& m) {
  const auto letters = read_pattern(read, "layer_pattern", "layers_block_type");
  const auto dense = read.list<std::int64_t>("mlp_only_layers");
  std::vector<LayerKind> layers = letters;
  for (std::int64_t i = 0; letters.empty() && i < m.layers; ++i) {
    const bool plain = m.experts == 0 || std::find(dense.begin(), dense.end(), i) != dense.end();
    layers.push_back({.name = plain ? "dense" : "moe",
                      .feed_forward = plain ? FeedForwardKind::dense : FeedForwardKind::experts});
  }
  read.require(std::ssize(layers) == m.layers, "layer_pattern",
               "one letter for each of the " + std::to_string(m.layers) + " layers");
  read.require(m.experts > 0 || !has(layers, FeedForwardKind::experts), "n_routed_experts",
               "how many, for the layers E");
  if (has(layers, MixerKind::mamba)) {
    read_mamba(read, m);
  } else {
    ignore_all(read, kMambaFields);
  }
  set_layers(m, layers);
  m.mtp = count(read, "num_nextn_predict_layers", kMaxPredictions);
  const auto prediction = read_pattern(read, "mtp_layer_pattern", "mtp_layers_block_type");
  if (m.mtp > 0 && !prediction.empty()) {
    set_prediction(m, prediction);
  }
}

}  // namespace

/// A decoder that no checkpoint's family has, in fields of our own beside the usual ones.
Model read_any_decoder(Reader& read) {
  Model m = read_decoder(read, {.function = "gelu", .gated = read.optional("gated", false)});
  m.position = read.optional("position", PositionKind::rotary);
  m.norm = read.optional("norm", NormKind::layer_norm);
  m.rotary_share = rotary_share(read, "partial_rotary_factor", 1);
  m.attention_bias = read.optional("attention_bias", false);
  m.attention_output_bias = read.optional("attention_output_bias", m.attention_bias);
  m.mlp_bias = read.optional("mlp_bias", false);
  m.query_key_norm =
      read.optional("use_qk_norm", false) ? QueryKeyNorm::scaled : QueryKeyNorm::none;
  m.attention_gate = read.optional("attention_gate", false);
  m.embedding_norm = read.optional("embedding_norm", false);
  m.dropout = m.embedding_dropout = probability(read, "hidden_dropout", 0);
  if (read.node().find("n_routed_experts") != nullptr) {
    read_hybrid_experts(read, m);
    m.expert.bias = m.mlp_bias;
    m.expert.shared_gate = read.optional("shared_expert_gate", false);
  }
  read_any_layers(read, m);
  check_size(read, m, kLayers);
  return m;
}

}  // namespace orrery::zoo
