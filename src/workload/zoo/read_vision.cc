// SPDX-License-Identifier: Apache-2.0
/// Encoders of images beside a text part. Sizes of images are those of the released
/// preprocessor_config.json.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workload/zoo/fields.h"
#include "workload/zoo/known_fields.h"

namespace orrery::zoo {
namespace {

constexpr std::int64_t kMostSide = kMaxHidden / 1024;  // pixels

/// Says where an encoder's fields are, and whose stream its projectors write to.
struct VisionFields {
  Reader& own;    ///< `vision_config`
  Reader& whole;  ///< the file
  const Model& text;
};

/// A number of pixels, which some files give for both sides.
std::int64_t read_side(Reader& read, std::string_view name, std::optional<std::int64_t> missing) {
  const ConfigNode* node = read.node().find(name);
  if (node == nullptr || node->items.empty()) {
    return extent(read, name, kMostSide, missing);
  }
  const auto sides = read.list<std::int64_t>(name);
  const std::int64_t side = sides.front();
  const bool square = std::ranges::all_of(sides, [&](std::int64_t one) { return one == side; });
  if (!square || side < 1 || side > kMostSide) {
    read.reject(name, "sides of one length");
    return 0;
  }
  return side;
}

/// Reads the side of what is encoded, which holds at least a square of patches.
void read_image_size(Reader& read, Vision& vision, std::int64_t missing) {
  vision.side = read_side(read, "image_size", missing);
  const std::int64_t least = vision.merge * vision.encoder.patches.side;
  read.require(vision.side == 0 || vision.side >= least, "image_size",
               "at least " + std::to_string(least) + " pixels, a square of patches");
}

/// The names of an encoder's extents, and what they are where they are missing (0: a mistake).
struct TowerFields {
  std::string_view layers = "num_hidden_layers";
  std::string_view hidden = "hidden_size";
  std::string_view heads = "num_attention_heads";
  std::string_view channels = "num_channels";
  std::array<std::int64_t, 4> missing{};  ///< layers, hidden, heads, pixels of a patch's side
};

/// Bidirectional layers over patches, with biases and LayerNorm; the MLP is its caller's.
Model read_tower_layers(Reader& read, const TowerFields& names) {
  const auto fallback = [&](std::size_t i) {
    return names.missing[i] > 0 ? std::optional(names.missing[i]) : std::nullopt;
  };
  Model m;
  m.name = "vision encoder";
  m.layers = extent(read, names.layers, kMaxLayers, fallback(0));
  m.hidden = extent(read, names.hidden, kMaxHidden, fallback(1));
  m.heads = m.kv_heads = extent(read, names.heads, kMaxHidden, fallback(2));
  m.head_dim = m.heads > 0 ? m.hidden / m.heads : 0;
  m.patches.side = read_side(read, "patch_size", fallback(3));
  m.patches.channels = extent(read, names.channels, kMostSide, 3);
  m.patches.class_token = false;
  m.input = InputKind::patches;
  m.head = HeadKind::projected;
  m.position = PositionKind::none;
  m.max_positions = m.vocab = 1;
  m.kinds = {{.name = "encoder", .causal = false}};
  expect_divides(read, names.heads, m.heads, m.hidden, "hidden size");
  return m;
}

std::int64_t read_tower_width(Reader& read, std::int64_t missing = 0) {
  return extent(read, "intermediate_size", 8 * kMaxHidden,
                missing > 0 ? std::optional(missing) : std::nullopt);
}

/// (side / p)^2 patches.
std::int64_t squares_of(const Vision& vision) {
  const std::int64_t across = vision.side / std::max<std::int64_t>(1, vision.encoder.patches.side);
  return across * across;
}

/// The encoder and merging of Qwen's models, whose squares are normed and go through two matrices
/// of their own width and the text's. `missing`: of the class of its configuration.
Vision read_qwen(const VisionFields& fields, std::string_view hidden, std::string_view out,
                 const std::array<std::int64_t, 4>& missing) {
  Vision vision;
  vision.encoder = read_tower_layers(
      fields.own, {.layers = "depth",
                   .hidden = hidden,
                   .heads = "num_heads",
                   .channels = fields.own.node().find("in_chans") ? "in_chans" : "in_channels",
                   .missing = missing});
  Model& m = vision.encoder;
  m.final_norm = false;
  m.patches.bias = false;
  m.patches.frames = extent(fields.own, "temporal_patch_size", kMostSide, 2);
  m.position = PositionKind::rotary;
  vision.rule = ImageRule::resized;
  vision.merge = extent(fields.own, "spatial_merge_size", kMostSide, 2);
  vision.least_pixels = 3136;  // 56 x 56
  vision.most_pixels = 12'845'056;
  vision.marks = 2;  // <|vision_start|>, <|vision_end|>
  const std::int64_t merged = m.hidden * vision.merge * vision.merge;
  const std::int64_t width = extent(fields.own, out, kMaxHidden, fields.text.hidden);
  fields.own.require(width == fields.text.hidden, out,
                     "the text's hidden size, " + std::to_string(fields.text.hidden));
  m.projectors = {{.widths = {merged, merged, width}}};
  return vision;
}

/// Qwen2-VL (Wang et al. 2024): LayerNorm, GeLU; positions rotate queries and keys.
Vision read_qwen2_vision(const VisionFields& fields) {
  Vision vision = read_qwen(fields, "embed_dim", "hidden_size", {32, 1280, 16, 14});
  Model& m = vision.encoder;
  m.ffn = m.hidden * extent(fields.own, "mlp_ratio", kMostSide, 4);
  fields.own.ignore("spatial_patch_size");
  m.projectors.front().norm = 2 * m.hidden;
  return vision;
}

/// Qwen2.5-VL (Bai et al. 2025): RMSNorm, SwiGLU with biases; all but a few layers attend within
/// windows, squares of patches.
Vision read_qwen25_vision(const VisionFields& fields) {
  Reader& read = fields.own;
  Vision vision = read_qwen(fields, "hidden_size", "out_hidden_size", {32, 3584, 16, 14});
  Model& m = vision.encoder;
  m.norm = NormKind::rms_norm;
  m.ffn = read_tower_width(read, 3420);
  m.mlp = mlp_of(read, "hidden_act", "silu", true);
  m.projectors.front().norm = m.hidden;
  const std::int64_t across =
      extent(read, "window_size", kMostSide, 112) / std::max<std::int64_t>(1, m.patches.side);
  const auto whole = read.list<std::int64_t>("fullatt_block_indexes", true);
  std::vector<LayerKind> layers;
  for (std::int64_t i = 0; i < m.layers; ++i) {
    const bool full = std::ranges::find(whole, i) != whole.end();
    layers.push_back(full
                         ? LayerKind{.name = "full", .causal = false}
                         : LayerKind{.name = "window", .window = across * across, .causal = false});
  }
  set_layers(m, layers);
  return vision;
}

/// Qwen3-VL (Qwen 2025) and Qwen3.5: a table of positions beside rotary ones; results of layers
/// inside are merged for the text's first layers, too (DeepStack), each with matrices of its own,
/// whose norm is over a merged square.
Vision read_qwen3_vision(const VisionFields& fields) {
  Reader& read = fields.own;
  Vision vision = read_qwen(fields, "hidden_size", "out_hidden_size", {27, 1152, 16, 16});
  Model& m = vision.encoder;
  m.ffn = read_tower_width(read, 4304);
  m.mlp = mlp_of(read, "hidden_act", "gelu_pytorch_tanh", false);
  m.patches.bias = true;
  m.patches.positions = extent(read, "num_position_embeddings", kMaxPositions, 2304);
  m.projectors.front().norm = 2 * m.hidden;
  vision.least_pixels = 65'536;
  vision.most_pixels = 16'777'216;
  const auto deep = read.list<std::int64_t>("deepstack_visual_indexes");
  if (!deep.empty()) {
    Projector inner = m.projectors.front();
    inner.norm = 2 * inner.widths.front();
    inner.copies = static_cast<std::int64_t>(deep.size());
    m.projectors.push_back(inner);
  }
  return vision;
}

/// SigLIP (Zhai et al. 2023), pooled and normed to mm_tokens_per_image tokens (Gemma 3). Begin and
/// end of an image stand between two breaks of paragraphs.
Vision read_gemma3_vision(const VisionFields& fields) {
  Reader& read = fields.own;
  Vision vision;
  vision.encoder =
      read_tower_layers(read, {.missing = {12, 768, 12, 16}});  // of SiglipVisionConfig
  Model& m = vision.encoder;
  m.ffn = read_tower_width(read, 3072);
  m.mlp = mlp_of(read, "hidden_act", "gelu_pytorch_tanh", false);
  read.ignore("vision_use_head");
  read_image_size(read, vision, 896);
  vision.most = extent(fields.whole, "mm_tokens_per_image", kMaxPositions, 256);
  vision.marks = 4;
  m.patches.positions = squares_of(vision);
  m.projectors = {{.widths = {m.hidden, fields.text.hidden}, .norm = m.hidden, .bias = false}};
  return vision;
}

/// Gemma 4 (Google 2026): norms around, GeLU-gated MLP, a table of positions for each direction
/// beside rotary ones.
Vision read_gemma4_vision(const VisionFields& fields) {
  Reader& read = fields.own;
  Vision vision;
  vision.encoder =
      read_tower_layers(read, {.missing = {16, 768, 12, 16}});  // of Gemma4VisionConfig
  Model& m = vision.encoder;
  m.ffn = read_tower_width(read, 3072);
  m.mlp = mlp_of(read, "hidden_activation", "gelu_pytorch_tanh", true);
  m.kv_heads = extent(read, "num_key_value_heads", kMaxHidden, m.heads);
  m.head_dim = extent(read, "head_dim", kMaxHidden, m.head_dim);
  m.norm = NormKind::rms_norm;
  m.norm_place = NormPlace::around;
  m.query_key_norm = QueryKeyNorm::values;
  m.position = PositionKind::rotary;
  m.attention_bias = m.attention_output_bias = m.mlp_bias = m.final_norm = m.patches.bias = false;
  m.patches.positions = 2 * extent(read, "position_embedding_size", kMaxPositions, 10'240);
  vision.rule = ImageRule::pooled;
  vision.merge = extent(read, "pooling_kernel_size", kMostSide, 3);
  vision.most = extent(read, "default_output_length", kMaxPositions, 280);
  vision.marks = 2;
  const bool standardized = read.optional("standardize", false);  // a mean and a scale an element
  m.projectors = {{.widths = {m.hidden, fields.text.hidden},
                   .norm = standardized ? 2 * m.hidden : 0,
                   .bias = false}};
  return vision;
}

/// Llama 4 (Meta 2025): a class token, a table of positions beside rotary ones, a norm before and
/// behind the layers; squares of patches go through two matrices without biases and a third.
Vision read_llama4_vision(const VisionFields& fields) {
  Reader& read = fields.own;
  Vision vision;
  vision.encoder =
      read_tower_layers(read, {.missing = {34, 1408, 16, 14}});  // of Llama4VisionConfig
  Model& m = vision.encoder;
  m.ffn = read_tower_width(read, 5632);
  m.mlp = mlp_of(read, "hidden_act", "gelu", false);
  m.position = PositionKind::rotary;
  m.embedding_norm = true;
  m.patches.bias = false;
  m.patches.class_token = true;
  vision.rule = ImageRule::canvases;
  vision.merge = 2;
  read_image_size(read, vision, 336);
  vision.most = 16;
  vision.marks = 3;  // <|image_start|>, <|image|>, <|image_end|>
  const double shuffled = read.optional("pixel_shuffle_ratio", 0.5);
  read.require(shuffled == 0.5, "pixel_shuffle_ratio", "0.5: squares of two patches a side");
  m.patches.positions = squares_of(vision) + 1;
  const std::int64_t input = extent(read, "projector_input_dim", kMaxHidden, 4096);
  const std::int64_t output = extent(read, "projector_output_dim", kMaxHidden, 4096);
  for (const char* of_both : {"vision_output_dim", "multi_modal_projector_bias",
                              "vision_feature_layer", "vision_feature_select_strategy"}) {
    read.ignore(of_both);
  }
  m.projectors = {{.widths = {m.hidden * 4, input, output, fields.text.hidden}, .bias = false}};
  return vision;
}

/// InternViT (Chen et al. 2023): a class token, results of branches scaled, squares normed as they
/// lie side by side.
Vision read_intern_vision(const VisionFields& fields) {
  Reader& read = fields.own;
  Vision vision;
  vision.encoder =
      read_tower_layers(read, {.missing = {24, 1024, 16, 14}});  // of InternVLVisionConfig
  Model& m = vision.encoder;
  m.ffn = read_tower_width(read, 4096);
  m.mlp = mlp_of(read, "hidden_act", "gelu", false);
  const bool newer = read.node().find("attention_bias") != nullptr;
  m.attention_bias = read.optional(newer ? "attention_bias" : "qkv_bias", true);
  const bool normed =
      read.optional("qk_normalization", false) || read.optional("use_qk_norm", false);
  m.query_key_norm = normed ? QueryKeyNorm::whole : QueryKeyNorm::none;
  m.norm = read.optional("norm_type", std::string("layer_norm")) == "rms_norm"
               ? NormKind::rms_norm
               : NormKind::layer_norm;
  m.layer_scale = true;
  m.final_norm = false;
  m.patches.class_token = true;
  const double shuffled = fields.whole.optional("downsample_ratio", 0.5);
  fields.whole.require(shuffled == 0.5, "downsample_ratio", "0.5: squares of two patches a side");
  vision.rule = ImageRule::tiles;
  vision.merge = 2;
  read_image_size(read, vision, 448);
  vision.most = extent(fields.whole, "max_dynamic_patch", kMostSide, 12);
  vision.marks = 2;  // <img>, </img>
  m.patches.positions = squares_of(vision) + 1;
  const std::int64_t merged = 4 * m.hidden;
  m.projectors = {{.widths = {merged, fields.text.hidden, fields.text.hidden}, .norm = 2 * merged}};
  return vision;
}

/// CLIP (Radford et al. 2021) of LLaVA 1.5: a class token, a norm before and behind the layers.
Vision read_clip_vision(const VisionFields& fields) {
  Reader& read = fields.own;
  Vision vision;
  vision.encoder = read_tower_layers(read, {.missing = {12, 768, 12, 32}});  // of CLIPVisionConfig
  Model& m = vision.encoder;
  m.ffn = read_tower_width(read, 3072);
  m.mlp = mlp_of(read, "hidden_act", "quick_gelu", false);
  m.embedding_norm = true;
  m.patches.bias = false;
  m.patches.class_token = true;
  read_image_size(read, vision, 224);
  vision.most = squares_of(vision);
  m.patches.positions = squares_of(vision) + 1;
  m.projectors = {{.widths = {m.hidden, fields.text.hidden, fields.text.hidden},
                   .bias = fields.whole.optional("multimodal_projector_bias", true)}};
  return vision;
}

/// Pixtral (Agrawal et al. 2024): Llama's layers, RMSNorm before them. Mistral Small merges squares
/// of patches by a matrix.
Vision read_pixtral_vision(const VisionFields& fields) {
  Reader& read = fields.own;
  Vision vision;
  vision.encoder =
      read_tower_layers(read, {.missing = {24, 1024, 16, 16}});  // of PixtralVisionConfig
  Model& m = vision.encoder;
  m.ffn = read_tower_width(read, 4096);
  m.mlp = mlp_of(read, "hidden_act", "silu", true);
  m.head_dim = extent(read, "head_dim", kMaxHidden, m.head_dim);
  m.norm = NormKind::rms_norm;
  m.position = PositionKind::rotary;
  m.embedding_norm = true;
  m.attention_bias = m.attention_output_bias = m.mlp_bias = m.final_norm = m.patches.bias = false;
  vision.rule = ImageRule::rows;
  const auto merge = optional_extent(fields.whole, "spatial_merge_size", kMostSide);
  vision.merge = merge.value_or(1);
  read_image_size(read, vision, 1024);
  const std::int64_t text = fields.text.hidden;
  Projector projector{.widths = {m.hidden, text, text},
                      .bias = fields.whole.optional("multimodal_projector_bias", !merge)};
  if (merge) {
    projector.norm = m.hidden;
    projector.widths.insert(projector.widths.begin(), m.hidden * *merge * *merge);
  }
  m.projectors = {projector};
  return vision;
}

struct EncoderRow {
  std::string_view model_type;
  Vision (*read)(const VisionFields& fields);
};
constexpr auto kEncoders = std::to_array<EncoderRow>({
    {"qwen2_vl", read_qwen2_vision},
    {"qwen2_5_vl", read_qwen25_vision},
    {"qwen3_vl", read_qwen3_vision},
    {"qwen3_vl_moe", read_qwen3_vision},
    {"qwen3_5", read_qwen3_vision},
    {"qwen3_5_moe", read_qwen3_vision},
    {"siglip_vision_model", read_gemma3_vision},
    {"gemma4_vision", read_gemma4_vision},
    {"llama4_vision_model", read_llama4_vision},
    {"internvl_vision", read_intern_vision},
    {"intern_vit_6b", read_intern_vision},
    {"clip_vision_model", read_clip_vision},
    {"pixtral", read_pixtral_vision},
});

}  // namespace

void add_vision(Reader& read, Model& model, std::initializer_list<std::string_view> types) {
  const ConfigNode* node = read.child("vision_config", false);
  if (node == nullptr || node->kind == ConfigNode::Kind::null) {
    return;
  }
  Reader own(*node);
  const std::string usual(types.size() > 0 ? *types.begin() : "");
  const std::string type = own.optional("model_type", usual);
  if (std::ranges::find(types, type) == types.end()) {
    model.notes.push_back(node->where() + ": vision_config: an encoder of model_type '" + type +
                          "' is not read: the model takes no images");
    return;
  }
  ignore_all(own, kIgnored);
  Vision vision = std::ranges::find(kEncoders, type, &EncoderRow::model_type)
                      ->read({.own = own, .whole = read, .text = model});
  own.pass_unknown([](std::string_view, const ConfigNode&) { return true; });
  vision = read.absorb(own.finish(std::move(vision)));
  model.vision = std::make_shared<const Vision>(std::move(vision));
}

}  // namespace orrery::zoo
