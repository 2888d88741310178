// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace orrery {

/// Returns a text with its letters A to Z small, in every locale.
inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) {
    letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  return lower;
}

}  // namespace orrery
