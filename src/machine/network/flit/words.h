// SPDX-License-Identifier: Apache-2.0
/// Descriptions and files are words between separators.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace orrery::flit {

/// Returns the parts of a text between any of the separators, empty ones left out. The text must
/// outlive it.
inline std::vector<std::string_view> words_of(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) {
      words.push_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace orrery::flit
