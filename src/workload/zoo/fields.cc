// SPDX-License-Identifier: Apache-2.0
#include "workload/zoo/fields.h"

#include <algorithm>
#include <array>

#include "workload/zoo/known_fields.h"

namespace orrery::zoo {
namespace {

bool is_whole_number(const ConfigNode* node) {
  return node != nullptr && node->kind == ConfigNode::Kind::scalar && !node->quoted &&
         parse_integer(node->text);
}

/// Returns the value if it is in [least, limit]; else reports a mistake and returns 0.
std::int64_t checked(Reader& read, std::string_view name, std::int64_t value, std::int64_t least,
                     std::int64_t limit) {
  if (value >= least && value <= limit) {
    return value;
  }
  if (is_whole_number(read.node().find(name))) {
    read.reject(name,
                "a whole number from " + std::to_string(least) + " to " + std::to_string(limit));
  }
  return 0;
}

struct Function {
  std::string_view name;
  MlpKind plain;
  MlpKind gated;
  bool has_plain = true;
  bool has_gated = true;
};
/// Different formulas of one function have one row each; a kernel streams the same bytes for each.
constexpr auto kFunctions = std::to_array<Function>({
    {"gelu", MlpKind::gelu, MlpKind::geglu},
    {"gelu_new", MlpKind::gelu, MlpKind::geglu},
    {"gelu_fast", MlpKind::gelu, MlpKind::geglu},
    {"gelu_python", MlpKind::gelu, MlpKind::geglu},
    {"gelu_pytorch_tanh", MlpKind::gelu, MlpKind::geglu},
    {"quick_gelu", MlpKind::gelu, MlpKind::geglu},
    {"relu", MlpKind::relu, MlpKind::relu, true, false},
    {"relu2", MlpKind::squared_relu, MlpKind::squared_relu, true, false},
    {"silu", MlpKind::swiglu, MlpKind::swiglu, false, true},
    {"swish", MlpKind::swiglu, MlpKind::swiglu, false, true},
});

/// Says whether a name speaks of what layers are made of.
bool names_a_shape(std::string_view name) {
  return std::ranges::any_of(kShapeWords, [&](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  });
}

bool says_nothing(const ConfigNode& node) {
  if (node.kind != ConfigNode::Kind::scalar) {
    return node.fields.empty() && node.items.empty();
  }
  return node.text.empty() ||
         (!node.quoted && (node.text == "false" || parse_number(node.text) == 0));
}

}  // namespace

bool is_weightless(std::string_view name, const ConfigNode& node) {
  const auto ends = [&](std::string_view part) { return name.ends_with(part); };
  const auto begins = [&](std::string_view part) { return name.starts_with(part); };
  const bool usual_layers =
      name == "layer_types" && std::ranges::all_of(node.items, [](const ConfigNode& layer) {
        return layer.text == "full_attention";
      });
  const bool is_number =
      node.kind == ConfigNode::Kind::scalar && !node.quoted && parse_number(node.text).has_value();
  return says_nothing(node) || usual_layers || (!is_number && !names_a_shape(name)) ||
         std::ranges::find(kWeightlessNames, name) != kWeightlessNames.end() ||
         std::ranges::any_of(kWeightlessEnds, ends) ||
         std::ranges::any_of(kWeightlessBegins, begins);
}

void note_unknown(Reader& read, Model& model,
                  bool (*harmless)(std::string_view name, const ConfigNode& node)) {
  for (std::string& sentence : read.pass_unknown(harmless)) {
    model.notes.push_back(std::move(sentence));
  }
}

void read_direction(Reader& read, Model& model) {
  const bool both = read.optional("use_bidirectional_attention", false);
  const bool causal = read.optional("is_causal", true);
  if (causal && !both) {
    return;
  }
  if (model.kinds.empty()) {
    model.kinds.emplace_back();
  }
  for (LayerKind& kind : model.kinds) {
    kind.causal = false;
  }
}

void ignore_all(Reader& read, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    read.ignore(name);
  }
}

std::optional<std::int64_t> optional_extent(Reader& read, std::string_view name,
                                            std::int64_t limit) {
  const auto value = read.maybe<std::int64_t>(name);
  return value ? std::optional(checked(read, name, *value, 1, limit)) : value;
}

std::int64_t extent(Reader& read, std::string_view name, std::int64_t limit,
                    std::optional<std::int64_t> fallback) {
  auto value = optional_extent(read, name, limit);
  value = value ? value : fallback;
  return value ? *value : read.required<std::int64_t>(name);  // missing: that is the mistake
}

std::int64_t count(Reader& read, std::string_view name, std::int64_t limit, std::int64_t fallback) {
  const auto value = read.maybe<std::int64_t>(name);
  return value ? checked(read, name, *value, 0, limit) : fallback;
}

double probability(Reader& read, std::string_view name, double fallback) {
  const double value = read.optional(name, fallback);
  if (!(value >= 0 && value < 1)) {
    read.reject(name, "a probability from 0 to below 1");
    return 0;
  }
  return value;
}

double rotary_share(Reader& read, std::string_view name, double fallback) {
  double share = read.optional(name, fallback);
  const ConfigNode* parameters = read.node().find("rope_parameters");
  const ConfigNode* inside = parameters == nullptr ? nullptr : parameters->find(name);
  if (inside != nullptr && inside->kind == ConfigNode::Kind::scalar) {
    share = parse_number(inside->text).value_or(0);
  }
  if (!(share > 0 && share <= 1)) {
    read.reject(name, "a share of a head from above 0 to 1");
    return 1;
  }
  return share;
}

std::string class_of(const ConfigNode& node) {
  const ConfigNode* list = node.find("architectures");
  if (list == nullptr) {
    return {};
  }
  return list->items.empty() ? list->text : list->items.front().text;
}

void expect_false(Reader& read, std::string_view name) {
  read.require(!read.optional(name, false), name, "false (not modelled)");
}

void expect_all_false(Reader& read, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    expect_false(read, name);
  }
}

void expect_true(Reader& read, std::string_view name) {
  read.require(read.optional(name, true), name, "true (anything else is not modelled)");
}

Model read_nested(Reader& read, Model (*read_text)(Reader&), std::string_view field) {
  ignore_all(read, kIgnoredMultimodal);
  const ConfigNode* node = read.child(field, true);
  if (node == nullptr) {
    return {};
  }
  Reader text(*node);
  text.ignore("model_type");
  ignore_all(text, kIgnored);
  Model model = read_text(text);
  read_direction(text, model);
  note_unknown(text, model, is_weightless);
  model = read.absorb(text.finish(std::move(model)));
  model.tied_embedding = read.optional("tie_word_embeddings", model.tied_embedding);
  note_unknown(read, model, [](std::string_view, const ConfigNode&) { return true; });
  return model;
}

MlpKind mlp_of(Reader& read, std::string_view name, const std::string& fallback, bool gated) {
  const std::string found = read.optional(name, fallback);
  std::vector<std::string> names;
  std::string list;
  for (const Function& function : kFunctions) {
    if (!(gated ? function.has_gated : function.has_plain)) {
      continue;
    }
    if (found == function.name) {
      return gated ? function.gated : function.plain;
    }
    names.emplace_back(function.name);
    list += (list.empty() ? "" : ", ") + names.back();
  }
  read.reject(name, "one of " + list + did_you_mean(found, names));
  return gated ? MlpKind::swiglu : MlpKind::gelu;
}

void set_layers(Model& model, const std::vector<LayerKind>& layers) {
  model.kinds.clear();
  model.layout.clear();
  for (const LayerKind& layer : layers) {
    const auto found = std::find_if(model.kinds.begin(), model.kinds.end(),
                                    [&](const LayerKind& k) { return k.name == layer.name; });
    model.layout.push_back(static_cast<int>(found - model.kinds.begin()));
    if (found == model.kinds.end()) {
      model.kinds.push_back(layer);
    }
  }
  if (model.kinds.size() < 2) {
    model.layout.clear();
  }
}

void set_prediction(Model& m, const std::vector<LayerKind>& prediction) {
  for (const LayerKind& layer : prediction) {
    std::size_t kind = 0;
    while (kind < m.kinds.size() && m.kinds[kind].name != layer.name) {
      ++kind;
    }
    if (kind == m.kinds.size()) {
      m.kinds.push_back(layer);
      m.layout = m.layout.empty() ? std::vector<int>{0} : m.layout;
    }
    m.mtp_layout.push_back(static_cast<int>(kind));
  }
}

void expect_divides(Reader& read, std::string_view field, std::int64_t part, std::int64_t whole,
                    const std::string& whole_name) {
  read.require(part == 0 || whole % part == 0, field,
               "a divisor of the " + whole_name + ", " + std::to_string(whole));
}

void check_heads(Reader& read, const Model& model, const ShapeFields& names, bool head_dim_given) {
  if (!head_dim_given) {
    expect_divides(read, names.heads, model.heads, model.hidden, "hidden width");
  }
  expect_divides(read, names.kv_heads, model.kv_heads, model.heads, "number of query heads");
}

void check_size(Reader& read, const Model& m, std::string_view layers_field) {
  // In doubles and never too low: the exact count of extents that are each allowed can overflow.
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double hidden = number(m.hidden);
  const double value_dim = number(std::max(m.value_dim, m.head_dim));
  const double heads = 2 * number(m.heads + m.kv_heads) * (number(m.head_dim) + value_dim);
  const CompressedAttention& c = m.compressed;
  double latents = number(m.latent.query_rank + m.latent.key_value_rank + m.latent.rotary);
  latents += number(c.query_rank) + number(c.output_groups) * number(c.output_rank) +
             number(c.index_heads) * number(c.index_dim + 1) + 4 * number(c.index_dim + c.rotary);
  const double streams = number(m.streams) * (number(m.streams) + 2);
  double ffn = number(m.ffn + m.expert.shared_ffn);
  for (const LayerKind& kind : m.kinds) {
    ffn += number(kind.ffn);
  }
  const double width = number(m.expert.latent > 0 ? m.expert.latent : m.hidden);
  const double routed = number(m.experts) * (4 * width * number(m.expert.ffn) + hidden + width);
  const double mamba = 3 * number(m.mamba.heads) * number(m.mamba.head_dim) +
                       2 * number(m.mamba.groups) * number(m.mamba.state);
  const double layer = (hidden + latents) * (heads + latents + 4 * ffn + number(m.expert.latent)) +
                       routed + mamba * (hidden + number(m.mamba.kernel) + 2) +
                       (8 + 3 * streams * number(m.streams)) * hidden;
  const double tables =
      2 * hidden * number(m.vocab + m.max_positions + m.extra_positions + m.token_types);
  double rows = number(m.relative_buckets) + number(m.patches.width()) + 2 * hidden;
  for (const std::int64_t table : m.tables) {
    rows += number(table);
  }
  double towers = 0;
  for (const LayerKind& kind : m.kinds) {
    for (std::size_t i = 1; i < kind.widths.size(); ++i) {
      towers += (number(kind.widths[i - 1]) + 1) * number(kind.widths[i]);
    }
  }
  const double predictions =
      number(m.mtp) * (3 * hidden * hidden + number(std::int64_t(m.mtp_layout.size()) + 1) * layer);
  read.require(number(m.layers) * (layer + towers) + tables + rows * (hidden + number(m.heads)) +
                       predictions <
                   number(kMaxParameters),
               layers_field, "a model of fewer than 2^50 parameters; this one has more");
}

/// Returns the positions that the rotary positions were stretched from: beside
/// max_position_embeddings or in the map that says how (rope_scaling, or rope_parameters of newer
/// files). 0 where nothing was.
std::int64_t trained_positions(Reader& read, std::int64_t longest) {
  constexpr std::string_view kName = "original_max_position_embeddings";
  std::int64_t trained = optional_extent(read, kName, kMaxPositions).value_or(0);
  for (const std::string_view map : {"rope_scaling", "rope_parameters"}) {
    const ConfigNode* how = read.node().find(map);
    const ConfigNode* inside = how == nullptr ? nullptr : how->find(kName);
    if (inside != nullptr && inside->kind == ConfigNode::Kind::scalar) {
      trained = parse_integer(inside->text).value_or(0);
    }
  }
  return trained > 0 && trained < longest ? trained : 0;
}

Model read_decoder(Reader& read, const DecoderDefaults& defaults) {
  ignore_all(read, kIgnoredDecoder);
  Model m;
  m.norm = NormKind::rms_norm;
  m.position = PositionKind::rotary;
  m.layers = extent(read, "num_hidden_layers", kMaxLayers, defaults.layers);
  m.hidden = extent(read, "hidden_size", kMaxHidden, defaults.hidden);
  m.heads = extent(read, "num_attention_heads", kMaxHidden, defaults.heads);
  m.kv_heads = optional_extent(read, "num_key_value_heads", kMaxHidden)
                   .value_or(defaults.kv_heads.value_or(m.heads));
  auto head_dim = optional_extent(read, "head_dim", kMaxHidden);
  head_dim = head_dim ? head_dim : defaults.head_dim;
  m.head_dim = head_dim.value_or(m.heads > 0 ? m.hidden / m.heads : 0);
  m.ffn = extent(read, defaults.ffn, 8 * kMaxHidden, defaults.width);
  m.vocab = extent(read, "vocab_size", kMaxVocab, defaults.vocab);
  m.max_positions = extent(read, "max_position_embeddings", kMaxPositions, defaults.positions);
  m.trained_positions = trained_positions(read, m.max_positions);
  m.mlp = mlp_of(read, defaults.activation, defaults.function, defaults.gated);
  m.tied_embedding = read.optional("tie_word_embeddings", defaults.tied);
  m.attention_bias = m.attention_output_bias = m.mlp_bias = false;
  m.attention_dropout = probability(read, "attention_dropout", 0);
  expect_false(read, "is_encoder_decoder");
  check_heads(read, m, {}, head_dim.has_value());
  return m;
}

void read_expert_groups(Reader& read, Model& m) {
  const bool limited = read.optional("topk_method", std::string()) != "greedy";
  const std::int64_t groups = optional_extent(read, "n_group", kMaxExperts).value_or(1);
  const std::int64_t chosen = optional_extent(read, "topk_group", kMaxExperts).value_or(groups);
  read.require(m.experts % groups == 0, "n_group",
               "a divisor of the number of experts, " + std::to_string(m.experts));
  read.require(groups == 1 || (chosen <= groups && m.top_k * groups <= m.experts * chosen),
               "topk_group", "at most n_group, with at least num_experts_per_tok experts");
  m.expert_groups = limited ? groups : 1;
  m.chosen_groups = limited ? chosen : 1;
}

void read_routing(Reader& read, Model& m, std::string_view experts) {
  ignore_all(read, kIgnoredRouter);
  m.experts = extent(read, experts, kMaxExperts);
  m.top_k = extent(read, "num_experts_per_tok", kMaxExperts);
  read.require(m.experts == 0 || m.top_k <= m.experts, "num_experts_per_tok",
               "at most the number of experts, " + std::to_string(m.experts));
  read_expert_groups(read, m);
}

std::vector<std::string> layer_types(Reader& read, const Model& model) {
  const ConfigNode* node = read.node().find("layer_types");
  if (node == nullptr || node->kind == ConfigNode::Kind::null) {
    read.ignore("layer_types");
    return {};
  }
  auto types = read.list<std::string>("layer_types");
  if (model.layers > 0 && static_cast<std::int64_t>(types.size()) != model.layers) {
    read.reject("layer_types", "a list with one entry for each of the " +
                                   std::to_string(model.layers) + " layers");
    return {};
  }
  for (const std::string& type : types) {
    if (type != "sliding_attention" && type != "full_attention" && type != "chunked_attention") {
      read.reject(
          "layer_types",
          "entries sliding_attention, full_attention or chunked_attention; found '" + type + "'");
      return {};
    }
  }
  return types;
}

void set_windows(Model& model, const std::vector<std::string>& types, std::int64_t window) {
  if (window >= model.max_positions) {
    return;
  }
  std::vector<LayerKind> layers;
  layers.reserve(types.size());
  for (const std::string& type : types) {
    LayerKind kind{.name = "full"};
    if (type == "sliding_attention") {
      kind.name = "window";
      kind.window = window;
    }
    layers.push_back(kind);
  }
  set_layers(model, layers);
}

}  // namespace orrery::zoo
