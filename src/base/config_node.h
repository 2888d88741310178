// SPDX-License-Identifier: Apache-2.0
/// A parsed YAML or JSON document whose every value knows its file and line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace orrery {

struct ConfigField;

struct ConfigNode {
  enum class Kind : std::uint8_t { null, scalar, sequence, map };

  Kind kind = Kind::null;
  std::string text;     ///< the scalar's text, unquoted
  bool quoted = false;  ///< was written in quotes (a string, never a number or null)
  std::shared_ptr<const std::string> source;  ///< the file's name, shared by all its values
  int line = 0;                               ///< from 1
  std::string path;                 ///< dotted path from the document's root, "" at the root
  std::vector<ConfigField> fields;  ///< of a map, in file order
  std::vector<ConfigNode> items;    ///< of a sequence

  /// The file's name; empty when the node was not read from one.
  std::string file() const { return source ? *source : std::string(); }
  /// Returns the field's node, or nullptr.
  const ConfigNode* find(std::string_view name) const;
  /// Returns "file:line".
  std::string where() const;
  /// Returns how a message shows this value: the text, or "a map", "a list", "nothing".
  std::string shown() const;
};

/// A field is no std::pair: clang-16 rejects a pair of a type that holds a vector of that pair.
struct ConfigField {
  std::string name;
  ConfigNode value;
};

enum class ConfigSyntax : std::uint8_t { yaml, json };

/// Parses one document. JSON must be strict JSON, but for Infinity, -Infinity and NaN, which Python
/// writes and no reader of numbers accepts. Refused, each with its line: syntax errors,
/// duplicate keys, keys longer than 4 KiB, several documents, YAML anchors, aliases and tags,
/// nesting deeper than 64, values of over 20 times the text and 64 MiB, bytes that are not UTF-8.
Result<ConfigNode> parse_config(std::string_view text, const std::string& file,
                                ConfigSyntax syntax);

/// `.json`, or a brace first in standard input, means JSON, else YAML.
ConfigSyntax syntax_of(std::string_view text, const std::string& file);

/// Reads and parses a file.
Result<ConfigNode> load_config(const std::string& file);

}  // namespace orrery
