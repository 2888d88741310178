// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

namespace orrery {
namespace {

/// Without control characters: a file must not send sequences to the terminal or fake further
/// lines.
std::string printable(const std::string& text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == '\n') {
      shown += "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      shown += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 0xFU]};
    } else {
      shown += c;
    }
  }
  return shown;
}

std::string line_of(const Mistake& mistake) {
  std::string line;
  for (const std::string* part : {&mistake.where, &mistake.field}) {
    if (!part->empty()) {
      line += *part + ": ";
    }
  }
  if (mistake.found.empty()) {
    return line + mistake.expected;
  }
  line += "found '" + mistake.found + "'";
  return mistake.expected.empty() ? line : line + ", expected " + mistake.expected;
}

}  // namespace

std::string Error::to_string() const {
  std::string text;
  for (const Mistake& mistake : mistakes) {
    text += (text.empty() ? "" : "\n") + printable(line_of(mistake));
  }
  return text;
}

}  // namespace orrery
