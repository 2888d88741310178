// SPDX-License-Identifier: Apache-2.0
/// GPT-2 and its relatives.
#include <array>

#include "workload/zoo/families.h"
#include "workload/zoo/fields.h"
#include "workload/zoo/known_fields.h"

namespace orrery::zoo {
namespace {

/// ShapeNames are what a family calls the fields of its shape.
struct ShapeNames {
  std::string_view layers;
  std::string_view hidden;
  std::string_view heads;
  std::string_view positions;
};
constexpr ShapeNames kGpt2Shape{"n_layer", "n_embd", "n_head", "n_positions"};
constexpr ShapeNames kUsualShape{"num_hidden_layers", "hidden_size", "num_attention_heads",
                                 "max_position_embeddings"};

/// Reads the extents of a model that has as many key-value heads as heads, which share the hidden
/// width.
void read_shape(Reader& read, const ShapeNames& names, Model& m) {
  m.layers = extent(read, names.layers, kMaxLayers);
  m.hidden = extent(read, names.hidden, kMaxHidden);
  m.heads = m.kv_heads = extent(read, names.heads, kMaxHidden);
  m.head_dim = m.heads > 0 ? m.hidden / m.heads : 0;
  m.vocab = extent(read, "vocab_size", kMaxVocab);
  m.max_positions = extent(read, names.positions, kMaxPositions);
}

Model shape_checked(Reader& read, const ShapeNames& names, const Model& m) {
  check_heads(read, m, {names.layers, names.heads, names.heads}, false);
  check_size(read, m, names.layers);
  return m;
}

}  // namespace

Model read_gpt2(Reader& read) {
  ignore_all(read, kIgnoredGpt2);
  Model m;
  read_shape(read, kGpt2Shape, m);
  m.ffn = optional_extent(read, "n_inner", 8 * kMaxHidden).value_or(4 * m.hidden);
  const auto context = optional_extent(read, "n_ctx", kMaxPositions);
  read.require(!context || *context * m.max_positions == 0 || *context == m.max_positions, "n_ctx",
               "the same as n_positions, " + std::to_string(m.max_positions));
  m.mlp = mlp_of(read, "activation_function", "gelu_new", false);
  m.tied_embedding = read.optional("tie_word_embeddings", true);
  m.dropout = probability(read, "resid_pdrop", 0.1);
  m.attention_dropout = probability(read, "attn_pdrop", 0.1);
  m.embedding_dropout = probability(read, "embd_pdrop", 0.1);
  constexpr std::array<std::string_view, 3> kNotModelled{
      "add_cross_attention", "is_encoder_decoder", "reorder_and_upcast_attn"};
  expect_all_false(read, kNotModelled);
  return shape_checked(read, kGpt2Shape, m);
}

/// GPT-NeoX (Black et al. 2022): parallel residual with a norm for each branch.
Model read_gpt_neox(Reader& read) {
  constexpr std::array<std::string_view, 10> kNoEffect{
      "attention_probs_dropout_prob",
      "hidden_dropout_prob",  // of the library's own, unused here
      "classifier_dropout",
      "layer_norm_eps",
      "partial_rotary_factor",
      "rope_parameters",
      "rope_scaling",
      "rope_theta",
      "rotary_emb_base",
      "rotary_pct"};
  Model m;
  m.position = PositionKind::rotary;
  m.rotary_share =
      rotary_share(read, "rotary_pct", rotary_share(read, "partial_rotary_factor", .25));
  ignore_all(read, kNoEffect);
  read_shape(read, kUsualShape, m);
  m.ffn = extent(read, "intermediate_size", 8 * kMaxHidden);
  m.mlp = mlp_of(read, "hidden_act", "gelu", false);
  m.tied_embedding = read.optional("tie_word_embeddings", false);
  m.attention_bias = m.attention_output_bias = read.optional("attention_bias", true);
  m.parallel_residual = read.optional("use_parallel_residual", true);
  m.dropout = probability(read, "hidden_dropout", 0);
  m.attention_dropout = probability(read, "attention_dropout", 0);
  return shape_checked(read, kUsualShape, m);
}

/// GPT-J (Wang & Komatsuzaki 2021): one norm for both parallel branches, no attention biases.
Model read_gptj(Reader& read) {
  ignore_all(read, kIgnoredGpt2);
  Model m;
  m.position = PositionKind::rotary;
  read_shape(read, kGpt2Shape, m);
  m.ffn = optional_extent(read, "n_inner", 8 * kMaxHidden).value_or(4 * m.hidden);
  const std::int64_t rotated = optional_extent(read, "rotary_dim", kMaxHidden).value_or(m.head_dim);
  read.require(rotated <= m.head_dim, "rotary_dim",
               "at most the width of a head, " + std::to_string(m.head_dim));
  m.rotary_share =
      m.head_dim > 0 ? static_cast<double>(rotated) / static_cast<double>(m.head_dim) : 1;
  m.mlp = mlp_of(read, "activation_function", "gelu_new", false);
  m.tied_embedding = read.optional("tie_word_embeddings", false);
  m.head_bias = true;
  m.attention_bias = m.attention_output_bias = false;
  m.parallel_residual = m.shared_norm = true;
  m.dropout = probability(read, "resid_pdrop", 0);
  m.attention_dropout = probability(read, "attn_pdrop", 0);
  m.embedding_dropout = probability(read, "embd_pdrop", 0);
  return shape_checked(read, kGpt2Shape, m);
}

/// Phi-1.5 and Phi-2 as first published: GPT-J's names of the shape, biases around attention too.
Model read_phi_msft(Reader& read) {
  Model m = read_gptj(read);
  m.attention_bias = m.attention_output_bias = true;
  const std::int64_t groups = optional_extent(read, "n_head_kv", kMaxHidden).value_or(m.heads);
  read.require(groups == m.heads, "n_head_kv", "n_head, " + std::to_string(m.heads));
  constexpr std::array<std::string_view, 3> kNoEffect{"flash_attn", "flash_rotary", "fused_dense"};
  ignore_all(read, kNoEffect);
  return m;
}

/// OPT (Zhang et al. 2022): GPT-3's layer with ReLU; two more rows in the position table. Galactica
/// (Taylor et al. 2022) is OPT without biases, with norms without parameters.
Model read_opt(Reader& read) {
  Model m;
  read_shape(read, kUsualShape, m);
  m.ffn = extent(read, "ffn_dim", 8 * kMaxHidden);
  m.extra_positions = 2;
  m.mlp = mlp_of(read, "activation_function", "relu", false);
  m.tied_embedding = read.optional("tie_word_embeddings", true);
  m.attention_bias = m.attention_output_bias = m.mlp_bias = read.optional("enable_bias", true);
  m.dropout = probability(read, "dropout", 0.1);
  m.attention_dropout = probability(read, "attention_dropout", 0);
  if (!read.optional("do_layer_norm_before", true)) {  // 350M
    m.norm_place = NormPlace::after;
    m.final_norm = false;
  }
  m.norm_scale = read.optional("layer_norm_elementwise_affine", true);
  expect_true(read, "learned_embeddings");
  if (read.optional("_remove_final_layer_norm", false)) {
    m.final_norm = false;
  }
  const std::int64_t width =
      optional_extent(read, "word_embed_proj_dim", kMaxHidden).value_or(m.hidden);
  m.table_width = width == m.hidden ? 0 : width;
  read.ignore("activation_dropout");
  read.ignore("init_std");
  read.require(read.optional("layerdrop", 0.0) == 0, "layerdrop", "0 (not modelled)");
  return shape_checked(read, kUsualShape, m);
}

/// The value of the first of two names of one field; both missing is a mistake about the first.
std::int64_t extent_of_either(Reader& read, std::string_view name, std::string_view other,
                              std::int64_t limit) {
  const auto value = optional_extent(read, other, limit);
  if (!value) {
    return extent(read, name, limit);
  }
  const auto same = optional_extent(read, name, limit);
  read.require(!same || *same == *value, name,
               "the same as " + std::string(other) + ", " + std::to_string(*value));
  return *value;
}

/// BLOOM (Scao et al. 2022): ALiBi, a norm on the embedding.
Model read_bloom(Reader& read) {
  constexpr std::array<std::string_view, 9> kNoEffect{"attention_softmax_in_fp32",
                                                      "bias_dropout_fusion",
                                                      "layer_norm_epsilon",
                                                      "masked_softmax_fusion",
                                                      "offset_alibi",
                                                      "pretraining_tp",
                                                      "skip_bias_add",
                                                      "skip_bias_add_qkv",
                                                      "slow_but_exact"};
  ignore_all(read, kNoEffect);
  Model m;
  m.position = PositionKind::relative;
  m.embedding_norm = true;
  m.layers = extent_of_either(read, "n_layer", "num_hidden_layers", kMaxLayers);
  m.hidden = extent_of_either(read, "hidden_size", "n_embed", kMaxHidden);
  m.heads = m.kv_heads = extent_of_either(read, "n_head", "num_attention_heads", kMaxHidden);
  m.head_dim = m.heads > 0 ? m.hidden / m.heads : 0;
  m.ffn = optional_extent(read, "n_inner", 8 * kMaxHidden).value_or(4 * m.hidden);
  m.vocab = extent(read, "vocab_size", kMaxVocab);
  m.max_positions = optional_extent(read, "seq_length", kMaxPositions).value_or(2048);
  m.tied_embedding = read.optional("tie_word_embeddings", true);
  m.dropout = probability(read, "hidden_dropout", 0);
  m.attention_dropout = probability(read, "attention_dropout", 0);
  expect_false(read, "apply_residual_connection_post_layernorm");
  return shape_checked(read, kGpt2Shape, m);
}

/// Falcon (Almazrouei et al. 2023): the 7B has one key-value head and one norm, the later ones
/// groups and (num_ln_in_parallel_attn) one or two norms.
Model read_falcon(Reader& read) {
  constexpr std::array<std::string_view, 4> kNoEffect{"layer_norm_epsilon", "rope_parameters",
                                                      "rope_scaling", "rope_theta"};
  ignore_all(read, kNoEffect);
  Model m;
  m.layers = extent_of_either(read, "num_hidden_layers", "n_layer", kMaxLayers);
  m.hidden = extent(read, "hidden_size", kMaxHidden);
  m.heads = extent_of_either(read, "num_attention_heads", "n_head", kMaxHidden);
  m.head_dim = m.heads > 0 ? m.hidden / m.heads : 0;
  const auto first = optional_extent(read, "n_head_kv", kMaxHidden);
  const auto named = optional_extent(read, "num_kv_heads", kMaxHidden);
  const auto groups = named ? named : first;
  const bool grouped = read.optional("new_decoder_architecture", first.has_value());
  const bool single = read.optional("multi_query", true);
  m.kv_heads = grouped ? groups.value_or(m.heads) : single ? 1 : m.heads;
  m.ffn = optional_extent(read, "ffn_hidden_size", 8 * kMaxHidden).value_or(4 * m.hidden);
  m.vocab = extent(read, "vocab_size", kMaxVocab);
  m.max_positions = optional_extent(read, "max_position_embeddings", kMaxPositions).value_or(2048);
  m.mlp = mlp_of(read, "activation", "gelu", false);
  m.position = read.optional("alibi", false) ? PositionKind::relative : PositionKind::rotary;
  m.attention_bias = m.attention_output_bias = m.mlp_bias = read.optional("bias", false);
  expect_false(read, "apply_residual_connection_post_layernorm");
  m.parallel_residual = grouped || read.optional("parallel_attn", true);
  read.ignore("parallel_attn");
  const std::int64_t norms = count(read, "num_ln_in_parallel_attn", 2, grouped ? 2 : 1);
  m.shared_norm = m.parallel_residual && norms != 2;
  m.tied_embedding = read.optional("tie_word_embeddings", true);
  m.dropout = probability(read, "hidden_dropout", 0);
  m.attention_dropout = probability(read, "attention_dropout", 0);
  check_heads(read, m, {"num_hidden_layers", "num_attention_heads", "num_kv_heads"}, false);
  check_size(read, m, "num_hidden_layers");
  return m;
}

namespace {

/// Attention of MPT, in a map of its own: ALiBi, and fewer key-value heads where it says so.
void read_mpt_attention(Reader& read, Model& m) {
  const ConfigNode* node = read.child("attn_config", false);
  if (node == nullptr) {
    m.position = PositionKind::relative;
    return;
  }
  constexpr std::array<std::string_view, 16> kNoEffect{
      "alibi_bias_max", "attn_impl",  "attn_type",  "attn_uses_sequence_id",
      "clip_qkv",       "model_type", "prefix_lm",  "rope_dail_config",
      "rope_hf_config", "rope_impl",  "rope_theta", "sliding_window_size",
      "softmax_scale",  "fused_qkv",  "qk_gn",      "kv_dim"};
  Reader own(*node);
  ignore_all(own, kNoEffect);
  const bool rotary = own.optional("rope", false);
  m.position = own.optional("alibi", !rotary) ? PositionKind::relative
               : rotary                       ? PositionKind::rotary
                                              : PositionKind::learned;
  m.attention_dropout = probability(own, "attn_pdrop", 0);
  m.kv_heads = optional_extent(own, "kv_n_heads", kMaxHidden).value_or(m.heads);
  expect_false(own, "qk_ln");
  read.absorb(own.finish(0));
}

}  // namespace

/// MPT (MosaicML 2023) as its checkpoints say it: without biases norms have no shift either.
Model read_mpt(Reader& read) {
  constexpr std::array<std::string_view, 14> kNoEffect{
      "embedding_fraction", "fc_type",     "ffn_config",         "init_config", "init_device",
      "learned_pos_emb",    "logit_scale", "layer_norm_epsilon", "norm_eps",    "norm_type",
      "tokenizer_name",     "use_cache",   "use_pad_tok_in_ffn", "verbose"};
  constexpr ShapeNames kNames{"n_layers", "d_model", "n_heads", "max_seq_len"};
  ignore_all(read, kNoEffect);
  Model m;
  read_shape(read, kNames, m);
  m.ffn = extent(read, "expansion_ratio", kMaxHidden, 4) * m.hidden;
  m.mlp = MlpKind::gelu;
  m.tied_embedding = read.optional("tie_word_embeddings", true);
  const bool biases = !read.optional("no_bias", true);
  m.attention_bias = m.attention_output_bias = m.mlp_bias = biases;
  m.norm = biases ? NormKind::layer_norm : NormKind::rms_norm;
  m.dropout = probability(read, "resid_pdrop", 0);
  m.embedding_dropout = probability(read, "emb_pdrop", 0);
  read_mpt_attention(read, m);
  return shape_checked(read, kNames, m);
}

}  // namespace orrery::zoo
