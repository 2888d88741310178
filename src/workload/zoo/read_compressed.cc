// SPDX-License-Identifier: Apache-2.0
/// DeepSeek-V4 (DeepSeek-AI 2026, "DeepSeek-V4"): a window and compressed keys in most layers,
/// hyper-connections, experts in every layer. Fields as in Hugging Face's DeepseekV4Config.
#include <array>

#include "workload/zoo/families.h"
#include "workload/zoo/fields.h"
#include "workload/zoo/known_fields.h"

namespace orrery::zoo {
namespace {

/// A stream's mixing weights are n (n + 2) columns.
constexpr std::int64_t kMaxStreams = 64;

/// Compression is what `compress_ratios` or, in newer files, `layer_types` says of a layer.
struct Compression {
  std::int64_t ratio;
  std::string_view type;
  std::string_view name;
  bool indexed;
};
constexpr auto kCompressions = std::to_array<Compression>({
    {0, "sliding_attention", "window", false},
    {4, "compressed_sparse_attention", "csa", true},
    {128, "heavily_compressed_attention", "hca", false},
});

LayerKind layer_of(const Compression& compression, std::int64_t window, std::int64_t top_k) {
  return {.name = std::string(compression.name),
          .mixer = MixerKind::compressed_attention,
          .feed_forward = FeedForwardKind::experts,
          .window = window,
          .compression = compression.ratio,
          .chosen = compression.indexed ? top_k : 0};
}

template <class Value, class Matches>
std::vector<LayerKind> read_list(Reader& read, std::string_view field, const LayerKind& plain,
                                 Matches matches) {
  std::vector<LayerKind> layers;
  for (const Value& entry : read.list<Value>(field)) {
    for (const Compression& compression : kCompressions) {
      if (matches(compression, entry)) {
        layers.push_back(layer_of(compression, plain.window, plain.chosen));
      }
    }
  }
  const ConfigNode* node = read.node().find(field);
  if (read.ok() && node != nullptr && node->items.size() != layers.size()) {
    read.reject(field,
                "entries 0 (sliding_attention), 4 (compressed_sparse_attention) or 128 "
                "(heavily_compressed_attention)");
  }
  return layers;
}

/// Layers, then those of multi-token prediction where the list goes on. `plain`: window and choice.
std::vector<LayerKind> read_layers(Reader& read, const LayerKind& plain) {
  if (read.node().find("layer_types") == nullptr) {
    return read_list<std::int64_t>(
        read, "compress_ratios", plain,
        [](const Compression& c, std::int64_t entry) { return c.ratio == entry; });
  }
  read.ignore("compress_ratios");
  return read_list<std::string>(
      read, "layer_types", plain,
      [](const Compression& c, const std::string& entry) { return c.type == entry; });
}

void set_all_layers(Reader& read, Model& m) {
  LayerKind plain;
  plain.window = extent(read, "sliding_window", kMaxPositions);
  plain.chosen = extent(read, "index_topk", kMaxPositions);
  std::vector<LayerKind> layers = read_layers(read, plain);
  const auto given = static_cast<std::int64_t>(layers.size());
  if (read.ok() && given != m.layers && given != m.layers + m.mtp) {
    read.reject(read.node().find("layer_types") == nullptr ? "compress_ratios" : "layer_types",
                "one entry for each of the " + std::to_string(m.layers) + " layers" +
                    (m.mtp > 0 ? " and of the predicted ones" : "") + "; found " +
                    std::to_string(given));
  }
  if (!read.ok()) {
    return;
  }
  const auto end = layers.begin() + static_cast<std::ptrdiff_t>(m.layers);
  const std::vector<LayerKind> prediction(end, layers.end());
  layers.erase(end, layers.end());
  set_layers(m, layers);
  if (m.mtp > 0) {  // every depth as the first; without an entry: a window
    set_prediction(
        m, {prediction.empty() ? layer_of(kCompressions[0], plain.window, 0) : prediction.front()});
  }
}

void read_attention(Reader& read, Model& m) {
  CompressedAttention& c = m.compressed;
  c.query_rank = extent(read, "q_lora_rank", kMaxHidden);
  const double share = rotary_share(read, "partial_rotary_factor", 0.125);
  c.rotary = optional_extent(read, "qk_rope_head_dim", kMaxHidden)
                 .value_or(static_cast<std::int64_t>(share * static_cast<double>(m.head_dim)));
  c.output_groups = extent(read, "o_groups", kMaxHidden);
  c.output_rank = extent(read, "o_lora_rank", kMaxHidden);
  c.index_heads = extent(read, "index_n_heads", kMaxHidden);
  c.index_dim = extent(read, "index_head_dim", kMaxHidden);
  m.sinks = true;
  expect_divides(read, "o_groups", c.output_groups, m.heads, "number of query heads");
  read.require(m.kv_heads <= 1, "num_key_value_heads", "1 (one head of keys for all queries)");
  read.require(m.head_dim == 0 || c.rotary <= m.head_dim, "qk_rope_head_dim",
               "at most head_dim, " + std::to_string(m.head_dim));
}

void read_experts(Reader& read, Model& m) {
  read_routing(read, m, "n_routed_experts");
  m.expert.ffn = m.ffn;
  m.expert.shared_ffn = count(read, "n_shared_experts", kMaxExperts, 1) * m.ffn;
}

}  // namespace

Model read_deepseek_v4(Reader& read) {
  // A layer that routes by a table of token ids (num_hash_layers, mlp_layer_types) moves the same
  // rows; its table is no parameter. Rates other than 4 and 128 would be seen in compress_ratios.
  constexpr std::array<std::string_view, 8> kNoEffect{
      "compress_rope_parameters", "compress_rope_theta", "expert_dtype",    "hc_eps",
      "intermediate_size",        "mlp_layer_types",     "num_hash_layers", "swiglu_limit"};
  ignore_all(read, kNoEffect);
  Model m = read_decoder(read, {.ffn = "moe_intermediate_size", .kv_heads = 1, .head_dim = 512});
  expect_all_false(read, std::array<std::string_view, 2>{"attention_bias", "mlp_bias"});
  m.mtp = count(read, "num_nextn_predict_layers", kMaxPredictions);
  m.streams = extent(read, "hc_mult", kMaxStreams);
  m.mixing_steps = extent(read, "hc_sinkhorn_iters", kMaxLayers);
  read_attention(read, m);
  read_experts(read, m);
  set_all_layers(read, m);
  check_size(read, m, kLayers);
  return m;
}

}  // namespace orrery::zoo
