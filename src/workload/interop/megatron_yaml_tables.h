// SPDX-License-Identifier: Apache-2.0
/// Names that configurations in YAML have for Megatron-LM's flags. Internal to this folder.
/// Source: NeMo 2.x, megatron_gpt_config.yaml and dumped recipes; Megatron-Bridge 0.3,
/// ConfigContainer; Primus, modules.pre_trainer.overrides.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace orrery::interop {

enum class YamlValue : std::uint8_t {
  same,      ///< the flag with this value; a switch where it is true
  inverted,  ///< a switch where it is false
  fixed,     ///< where it is true, the words of `flag`
};

struct YamlKey {
  std::string_view name;  ///< the last part of the path
  std::string_view flag;  ///< "--swiglu", or several words
  YamlValue value = YamlValue::same;
};
std::span<const YamlKey> yaml_keys();

/// Sections and keys without weight for time and memory.
bool is_weightless_key(std::string_view path);

}  // namespace orrery::interop
