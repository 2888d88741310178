// SPDX-License-Identifier: Apache-2.0
/// Flags of inference engines' launch lines as tables: a field each, or what they are without one.
/// Internal to this folder.
/// Source: vLLM 0.19, SGLang 0.5 and TensorRT-LLM 1.0 (recalled).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace orrery::serving {

enum class FlagKind : std::uint8_t { value, yes, no };

/// A flag that states one field. A switch (yes, no) takes no value: --NAME sets it to true or
/// false, --no-NAME to the other.
struct Flag {
  std::string_view framework;
  std::string_view name;  ///< with dashes
  std::string_view section;
  std::string_view field;
  FlagKind kind = FlagKind::value;

  bool is_switch() const { return kind != FlagKind::value; }
};
std::span<const Flag> engine_flags();

/// Returns why a flag that changes what a server does is left out; empty: it has none of that.
std::string_view left_out_because(std::string_view name);

/// Says whether a flag changes neither time nor memory of a run: addresses, names, logs, templates.
bool is_weightless(std::string_view name);

}  // namespace orrery::serving
