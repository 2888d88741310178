// SPDX-License-Identifier: Apache-2.0
/// Number formats are what kernels compute in, by the names of data types, of scalings and of other
/// tools.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "graph/operator.h"
#include "machine/compute/device.h"

namespace orrery::compute {

struct NumberFormat {
  std::string_view name;
  graph::DataType type = graph::DataType::bf16;
  bool block_scaled = false;  ///< fp8 by scales of blocks of K
  bool microscaling = false;  ///< by scales of 16 or 32 elements in the matrix units
};

/// The number formats beside the data types.
inline constexpr std::array kScaledFormats{
    NumberFormat{kBlockScaledFp8, graph::DataType::fp8, true, false},
    NumberFormat{"mxfp8", graph::DataType::fp8, true, true},
    NumberFormat{"nvfp4", graph::DataType::fp4, false, true}};

/// Returns "bf16" of "bfloat16"; other names as they are.
constexpr std::string_view usual_format_name(std::string_view name) {
  constexpr std::array<std::array<std::string_view, 2>, 4> kAliases{
      {{"bfloat16", "bf16"}, {"float16", "fp16"}, {"half", "fp16"}, {"float32", "fp32"}}};
  for (const auto& [alias, usual] : kAliases) {
    if (name == alias) {
      return usual;
    }
  }
  return name;
}

/// Returns the format of that name; nothing if none has it.
inline std::optional<NumberFormat> number_format(std::string_view name) {
  name = usual_format_name(name);
  if (const auto type = value_of<graph::DataType>(name)) {
    return NumberFormat{name_of(*type), *type};
  }
  const auto* const found =
      std::find_if(kScaledFormats.begin(), kScaledFormats.end(),
                   [&](const NumberFormat& format) { return format.name == name; });
  return found == kScaledFormats.end() ? std::nullopt : std::optional(*found);
}

}  // namespace orrery::compute
