// SPDX-License-Identifier: Apache-2.0
#include "workload/zoo/model.h"

#include <cassert>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/reader.h"
#include "workload/zoo/known_fields.h"

namespace orrery {
namespace {

void ignore_all(Reader& read, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    read.ignore(name);
  }
}

/// A whole number in [1, limit]; 0 after a mistake, so that shape checks can leave it out; nullopt
/// when the field is missing or null.
std::optional<std::int64_t> optional_extent(Reader& read, std::string_view name,
                                            std::int64_t limit) {
  const auto value = read.maybe<std::int64_t>(name);
  if (!value || (*value >= 1 && *value <= limit)) {
    return value;
  }
  const ConfigNode* node = read.node().find(name);
  if (node->kind == ConfigNode::Kind::scalar && !node->quoted && parse_integer(node->text)) {
    read.reject(name, "a whole number from 1 to " + std::to_string(limit));
  }
  return 0;
}

std::int64_t extent(Reader& read, std::string_view name, std::int64_t limit) {
  const auto value = optional_extent(read, name, limit);
  return value ? *value : read.required<std::int64_t>(name);  // missing: that is the mistake
}

double probability(Reader& read, std::string_view name, double fallback) {
  const double value = read.optional(name, fallback);
  if (!(value >= 0 && value < 1)) {
    read.reject(name, "a probability from 0 to below 1");
    return 0;
  }
  return value;
}

void expect_activation(Reader& read, std::string_view name, std::span<const std::string_view> known,
                       const std::string& fallback) {
  const std::string found = read.optional(name, fallback);
  std::vector<std::string> names;
  std::string list;
  for (const std::string_view candidate : known) {
    if (found == candidate) {
      return;
    }
    names.emplace_back(candidate);
    list += (list.empty() ? "" : ", ") + names.back();
  }
  read.reject(name, "one of " + list + did_you_mean(found, names));
}

void expect_false(Reader& read, std::string_view name) {
  read.require(!read.optional(name, false), name, "false (not modelled)");
}

/// Names of the fields to blame when a shape does not divide.
struct ShapeFields {
  std::string_view layers;
  std::string_view heads;
  std::string_view kv_heads;
};

/// `part` divides `whole`; not judged when one of them was a mistake already.
void expect_divides(Reader& read, std::string_view field, std::int64_t part, std::int64_t whole,
                    const std::string& whole_name) {
  read.require(part == 0 || whole % part == 0, field,
               "a divisor of the " + whole_name + ", " + std::to_string(whole));
}

void check_shape(Reader& read, const Model& model, const ShapeFields& names, bool head_dim_given) {
  if (!head_dim_given) {
    expect_divides(read, names.heads, model.heads, model.hidden, "hidden width");
  }
  expect_divides(read, names.kv_heads, model.kv_heads, model.heads, "number of query heads");
  // In doubles: the exact count of extents that are each allowed can still overflow.
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double layer =
      number(model.hidden) *
      (number(model.head_dim) * 2 * number(model.heads + model.kv_heads) + 3 * number(model.ffn));
  const double tables = 2 * number(model.hidden) * number(model.vocab + model.max_positions);
  read.require(number(model.layers) * layer + tables < number(kMaxParameters), names.layers,
               "a model of fewer than 2^50 parameters; this one has more");
}

Model read_gpt2(Reader& read) {
  ignore_all(read, kIgnoredGpt2);
  Model m;
  m.layers = extent(read, "n_layer", kMaxLayers);
  m.hidden = extent(read, "n_embd", kMaxHidden);
  m.heads = m.kv_heads = extent(read, "n_head", kMaxHidden);
  m.head_dim = m.heads > 0 ? m.hidden / m.heads : 0;
  m.ffn = optional_extent(read, "n_inner", 8 * kMaxHidden).value_or(4 * m.hidden);
  m.vocab = extent(read, "vocab_size", kMaxVocab);
  m.max_positions = extent(read, "n_positions", kMaxPositions);
  const auto context = optional_extent(read, "n_ctx", kMaxPositions);
  read.require(!context || *context * m.max_positions == 0 || *context == m.max_positions, "n_ctx",
               "the same as n_positions, " + std::to_string(m.max_positions));
  expect_activation(read, "activation_function", kGelu, "gelu_new");
  m.tied_embedding = read.optional("tie_word_embeddings", true);
  m.dropout = probability(read, "resid_pdrop", 0.1);
  m.attention_dropout = probability(read, "attn_pdrop", 0.1);
  m.embedding_dropout = probability(read, "embd_pdrop", 0.1);
  for (const std::string_view name :
       {"add_cross_attention", "is_encoder_decoder", "reorder_and_upcast_attn"}) {
    expect_false(read, name);
  }
  check_shape(read, m, {"n_layer", "n_head", "n_head"}, false);
  return m;
}

/// Llama, and Mistral where the two agree.
Model read_llama_shape(Reader& read) {
  ignore_all(read, kIgnoredLlama);
  Model m;
  m.mlp = MlpKind::swiglu;
  m.norm = NormKind::rms_norm;
  m.position = PositionKind::rotary;
  m.layers = extent(read, "num_hidden_layers", kMaxLayers);
  m.hidden = extent(read, "hidden_size", kMaxHidden);
  m.heads = extent(read, "num_attention_heads", kMaxHidden);
  m.kv_heads = optional_extent(read, "num_key_value_heads", kMaxHidden).value_or(m.heads);
  const auto head_dim = optional_extent(read, "head_dim", kMaxHidden);
  m.head_dim = head_dim.value_or(m.heads > 0 ? m.hidden / m.heads : 0);
  m.ffn = extent(read, "intermediate_size", 8 * kMaxHidden);
  m.vocab = extent(read, "vocab_size", kMaxVocab);
  m.max_positions = extent(read, "max_position_embeddings", kMaxPositions);
  expect_activation(read, "hidden_act", kSilu, "silu");
  m.tied_embedding = read.optional("tie_word_embeddings", false);
  m.attention_bias = m.attention_output_bias = m.mlp_bias = false;
  m.attention_dropout = probability(read, "attention_dropout", 0);
  expect_false(read, "is_encoder_decoder");
  check_shape(read, m, {"num_hidden_layers", "num_attention_heads", "num_key_value_heads"},
              head_dim.has_value());
  return m;
}

Model read_llama(Reader& read) {
  Model m = read_llama_shape(read);
  m.attention_bias = m.attention_output_bias = read.optional("attention_bias", false);
  m.mlp_bias = read.optional("mlp_bias", false);
  return m;
}

Model read_mistral(Reader& read) {
  Model m = read_llama_shape(read);
  const auto window = optional_extent(read, "sliding_window", kMaxPositions);
  read.require(!window || *window == 0 || *window >= m.max_positions, "sliding_window",
               "null, or no less than max_position_embeddings (sliding-window attention is not "
               "modelled)");
  return m;
}

struct Family {
  std::string_view model_type;
  std::string_view meaning;
  Model (*read)(Reader&);
};
constexpr auto kFamilies = std::to_array<Family>({
    {"gpt2", "learned positions, LayerNorm, GeLU MLP, biases; GPT-2 and GPT-3", read_gpt2},
    {"llama", "rotary positions, RMSNorm, SwiGLU MLP, grouped queries", read_llama},
    {"mistral", "as llama, without sliding window", read_mistral},
});

const Family* find_family(std::string_view model_type) {
  for (const Family& family : kFamilies) {
    if (family.model_type == model_type) {
      return &family;
    }
  }
  return nullptr;
}

/// The mistake about `model_type` alone: without it, no other field can be judged.
Error unsupported(const ConfigNode& node) {
  Reader read(node);
  const std::string found = read.required<std::string>("model_type");
  for (const auto& [name, value] : node.fields) {
    read.ignore(name);
  }
  if (read.ok()) {
    std::vector<std::string> names;
    std::string list;
    for (const Family& family : kFamilies) {
      names.emplace_back(family.model_type);
      list += (list.empty() ? "" : ", ") + names.back();
    }
    read.reject("model_type", "a supported type: " + list + did_you_mean(found, names));
  }
  Result<int> result = read.finish(0);
  assert(!result && "called for a node without supported model_type");
  return result ? Error(std::string("model_type: not supported")) : std::move(result.error());
}

/// Name of the model in a file: "opt/llama/config.json" and "opt/llama.json" are both "llama".
std::string name_of_file(const std::string& file) {
  std::error_code ignored;
  const std::filesystem::path path = std::filesystem::absolute(file, ignored).lexically_normal();
  const std::string stem = path.stem().string();
  return stem == "config" ? path.parent_path().filename().string() : stem;
}

}  // namespace

Result<Model> parse_model(const ConfigNode& node, std::string name) {
  const ConfigNode* type = node.find("model_type");
  const Family* family =
      type == nullptr || type->kind != ConfigNode::Kind::scalar ? nullptr : find_family(type->text);
  if (family == nullptr) {
    return fail(unsupported(node));
  }
  Reader read(node);
  read.ignore("model_type");
  ignore_all(read, kIgnored);
  Model model = family->read(read);
  model.name = std::move(name);
  model.model_type = family->model_type;
  return read.finish(std::move(model));
}

Result<Model> load_model(const std::string& name_or_path) {
  std::string path = name_or_path;
  std::error_code not_there;
  if (path.find('/') != std::string::npos && std::filesystem::is_directory(path, not_there)) {
    path = (std::filesystem::path(path) / "config.json").string();
  }
  auto file = find_config("models", path);
  if (!file) {
    return fail(std::move(file.error()));
  }
  const auto node = load_config(*file);
  if (!node) {
    return fail(node.error());
  }
  return parse_model(*node, name_of_file(*file));
}

Model gpt_model(std::string name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                std::int64_t sequence, std::int64_t vocab) {
  assert(heads > 0 && hidden % heads == 0 && "every head has the same whole width");
  Model m;
  m.name = std::move(name);
  m.model_type = "gpt2";
  m.layers = layers;
  m.hidden = hidden;
  m.heads = m.kv_heads = heads;
  m.head_dim = hidden / heads;
  m.ffn = 4 * hidden;
  m.vocab = vocab;
  m.max_positions = sequence;
  m.dropout = m.attention_dropout = m.embedding_dropout = 0.1;
  return m;
}

}  // namespace orrery
