// SPDX-License-Identifier: Apache-2.0
/// An architecture is what a model is made of: plain values, filled from a Hugging Face
/// config.json.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/names.h"

namespace orrery::zoo {

/// Says how attention is computed; a plan field, because the same model runs with either.
enum class AttentionKernel : std::uint8_t { unfused, flash, flash2, cudnn, cudnn_fp8, fa3, triton };
constexpr auto named_values(AttentionKernel) {
  return std::to_array<Named<AttentionKernel>>({
      {AttentionKernel::unfused, "unfused", "scores, scale-mask-softmax, context; S x S is stored"},
      {AttentionKernel::flash, "flash", "one fused kernel, recomputes scores in backward"},
      {AttentionKernel::flash2, "flash2", "that of FlashAttention-2"},
      {AttentionKernel::cudnn, "cudnn", "that of cuDNN"},
      {AttentionKernel::cudnn_fp8, "cudnn_fp8", "that of cuDNN with operands and result in fp8"},
      {AttentionKernel::fa3, "fa3", "that of FlashAttention-3, timed as the device's usual one"},
      {AttentionKernel::triton, "triton", "one written in Triton, timed as flash2"},
  });
}
/// Returns whether one kernel computes attention and stores no square of scores.
constexpr bool is_fused(AttentionKernel kernel) {
  return kernel != AttentionKernel::unfused;
}

enum class MlpKind : std::uint8_t { gelu, swiglu, geglu, relu, squared_relu };
constexpr auto named_values(MlpKind) {
  return std::to_array<Named<MlpKind>>({
      {MlpKind::gelu, "gelu", "two matrices, GeLU between"},
      {MlpKind::swiglu, "swiglu", "gate, up and down matrices, SiLU(gate) * up between"},
      {MlpKind::geglu, "geglu", "gate, up and down matrices, GeLU(gate) * up between"},
      {MlpKind::relu, "relu", "two matrices, ReLU between"},
      {MlpKind::squared_relu, "squared_relu", "two matrices, the square of ReLU between"},
  });
}
constexpr bool is_gated(MlpKind kind) {
  return kind == MlpKind::swiglu || kind == MlpKind::geglu;
}

enum class NormKind : std::uint8_t { layer_norm, rms_norm };
constexpr auto named_values(NormKind) {
  return std::to_array<Named<NormKind>>({
      {NormKind::layer_norm, "layer_norm", "mean and variance; scale and shift"},
      {NormKind::rms_norm, "rms_norm", "root mean square; scale"},
  });
}
/// Says where the norms of a layer stand.
enum class NormPlace : std::uint8_t { before, around, after };
constexpr auto named_values(NormPlace) {
  return std::to_array<Named<NormPlace>>({
      {NormPlace::before, "before", "one before attention, one before the MLP (pre-norm)"},
      {NormPlace::around, "around", "also one after each, before the residual sum (Gemma 2)"},
      {NormPlace::after, "after", "one after each residual sum (post-norm, BERT)"},
  });
}
enum class QueryKeyNorm : std::uint8_t { none, scaled, plain, whole, values };
constexpr auto named_values(QueryKeyNorm) {
  return std::to_array<Named<QueryKeyNorm>>({
      {QueryKeyNorm::none, "none", "queries and keys as they are"},
      {QueryKeyNorm::scaled, "scaled", "every head normalised, one scale per element of a head"},
      {QueryKeyNorm::plain, "plain", "every head of rotated layers normalised, no parameters"},
      {QueryKeyNorm::whole, "whole",
       "all heads of queries, and of keys, normalised together, a scale per element"},
      {QueryKeyNorm::values, "values", "as scaled, and heads of values without parameters"},
  });
}
constexpr bool scales_heads(QueryKeyNorm kind) {
  return kind == QueryKeyNorm::scaled || kind == QueryKeyNorm::values;
}
enum class PositionKind : std::uint8_t { learned, rotary, relative, none };
constexpr auto named_values(PositionKind) {
  return std::to_array<Named<PositionKind>>({
      {PositionKind::learned, "learned", "a table of max_positions rows added to the embedding"},
      {PositionKind::rotary, "rotary", "rotation of queries and keys; no parameters"},
      {PositionKind::relative, "relative", "a bias on the scores by distance (ALiBi, T5 buckets)"},
      {PositionKind::none, "none", "no explicit positions"},
  });
}

/// MixerKind names what moves values between the tokens of a sequence.
enum class MixerKind : std::uint8_t {
  attention,
  latent_attention,
  compressed_attention,
  mamba,
  none,
  gated_delta
};
constexpr auto named_values(MixerKind) {
  return std::to_array<Named<MixerKind>>({
      {MixerKind::attention, "attention", "multi-head, grouped or multi-query attention"},
      {MixerKind::latent_attention, "latent_attention", "MLA: low-rank queries, keys and values"},
      {MixerKind::compressed_attention, "compressed_attention",
       "a window of keys and compressed ones before it (DeepSeek-V4)"},
      {MixerKind::mamba, "mamba", "Mamba-2: causal convolution and selective state-space scan"},
      {MixerKind::none, "none", "nothing: a layer of only an MLP"},
      {MixerKind::gated_delta, "gated_delta",
       "gated delta net: causal convolution and a state updated by the delta rule"},
  });
}
enum class FeedForwardKind : std::uint8_t { dense, experts, tower, none };
constexpr auto named_values(FeedForwardKind) {
  return std::to_array<Named<FeedForwardKind>>({
      {FeedForwardKind::dense, "dense", "one MLP for every token"},
      {FeedForwardKind::experts, "experts", "router, routed experts and the shared expert"},
      {FeedForwardKind::tower, "tower", "a chain of matrices of given widths, ReLU between"},
      {FeedForwardKind::none, "none", "nothing: a layer of only a mixer"},
  });
}
/// InputKind names what the layers' input is made of.
enum class InputKind : std::uint8_t { tokens, patches, features };
constexpr auto named_values(InputKind) {
  return std::to_array<Named<InputKind>>({
      {InputKind::tokens, "tokens", "rows of a table of V"},
      {InputKind::patches, "patches", "projected patches of an image, perhaps a class token"},
      {InputKind::features, "features", "rows of the tables of a recommendation model"},
  });
}
/// HeadKind names what is predicted from the layers' output.
enum class HeadKind : std::uint8_t { next_token, masked_token, image_class, click, projected };
constexpr auto named_values(HeadKind) {
  return std::to_array<Named<HeadKind>>({
      {HeadKind::next_token, "next_token", "logits over V for every token"},
      {HeadKind::masked_token, "masked_token",
       "a transform, logits over V; next-sentence classifier"},
      {HeadKind::image_class, "image_class", "logits over V classes for every image"},
      {HeadKind::click, "click", "binary cross entropy of the last layer's output"},
      {HeadKind::projected, "projected", "rows of another model's stream (Model::projectors)"},
  });
}

/// One of a model's distinct layers.
struct LayerKind {
  std::string name = "layer";
  MixerKind mixer = MixerKind::attention;
  FeedForwardKind feed_forward = FeedForwardKind::dense;
  std::int64_t ffn = 0;     ///< of its dense MLP; 0: Model::ffn
  std::int64_t window = 0;  ///< a query sees itself and the window - 1 keys before; 0: all before
  std::int64_t chunk = 0;   ///< a query sees the keys before it in its chunk; 0: all before
  std::int64_t compression = 0;  ///< tokens per compressed key (DeepSeek-V4); 0: none
  /// Compressed keys that an indexer chooses for every query; 0: no indexer, a query sees all.
  std::int64_t chosen = 0;
  bool causal = true;                     ///< false: a query sees all keys of its sequence
  bool rotary = true;                     ///< false: not rotated although Model::position is rotary
  bool cross_attention = false;           ///< a second attention, to the output of the encoder
  bool ends_encoder = false;              ///< a norm after it: the encoder's final one
  std::vector<std::int64_t> widths = {};  ///< of a tower: input, ..., output
  std::int64_t interacting = 0;   ///< vectors whose pairwise products are the tower's input (DLRM)
  std::int64_t head_dim = 0;      ///< of its attention; 0: Model::head_dim
  std::int64_t kv_heads = 0;      ///< of its attention; 0: Model::kv_heads
  bool shared_key_value = false;  ///< one product makes keys and values, which norms tell apart
};

/// Patches of an image (Dosovitskiy et al. 2021): one token per patch and one for the class.
struct Patches {
  std::int64_t channels = 0;
  std::int64_t side = 0;       ///< pixels
  std::int64_t frames = 1;     ///< of a video that a patch reaches over; an image is repeated
  std::int64_t positions = 0;  ///< rows of a table added to patches, beside Model::position
  bool bias = true;            ///< of their projection
  bool class_token = true;

  std::int64_t width() const { return channels * side * side * frames; }
};

/// A projector makes an encoder's rows those of another model's stream: a norm, and matrices with a
/// GeLU between each two.
struct Projector {
  /// Widths are those of its input, several of the encoder's rows side by side, ..., the stream.
  std::vector<std::int64_t> widths;
  std::int64_t norm = 0;  ///< parameters of the norm before them; 0: none
  bool bias = true;
  std::int64_t copies = 1;  ///< each with parameters of its own (DeepStack)
};

/// Multi-head latent attention (DeepSeek-AI 2024, "DeepSeek-V2", section 2.1). Of a head's width
/// for queries and keys (Model::head_dim), `rotary` elements carry the position; the rotated part
/// of the keys is one for all heads.
struct LatentAttention {
  std::int64_t query_rank = 0;  ///< 0: queries are projected from H at once
  std::int64_t key_value_rank = 0;
  std::int64_t rotary = 0;
};

/// Attention to a window of keys and to compressed ones (DeepSeek-AI 2026, "DeepSeek-V4", section
/// 2.3; compressed_operators.cc): low-rank queries, one head of keys that are the values too,
/// low-rank output projection in groups of heads. Which layers compress: LayerKind::compression.
struct CompressedAttention {
  std::int64_t query_rank = 0;
  std::int64_t rotary = 0;         ///< elements of a head that carry the position
  std::int64_t output_groups = 0;  ///< of heads, each projected to output_rank
  std::int64_t output_rank = 0;
  std::int64_t index_heads = 0;  ///< of the indexer of layers whose compressed keys are chosen
  std::int64_t index_dim = 0;
};

/// Routed experts of one layer (their number and top-k: Model::experts, Model::top_k).
struct ExpertShape {
  std::int64_t ffn = 0;         ///< inner width of one expert
  std::int64_t shared_ffn = 0;  ///< of the shared expert(s) together; 0: none
  std::int64_t latent = 0;      ///< width in which experts work; 0: H (no projections around them)
  bool shared_gate = false;     ///< the shared expert's output is scaled by sigmoid(H x 1 matrix)
  bool bias = false;            ///< of fc1 and fc2
  bool clamped = false;         ///< gate and up, before the activation (GPT-OSS)
  bool router_bias = false;     ///< trained; not the balancing bias of DeepSeek-V3
  /// Routed and shared experts have a norm each behind them, routed ones one before, the router one
  /// with a scale of its own for every expert's weight (Gemma 4).
  bool normed = false;
};

/// Layers with a recurrent state: Mamba-2 (Dao & Gu 2024, arXiv:2405.21060), or, of MixerKind
/// gated_delta, a gated delta net (Yang et al. 2024, arXiv:2412.06464), whose `heads` of values are
/// of width head_dim and whose `groups` heads of queries and keys have width `state`.
struct Mamba {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;  ///< d_inner = heads x head_dim
  std::int64_t groups = 0;    ///< of heads that share B and C
  std::int64_t state = 0;     ///< N
  std::int64_t kernel = 0;    ///< width of the causal convolution
  std::int64_t chunk = 0;     ///< of the chunked scan
  bool convolution_bias = true;
  bool projection_bias = false;

  std::int64_t inner() const { return heads * head_dim; }
  std::int64_t convolved() const { return inner() + 2 * groups * state; }
};

/// An indexer in front of latent attention (DeepSeek-AI 2025, "DeepSeek-V3.2"): `heads` low-rank
/// queries of width `dim` score one key a token, and the head's queries see the `chosen` best ones.
struct SparseIndex {
  std::int64_t heads = 0;
  std::int64_t dim = 0;
  std::int64_t chosen = 0;
};

struct Vision;

/// Architecture of a model. Fields that a family lacks keep their default.
struct Model {
  std::string name;
  std::string model_type;          ///< as in families.h: gpt2, llama, ...
  std::vector<std::string> notes;  ///< what its file says that is not read as it stands
  std::int64_t layers = 0;         ///< L
  std::int64_t hidden = 0;         ///< H
  std::int64_t heads = 0;          ///< query heads
  std::int64_t kv_heads = 0;       ///< key and value heads (GQA); = heads without
  std::int64_t head_dim = 0;       ///< hidden / heads unless given; of MLA: of queries and keys
  std::int64_t value_dim = 0;      ///< width of a value head; 0: head_dim
  std::int64_t ffn = 0;            ///< inner width of the MLP
  std::int64_t vocab = 0;          ///< V, without padding
  std::int64_t max_positions = 0;  ///< rows of the learned position table, or the longest sequence
  /// Positions of pre-training, where rotary positions were stretched afterwards; 0: max_positions.
  std::int64_t trained_positions = 0;
  MlpKind mlp = MlpKind::gelu;
  NormKind norm = NormKind::layer_norm;
  PositionKind position = PositionKind::learned;
  bool tied_embedding = true;  ///< output projection shares the input embedding
  bool attention_bias = true;  ///< QKV bias (output projection: attention_output_bias)
  bool attention_output_bias = true;
  bool mlp_bias = true;
  double dropout = 0;            ///< > 0: dropout kernels and masks after attention and MLP
  double attention_dropout = 0;  ///< > 0: dropout kernel and mask on the scores
  double embedding_dropout = 0;  ///< > 0: dropout kernel and mask on the layers' input

  std::int64_t experts = 0;  ///< E routed experts of a layer of kind experts; 0: a dense model
  std::int64_t top_k = 0;    ///< experts that each token goes to
  std::int64_t expert_groups = 1;  ///< of which a token's experts are in chosen_groups
  std::int64_t chosen_groups = 1;
  ExpertShape expert;
  LatentAttention latent;
  CompressedAttention compressed;
  Mamba mamba;
  /// Depths of multi-token prediction (DeepSeek-AI 2024, "DeepSeek-V3", section 2.2), each with
  /// layers of the kinds in `mtp_layout` (empty: one of the last layer's kind).
  std::int64_t mtp = 0;
  std::vector<int> mtp_layout;

  /// n > 1: the residual stream is n streams that hyper-connections mix around every branch (Xie et
  /// al. 2025, arXiv:2512.24880; stream_operators.cc).
  std::int64_t streams = 1;
  std::int64_t mixing_steps = 0;  ///< of Sinkhorn and Knopp, which balance the mixing matrix
  NormPlace norm_place = NormPlace::before;
  QueryKeyNorm query_key_norm = QueryKeyNorm::none;
  double rotary_share = 1;         ///< part of a head that is rotated
  bool parallel_residual = false;  ///< x + attention(norm(x)) + mlp(norm(x)): one sum
  bool shared_norm = false;        ///< with parallel_residual: both read the same norm
  bool sinks = false;              ///< one learned logit per head in each softmax
  bool head_bias = false;          ///< of the output projection
  bool embedding_norm = false;     ///< a norm on the embedding (BLOOM, BERT)
  bool final_norm = true;
  InputKind input = InputKind::tokens;
  HeadKind head = HeadKind::next_token;
  Patches patches;
  std::vector<std::int64_t> tables;   ///< rows of each table of InputKind::features
  std::int64_t pooling = 1;           ///< rows that one sample looks up in each table
  std::int64_t relative_buckets = 0;  ///< learned biases per head in each of two stacks (T5)
  bool norm_scale = true;             ///< false: norms without parameters
  std::int64_t token_types = 0;       ///< rows of a second table added to the embedding (BERT)
  std::int64_t extra_positions = 0;   ///< rows of the position table beyond max_positions (OPT: 2)

  /// Distinct layers; empty: one, LayerKind{}. Layer i is of kind layout[i % layout.size()]
  /// (empty: all of kind 0).
  std::vector<LayerKind> kinds;
  std::vector<int> layout;

  /// Attention's result is scaled, element by element, by sigmoid(H x (heads value_dim) matrix),
  /// which is part of the fused projection.
  bool attention_gate = false;
  SparseIndex index;  ///< of latent attention; chosen 0: none
  /// Width of the token table's rows, which are projected to H, and the last layer's result back to
  /// it before the logits (OPT-350M); 0: H.
  std::int64_t table_width = 0;
  bool layer_scale = false;           ///< branches' results times one parameter an element
  std::vector<Projector> projectors;  ///< of HeadKind::projected
  /// Makes tokens of images; null: the model is of text, or its file does not say. None of its
  /// parameters are among the model's own.
  std::shared_ptr<const Vision> vision;
};

/// Says what a processor makes of an image (image_tokens.h).
enum class ImageRule : std::uint8_t { whole, resized, pooled, rows, tiles, canvases };

/// An encoder of images in front of a model of text.
struct Vision {
  Model encoder;
  ImageRule rule = ImageRule::whole;
  std::int64_t side = 0;          ///< pixels of what is encoded, of a tile, or at most (rows)
  std::int64_t merge = 1;         ///< squares of so many patches a side become one token
  std::int64_t least_pixels = 0;  ///< of a resized image
  std::int64_t most_pixels = 0;
  std::int64_t most = 0;   ///< tokens of a whole or pooled image, tiles of a cut one
  std::int64_t marks = 0;  ///< tokens of text around an image
};

/// Returns the width of a head of queries and keys of these layers.
inline std::int64_t head_dim_of(const Model& model, const LayerKind& kind) {
  return kind.head_dim > 0 ? kind.head_dim : model.head_dim;
}
/// Returns the width of a head of values.
inline std::int64_t value_dim_of(const Model& model, const LayerKind& kind) {
  return kind.head_dim == 0 && model.value_dim > 0 ? model.value_dim : head_dim_of(model, kind);
}
/// Returns the number of key-value heads of these layers.
inline std::int64_t kv_heads_of(const Model& model, const LayerKind& kind) {
  return kind.kv_heads > 0 ? kind.kv_heads : model.kv_heads;
}

}  // namespace orrery::zoo
