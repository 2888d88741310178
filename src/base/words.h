// SPDX-License-Identifier: Apache-2.0
/// Texts are words between separators, and blanks around them say nothing.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

inline constexpr std::string_view kBlanks = " \t\n\v\f\r";

/// Returns the parts of a text between any of the separators, empty ones left out. The text must
/// outlive them, unless Word is std::string.
template <class Word = std::string_view>
std::vector<Word> words_of(std::string_view text, std::string_view separators = kBlanks) {
  std::vector<Word> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) {
      words.emplace_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

/// Returns the text without the blanks before and after it.
inline std::string_view trimmed(std::string_view text, std::string_view blanks = kBlanks) {
  const std::size_t first = std::min(text.find_first_not_of(blanks), text.size());
  return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

}  // namespace orrery
