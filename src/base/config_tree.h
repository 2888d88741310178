// SPDX-License-Identifier: Apache-2.0
/// Builds a ConfigNode from the events of a parser, whatever its syntax. Private to base.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"

namespace orrery {

/// Deeper nesting than this is no configuration; it would exhaust the stack of whoever walks it.
inline constexpr std::size_t kDeepestConfig = 64;

/// The values of a file may take kConfigFactor times its bytes, but always kLeastConfigMemory, and
/// never more than kMostConfigMemory, which --big allows any file. A file of 10 MB so takes less
/// than 150 MB in all.
inline constexpr std::size_t kConfigFactor = 11;
inline constexpr std::size_t kLeastConfigMemory = std::size_t{64} << 20;
inline constexpr std::size_t kMostConfigMemory = std::size_t{2} << 30;

/// Requires events in document order: in a map a key before each value, a close for every open.
class ConfigTree {
 public:
  /// `text_size`: bytes of the text whose events follow.
  ConfigTree(std::string file, std::size_t text_size);

  /// The next event is a key of the innermost open map.
  bool wants_key() const;
  void key(std::string name, int line);
  /// Adds a null or scalar. Returns false, and adds nothing, beyond the memory that a file may
  /// take.
  [[nodiscard]] bool value(ConfigNode::Kind kind, std::string text, bool quoted, int line);
  /// Opens a map or sequence; `size`: how many it will hold, 0 if that is not known. Returns false,
  /// and opens nothing, when it would be nested too deeply or beyond the memory that a file may
  /// take.
  [[nodiscard]] bool open(ConfigNode::Kind kind, int line, std::size_t size = 0);
  void close();

  /// The document's root once everything is closed, or the duplicate keys.
  Result<ConfigNode> take();
  /// Returns why value() or open() gave false.
  Mistake too_large(int line) const;

 private:
  struct Level {
    ConfigNode node;
    std::string key;
    int key_line = 0;
    bool has_key = false;
    std::vector<int> key_lines;  ///< of the fields
  };

  ConfigNode make(ConfigNode::Kind kind, int line) const;
  std::string path_of_next() const;
  std::size_t slots_for_next() const;
  std::size_t bytes_beside(const ConfigNode& node) const;
  bool charge(std::size_t bytes);
  void add(ConfigNode node);
  void refuse_repeated(Level& level);

  std::shared_ptr<const std::string> file_;
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;  ///< that the values so far take
  bool too_deep_ = false;
  ConfigNode root_;
  Error error_;
  std::vector<Level> levels_;
};

/// Parse the two syntaxes. They require text of one document without control characters, in valid
/// UTF-8.
Result<ConfigNode> parse_yaml(std::string_view text, const std::string& file);
Result<ConfigNode> parse_json(std::string_view text, const std::string& file);

}  // namespace orrery
