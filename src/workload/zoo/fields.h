// SPDX-License-Identifier: Apache-2.0
/// Reading the fields that many Hugging Face configurations share. Internal to this folder.
///
/// All take the field's name, report every mistake to the reader, and return a value that later
/// checks can leave out (0) after a mistake.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/reader.h"
#include "workload/zoo/model.h"

namespace orrery::zoo {

void ignore_all(Reader& read, std::span<const std::string_view> names);

/// Reads a whole number in [1, limit]; nullopt when the field is missing or null.
std::optional<std::int64_t> optional_extent(Reader& read, std::string_view name,
                                            std::int64_t limit);
/// Reads the same; missing is a mistake, unless there is a fallback.
std::int64_t extent(Reader& read, std::string_view name, std::int64_t limit,
                    std::optional<std::int64_t> fallback = {});
/// Reads a whole number in [0, limit]; missing or null: `fallback`.
std::int64_t count(Reader& read, std::string_view name, std::int64_t limit,
                   std::int64_t fallback = 0);
double probability(Reader& read, std::string_view name, double fallback);
/// Returns a share in (0, 1]. It is also found in the map `rope_parameters`, where newer files keep
/// it.
double rotary_share(Reader& read, std::string_view name, double fallback);
/// Returns the first class of `architectures`, a list or one text; empty where it names none.
std::string class_of(const ConfigNode& node);
/// Switches of what is not modelled.
void expect_false(Reader& read, std::string_view name);
void expect_all_false(Reader& read, std::span<const std::string_view> names);
void expect_true(Reader& read, std::string_view name);

/// Says whether a field that nobody reads cannot change sizes or times: false, 0, null, empty, a
/// name that never does (known_fields.h), or text, a switch or a map whose name speaks of no shape.
bool is_weightless(std::string_view name, const ConfigNode& node);
/// Fields that nobody asked for and that `harmless` accepts become notes of the model.
void note_unknown(Reader& read, Model& model,
                  bool (*harmless)(std::string_view name, const ConfigNode& node));
/// Reads `use_bidirectional_attention` or `is_causal: false`: every query sees every key (encoders
/// made of decoders, for embeddings). Call it last.
void read_direction(Reader& read, Model& model);

/// Reads the map in field `text_config` (or another) as a model of its own, read by `read_text`;
/// whatever else is beside it speaks of other parts, and is a note where it is unknown.
Model read_nested(Reader& read, Model (*read_text)(Reader&),
                  std::string_view field = "text_config");
/// Gives the model the encoder of images in the map `vision_config`, if there is one. Its
/// model_type is one of `types`, the first where it is not said; of another there is a note.
void add_vision(Reader& read, Model& model, std::initializer_list<std::string_view> types);

/// Returns the MLP that an activation's name stands for; `gated` ones multiply with a second
/// projection.
MlpKind mlp_of(Reader& read, std::string_view name, const std::string& fallback, bool gated);

/// Sets the layers, whose every member has a name; kinds of the same name are the same. Layers
/// beyond the list repeat it.
void set_layers(Model& model, const std::vector<LayerKind>& layers);

/// Sets the layers of one depth of multi-token prediction. Their kinds are among those of the
/// model, or are added to them.
void set_prediction(Model& model, const std::vector<LayerKind>& prediction);

/// Expects that `part` divides `whole`; not judged when one of them was a mistake already.
void expect_divides(Reader& read, std::string_view field, std::int64_t part, std::int64_t whole,
                    const std::string& whole_name);

/// Names of the fields to blame when a shape does not divide.
struct ShapeFields {
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view kv_heads = "num_key_value_heads";
};
/// Heads divide the hidden width (unless their width is given) and key-value heads divide heads.
void check_heads(Reader& read, const Model& model, const ShapeFields& names, bool head_dim_given);
/// Expects fewer parameters than kMaxParameters; call it last.
void check_size(Reader& read, const Model& model, std::string_view layers_field);

/// num_hidden_layers, hidden_size, num_attention_heads, num_key_value_heads, head_dim,
/// intermediate_size, vocab_size, max_position_embeddings and what goes with rotary positions,
/// RMSNorm and a gated MLP without biases; `ffn` names the field of its inner width, `activation`
/// that of its function.
struct DecoderDefaults {
  std::string_view ffn = "intermediate_size";
  std::string_view activation = "hidden_act";
  std::string function = "silu";
  bool gated = true;
  bool tied = false;
  /// Values of the fields that are missing (nullopt: a mistake; kv_heads: as heads; head_dim:
  /// hidden / heads).
  std::optional<std::int64_t> layers = {};
  std::optional<std::int64_t> hidden = {};
  std::optional<std::int64_t> width = {};  ///< of the MLP
  std::optional<std::int64_t> heads = {};
  std::optional<std::int64_t> kv_heads = {};
  std::optional<std::int64_t> head_dim = {};
  std::optional<std::int64_t> vocab = {};
  std::optional<std::int64_t> positions = {};
};
Model read_decoder(Reader& read, const DecoderDefaults& defaults = {});

/// Number of experts under the family's name for it, and how many a token goes to.
void read_routing(Reader& read, Model& model, std::string_view experts);
/// Reads n_group and topk_group, unless topk_method is greedy. Requires experts and top_k.
void read_expert_groups(Reader& read, Model& model);

/// Returns, per layer, what `layer_types` names (sliding_attention, full_attention,
/// chunked_attention, attention); empty without that field. A list of another length than layers is
/// a mistake.
std::vector<std::string> layer_types(Reader& read, const Model& model);
/// Gives layer i the window where `types[i]` is sliding_attention. A window of no less than the
/// positions is none.
void set_windows(Model& model, const std::vector<std::string>& types, std::int64_t window);

}  // namespace orrery::zoo
