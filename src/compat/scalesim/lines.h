// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/split.h"

namespace orrery::scalesim {

inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const auto first = text.find_first_not_of(kSpace);
  return first == std::string_view::npos
             ? std::string_view()
             : text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// Trimmed parts between separators; one more than there are separators.
inline std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts = split_at(text, separator);
  std::ranges::transform(parts, parts.begin(), trimmed);
  return parts;
}

}  // namespace orrery::scalesim
