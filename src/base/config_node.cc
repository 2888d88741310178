// SPDX-License-Identifier: Apache-2.0
#include "base/config_node.h"

#include <algorithm>

#include "base/config_tree.h"
#include "base/file.h"

namespace orrery {
namespace {

constexpr std::size_t kShownBytes = 60;
constexpr std::size_t kLargestFile = std::size_t{64} << 20;

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// Bytes of the character that starts `rest`; 0 when it is no text: a control character other than
/// tab and line ends, or not UTF-8 (RFC 3629: no overlong forms, surrogates or beyond U+10FFFF).
std::size_t character_length(std::string_view rest) {
  const auto first = static_cast<unsigned char>(rest[0]);
  if (first < 0x80) {
    return (first >= 0x20 && first != 0x7F) || first == '\n' || first == '\r' || first == '\t';
  }
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || rest.size() < length ||
      !std::all_of(rest.begin() + 1, rest.begin() + static_cast<std::ptrdiff_t>(length),
                   is_continuation)) {
    return 0;
  }
  const auto second = static_cast<unsigned char>(rest[1]);
  const bool wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                     (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return wrong ? 0 : length;
}

/// Line of the first byte that is not text; 0 when all is well.
int first_line_not_text(std::string_view text) {
  int line = 1;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0) {
      return line;
    }
    line += text[0] == '\n' ? 1 : 0;
    text.remove_prefix(length);
  }
  return 0;
}

}  // namespace

const ConfigNode* ConfigNode::find(std::string_view name) const {
  const auto field = std::find_if(fields.begin(), fields.end(),
                                  [&](const auto& entry) { return entry.name == name; });
  return field == fields.end() ? nullptr : &field->value;
}

std::string ConfigNode::where() const {
  return file + ":" + std::to_string(line);
}

std::string ConfigNode::shown() const {
  switch (kind) {
    case Kind::null:
      return "nothing";
    case Kind::sequence:
      return "a list";
    case Kind::map:
      return "a map";
    case Kind::scalar:
      break;
  }
  if (text.empty()) {
    return "an empty text";
  }
  if (text.size() <= kShownBytes) {
    return text;
  }
  std::size_t length = kShownBytes;
  while (length > 0 && is_continuation(text[length])) {
    --length;
  }
  return text.substr(0, length) + "...";
}

Result<ConfigNode> parse_config(std::string_view text, const std::string& file,
                                ConfigSyntax syntax) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  if (const int line = first_line_not_text(text); line > 0) {
    return fail(Error(
        Mistake{file + ":" + std::to_string(line), {}, {}, "UTF-8 text; this is not a text file"}));
  }
  return syntax == ConfigSyntax::json ? parse_json(text, file) : parse_yaml(text, file);
}

Result<ConfigNode> load_config(const std::string& file) {
  auto text = read_file(file, kLargestFile);
  if (!text) {
    return fail(std::move(text.error()));
  }
  return parse_config(*text, file,
                      file.ends_with(".json") ? ConfigSyntax::json : ConfigSyntax::yaml);
}

}  // namespace orrery
