// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// Returns the parts of a text between separators; one more than there are separators, so that of
/// an empty text there is one. The text must outlive them.
inline std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}
/// A temporary would not outlive them.
std::vector<std::string_view> split_at(std::string&& text, char separator) = delete;

}  // namespace orrery
