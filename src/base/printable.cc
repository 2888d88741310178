// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <algorithm>

namespace orrery {

std::size_t utf8_length(std::string_view text) {
  const auto at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto tail = [&](std::size_t i) { return (at(i) & 0xC0U) == 0x80U; };
  const unsigned first = at(0);
  const unsigned second = at(1);
  if (first < 0x80) {
    return text.empty() ? 0 : 1;
  }
  if (first >= 0xC2 && first <= 0xDF) {
    return tail(1) ? 2 : 0;
  }
  if (first >= 0xE0 && first <= 0xEF) {
    const bool ok = !(first == 0xE0 && second < 0xA0) && !(first == 0xED && second > 0x9F);
    return ok && tail(1) && tail(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool ok = !(first == 0xF0 && second < 0x90) && !(first == 0xF4 && second > 0x8F);
    return ok && tail(1) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

std::string printable(std::string_view text, std::string_view kept) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    // Most of what there is to print, at once.
    const auto plain = std::ranges::find_if(text, [](char c) { return c < 0x20 || c > 0x7E; });
    if (plain != text.begin()) {
      shown.append(text.begin(), plain);
      text.remove_prefix(static_cast<std::size_t>(plain - text.begin()));
      continue;
    }
    const auto byte = static_cast<unsigned char>(text.front());
    const std::size_t length = utf8_length(text);
    const bool c1 = length == 2 && byte == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
    const bool control = byte < 0x20 || byte == 0x7F || c1;
    if (length > 0 && (!control || kept.find(text.front()) != std::string_view::npos)) {
      shown += text.substr(0, length);
      text.remove_prefix(length);
      continue;
    }
    if (byte == '\n') {
      shown += "\\n";
    } else {
      shown += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 0xFU]};
    }
    text.remove_prefix(1);
  }
  return shown;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) {
    return std::string(text);
  }
  std::size_t length = most;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) {
    --length;
  }
  return std::string(text.substr(0, length)) + "...";
}

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:=,+@%-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string text = "'";
  for (const char c : word) {
    text += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return text + "'";
}

}  // namespace orrery
