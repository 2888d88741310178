// SPDX-License-Identifier: Apache-2.0
/// Models that are not decoders of text: BERT, T5, ViT, DLRM.
#include <array>

#include "workload/zoo/families.h"
#include "workload/zoo/fields.h"
#include "workload/zoo/known_fields.h"

namespace orrery::zoo {
namespace {

constexpr ShapeFields kEncoderFields{"num_hidden_layers", "num_attention_heads",
                                     "num_attention_heads"};

/// Fields that BERT and ViT name alike.
Model read_encoder(Reader& read) {
  read.ignore("layer_norm_eps");
  Model m;
  m.layers = extent(read, "num_hidden_layers", kMaxLayers);
  m.hidden = extent(read, "hidden_size", kMaxHidden);
  m.heads = m.kv_heads = extent(read, "num_attention_heads", kMaxHidden);
  m.head_dim = m.heads > 0 ? m.hidden / m.heads : 0;
  m.ffn = extent(read, "intermediate_size", 8 * kMaxHidden);
  m.mlp = mlp_of(read, "hidden_act", "gelu", false);
  m.kinds = {{.name = "encoder", .causal = false}};
  check_heads(read, m, kEncoderFields, false);
  return m;
}

/// "relu", "gated-gelu", ...
MlpKind read_projection(Reader& read) {
  const std::string name = read.optional("feed_forward_proj", std::string("relu"));
  for (const char* ignored : {"dense_act_fn", "is_gated_act"}) {  // both follow from it
    read.ignore(ignored);
  }
  if (name == "relu") {
    return MlpKind::relu;
  }
  if (name == "gated-gelu") {
    return MlpKind::geglu;
  }
  if (name == "gated-silu") {
    return MlpKind::swiglu;
  }
  read.reject("feed_forward_proj", "relu, gated-gelu or gated-silu");
  return MlpKind::relu;
}

std::vector<LayerKind> encoder_and_decoder(std::int64_t encoders, std::int64_t decoders) {
  const LayerKind last{.name = "last_encoder", .causal = false, .ends_encoder = true};
  std::vector<LayerKind> layers;
  for (std::int64_t i = 0; i < encoders; ++i) {
    layers.push_back(i + 1 < encoders ? LayerKind{.name = "encoder", .causal = false} : last);
  }
  for (std::int64_t i = 0; i < decoders; ++i) {
    layers.push_back({.name = "decoder", .cross_attention = true});
  }
  return layers;
}

/// A list of widths, each within the limits; a mistake when it has fewer than `least`.
std::vector<std::int64_t> widths(Reader& read, std::string_view name, std::size_t least,
                                 std::int64_t limit) {
  auto values = read.list<std::int64_t>(name, true);
  bool ok = values.size() >= least;
  for (const std::int64_t value : values) {
    ok = ok && value >= 1 && value <= limit;
  }
  if (!ok) {
    read.reject(name, "a list of " + std::to_string(least) + " or more whole numbers from 1 to " +
                          std::to_string(limit));
    return std::vector<std::int64_t>(least, 1);
  }
  return values;
}

LayerKind tower(std::string name, std::vector<std::int64_t> sizes) {
  return {.name = std::move(name),
          .mixer = MixerKind::none,
          .feed_forward = FeedForwardKind::tower,
          .widths = std::move(sizes)};
}

}  // namespace

/// Devlin et al. 2019, pre-training: masked tokens (all tokens get logits) and next sentence.
Model read_bert(Reader& read) {
  Model m = read_encoder(read);
  m.norm_place = NormPlace::after;
  m.embedding_norm = true;
  m.final_norm = false;
  m.head = HeadKind::masked_token;
  m.vocab = extent(read, "vocab_size", kMaxVocab);
  m.max_positions = extent(read, "max_position_embeddings", kMaxPositions);
  m.token_types = extent(read, "type_vocab_size", kMaxVocab);
  m.dropout = m.embedding_dropout = probability(read, "hidden_dropout_prob", 0.1);
  m.attention_dropout = probability(read, "attention_probs_dropout_prob", 0.1);
  m.head_bias = true;
  expect_true(read, "tie_word_embeddings");
  expect_false(read, "add_cross_attention");
  constexpr std::array<std::string_view, 7> kNoEffect{
      "classifier_dropout",   "directionality",
      "pooler_fc_size",       "pooler_num_attention_heads",
      "pooler_num_fc_layers", "pooler_size_per_head",
      "pooler_type"};
  ignore_all(read, kNoEffect);
  const std::string position = read.optional("position_embedding_type", std::string("absolute"));
  read.require(position == "absolute", "position_embedding_type", "absolute");
  check_size(read, m, "num_hidden_layers");
  return m;
}

/// Raffel et al. 2020; encoder and decoder each get sequences of S tokens.
Model read_t5(Reader& read) {
  constexpr std::array<std::string_view, 5> kNoEffect{"classifier_dropout", "initializer_factor",
                                                      "layer_norm_epsilon", "pad_token_id",
                                                      "relative_attention_max_distance"};
  ignore_all(read, kNoEffect);
  Model m;
  const std::int64_t encoders = extent(read, "num_layers", kMaxLayers);
  const bool half = class_of(read.node()).ends_with("EncoderModel");
  const std::int64_t given =
      optional_extent(read, "num_decoder_layers", kMaxLayers).value_or(encoders);
  const std::int64_t decoders = half ? 0 : given;
  m.layers = encoders + decoders;
  m.hidden = extent(read, "d_model", kMaxHidden);
  m.heads = m.kv_heads = extent(read, "num_heads", kMaxHidden);
  m.head_dim = extent(read, "d_kv", kMaxHidden);
  m.ffn = extent(read, "d_ff", 8 * kMaxHidden);
  m.vocab = extent(read, "vocab_size", kMaxVocab);
  m.max_positions = optional_extent(read, "n_positions", kMaxPositions).value_or(512);
  m.mlp = read_projection(read);
  m.norm = NormKind::rms_norm;
  m.position = PositionKind::relative;
  m.relative_buckets = extent(read, "relative_attention_num_buckets", kMaxHidden);
  m.attention_bias = m.attention_output_bias = m.mlp_bias = false;
  m.tied_embedding = read.optional("tie_word_embeddings", true);
  m.final_norm = !half;  // the encoder's own ends it
  m.dropout = m.attention_dropout = m.embedding_dropout = probability(read, "dropout_rate", 0.1);
  expect_true(read, "is_encoder_decoder");
  set_layers(m, encoder_and_decoder(encoders, decoders));
  check_size(read, m, "num_layers");
  return m;
}

/// Dosovitskiy et al. 2021. A sequence is the image's patches and the class token.
Model read_vit(Reader& read) {
  Model m = read_encoder(read);
  m.input = InputKind::patches;
  m.head = HeadKind::image_class;
  const std::int64_t image = extent(read, "image_size", kMaxHidden / 1024);
  m.patches.side = extent(read, "patch_size", kMaxHidden / 1024);
  m.patches.channels = optional_extent(read, "num_channels", kMaxHidden / 1024).value_or(3);
  expect_divides(read, "patch_size", m.patches.side, image, "image's side");
  const std::int64_t across = m.patches.side > 0 ? image / m.patches.side : 0;
  m.max_positions = across * across + 1;
  const ConfigNode* labels = read.node().find("id2label");
  const auto named =
      labels == nullptr ? std::int64_t{0} : static_cast<std::int64_t>(labels->fields.size());
  m.vocab = named > 0 ? named : extent(read, "num_labels", kMaxVocab, 2);  // ViTConfig's default
  m.tied_embedding = false;
  m.head_bias = true;
  m.attention_bias = read.optional("qkv_bias", true);
  m.dropout = m.embedding_dropout = probability(read, "hidden_dropout_prob", 0);
  m.attention_dropout = probability(read, "attention_probs_dropout_prob", 0);
  for (const char* unused : {"encoder_stride", "pooler_act", "pooler_output_size"}) {
    read.ignore(unused);
  }
  check_size(read, m, "num_hidden_layers");
  return m;
}

/// Naumov et al. 2019 (arXiv:1906.00091); no Hugging Face class exists, so the fields are ours:
/// dense_features, bottom_mlp (widths; the last is the width of every embedding), embedding_tables
/// (rows of each), lookups_per_table (default 1), top_mlp (widths; the last is 1).
Model read_dlrm(Reader& read) {
  Model m;
  const std::int64_t features = extent(read, "dense_features", kMaxHidden);
  std::vector<std::int64_t> bottom = widths(read, "bottom_mlp", 1, kMaxHidden);
  const std::vector<std::int64_t> top = widths(read, "top_mlp", 1, kMaxHidden);
  m.tables = widths(read, "embedding_tables", 1, std::int64_t{1} << 40);
  m.pooling = optional_extent(read, "lookups_per_table", kMaxHidden).value_or(1);
  read.require(top.back() == 1, "top_mlp", "widths that end with 1, the click's logit");
  read.require(m.tables.size() < 65536, "embedding_tables", "fewer than 65,536 tables");
  m.hidden = bottom.back();
  m.input = InputKind::features;
  m.head = HeadKind::click;
  m.position = PositionKind::none;
  m.final_norm = m.tied_embedding = false;
  m.max_positions = m.vocab = m.heads = m.kv_heads = m.head_dim = m.layers = 1;
  // The dense vector and one of each table: their products in pairs, beside the dense vector.
  const auto vectors = static_cast<std::int64_t>(m.tables.size()) + 1;
  std::vector<std::int64_t> wide{m.hidden + vectors * (vectors - 1) / 2};
  wide.insert(wide.end(), top.begin(), top.end());
  bottom.insert(bottom.begin(), features);
  LayerKind upper = tower("top_mlp", wide);
  upper.interacting = vectors;
  set_layers(m, {tower("bottom_mlp", bottom), upper});
  m.layers = 2;
  check_size(read, m, "embedding_tables");
  return m;
}

}  // namespace orrery::zoo
