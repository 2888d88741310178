// SPDX-License-Identifier: Apache-2.0
/// Gemma 1 to 3: GeLU-gated MLP, tied embedding, heads of a width of their own.
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
  return read_nested(read, read_gemma3_text);
}

}  // namespace orrery::zoo
