// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/model_field.h"

#include <array>
#include <string_view>

namespace orrery::sweep {
namespace {

constexpr std::string_view kModelPrefix = "model.";

/// A field of a model under the name that it has in some families of config.json.
struct FamilyName {
  std::string_view name;
  std::string_view own;
};
constexpr auto kFamilyNames = std::to_array<FamilyName>({
    {"layers", "num_hidden_layers"},
    {"layers", "n_layer"},
    {"layers", "num_layers"},
    {"hidden", "hidden_size"},
    {"hidden", "n_embd"},
    {"hidden", "d_model"},
    {"heads", "num_attention_heads"},
    {"heads", "n_head"},
    {"heads", "num_heads"},
    {"kv_heads", "num_key_value_heads"},
    {"kv_heads", "num_kv_heads"},
    {"ffn", "intermediate_size"},
    {"ffn", "n_inner"},
    {"ffn", "ffn_dim"},
    {"ffn", "d_ff"},
    {"vocab", "vocab_size"},
    {"positions", "max_position_embeddings"},
    {"positions", "n_positions"},
});

}  // namespace

std::string own_model_field(const ConfigNode& description, const std::string& path) {
  const ConfigNode* model = description.find("model");
  if (!path.starts_with(kModelPrefix) || model == nullptr) {
    return path;
  }
  const std::string_view name = std::string_view(path).substr(kModelPrefix.size());
  for (const FamilyName& family : kFamilyNames) {
    if (family.name == name && model->find(family.own) != nullptr) {
      return std::string(kModelPrefix) + std::string(family.own);
    }
  }
  return path;
}

}  // namespace orrery::sweep
