// SPDX-License-Identifier: Apache-2.0
/// Builds a ConfigNode from the events of a parser, whatever its syntax. Private to base.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"

namespace orrery {

/// Deeper nesting than this is no configuration; it would exhaust the stack of whoever walks it.
inline constexpr std::size_t kDeepestConfig = 64;

/// A value takes some 150 bytes, whatever it says: a file of 10 MB can hold five million.
inline constexpr std::size_t kMostValues = 2'000'000;

/// Requires events in document order: in a map a key before each value, a close for every open.
class ConfigTree {
 public:
  explicit ConfigTree(std::string file)
      : file_(std::make_shared<const std::string>(std::move(file))) {}

  /// The next event is a key of the innermost open map.
  bool wants_key() const;
  void key(std::string name, int line);
  /// A null or scalar. False, and nothing is added, beyond the most values.
  [[nodiscard]] bool value(ConfigNode::Kind kind, std::string text, bool quoted, int line);
  /// A map or sequence. False, and nothing is opened, when it would be nested too deeply or beyond
  /// the most values.
  [[nodiscard]] bool open(ConfigNode::Kind kind, int line);
  void close();

  /// The document's root once everything is closed, or the duplicate keys.
  Result<ConfigNode> take();
  /// Why value() or open() gave false.
  Mistake too_large(int line) const;

 private:
  struct Level {
    ConfigNode node;
    std::string key;
    int key_line = 0;
    bool has_key = false;
    std::set<std::string, std::less<>> keys;  ///< find() in a map of many fields would be quadratic
  };

  ConfigNode make(ConfigNode::Kind kind, int line) const;
  void add(ConfigNode node);

  std::shared_ptr<const std::string> file_;
  std::size_t values_ = 0;
  ConfigNode root_;
  Error error_;
  std::vector<Level> levels_;
};

/// The two syntaxes. Require text of one document without control characters, in valid UTF-8.
Result<ConfigNode> parse_yaml(std::string_view text, const std::string& file);
Result<ConfigNode> parse_json(std::string_view text, const std::string& file);

}  // namespace orrery
