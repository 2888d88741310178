// SPDX-License-Identifier: Apache-2.0
#include "base/config_node.h"

#include <algorithm>

#include "base/config_tree.h"
#include "base/file.h"
#include "base/printable.h"

namespace orrery {
namespace {

constexpr std::size_t kShownBytes = 60;
constexpr std::size_t kLargestFile = std::size_t{64} << 20;

/// Bytes of the character that starts `rest`; 0 when it is no text: a control character other than
/// tab and line ends, or not UTF-8.
std::size_t character_length(std::string_view rest) {
  const char first = rest[0];
  const bool blank = first == '\n' || first == '\r' || first == '\t';
  return blank || (static_cast<unsigned char>(first) >= 0x20 && first != 0x7F) ? utf8_length(rest)
                                                                               : 0;
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
  return file() + ":" + std::to_string(line);
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
  return shortened(text, kShownBytes);
}

Result<ConfigNode> parse_config(std::string_view text, const std::string& file,
                                ConfigSyntax syntax) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  if (const int line = first_line_not_text(text); line > 0) {
    return fail(Error(Mistake{file + ":" + std::to_string(line),
                              {},
                              {},
                              "expected UTF-8 text; this is not a text file"}));
  }
  return syntax == ConfigSyntax::json ? parse_json(text, file) : parse_yaml(text, file);
}

ConfigSyntax syntax_of(std::string_view text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool json =
      file == "-" ? first != std::string::npos && text[first] == '{' : file.ends_with(".json");
  return json ? ConfigSyntax::json : ConfigSyntax::yaml;
}

Result<ConfigNode> load_config(const std::string& file) {
  return read_file(file, kLargestFile).and_then([&](const std::string& text) {
    return parse_config(text, file, syntax_of(text, file));
  });
}

}  // namespace orrery
