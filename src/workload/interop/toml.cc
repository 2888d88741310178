// SPDX-License-Identifier: Apache-2.0
#include "workload/interop/toml.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/lists.h"
#include "base/reader.h"

namespace orrery::interop {
namespace {

using Kind = ConfigNode::Kind;
constexpr int kDeepest = 32;

class TomlParser {
 public:
  TomlParser(std::string_view text, const std::string& file)
      : text_(text), source_(std::make_shared<const std::string>(file)) {
    root_ = node(Kind::map);
    table_ = {};
  }

  Result<ConfigNode> run() {
    while (at_ < text_.size()) {
      skip_blank(true);
      if (at_ < text_.size()) {
        statement();
      }
    }
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    return std::move(root_);
  }

 private:
  using Path = std::vector<std::string>;

  ConfigNode node(Kind kind) const {
    ConfigNode made;
    made.kind = kind;
    made.source = source_;
    made.line = line_;
    return made;
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\n'; }

  /// Spaces and comments; with `lines` also line ends.
  void skip_blank(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) {
        line_ += c == '\n' ? 1 : 0;
        ++at_;
      } else {
        return;
      }
    }
  }

  void mistake(std::string expected) {
    const std::size_t end = std::min({text_.find('\n', at_), text_.size(), at_ + 24});
    error_.add({*source_ + ":" + std::to_string(line_),
                {},
                std::string(text_.substr(at_, end - at_)),
                std::move(expected)});
    at_ = std::min(text_.find('\n', at_), text_.size());  // the next line may be right again
  }

  void statement() {
    const bool header = peek() == '[';
    at_ += header ? 1 : 0;
    if (header && peek() == '[') {
      return mistake("a table such as [training]; arrays of tables are not read");
    }
    const auto path = key_path();
    if (!path) {
      return mistake("a key of letters, digits, _ and -, or in quotes");
    }
    skip_blank(false);
    if (peek() != (header ? ']' : '=')) {
      return mistake(header ? "]" : "= and a value");
    }
    ++at_;
    header ? open(*path) : assign(*path);
    skip_blank(false);
    if (at_ < text_.size() && peek() != '\n') {
      mistake("the end of the line");
    }
  }

  std::optional<Path> key_path() {
    Path path;
    do {
      at_ += path.empty() ? 0 : 1;  // the dot
      skip_blank(false);
      std::string key;
      if (peek() == '"' || peek() == '\'') {
        key = string().value_or("");
      } else {
        while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '_' ||
               peek() == '-') {
          key += text_[at_++];
        }
      }
      if (key.empty() || path.size() == kDeepest) {
        return std::nullopt;
      }
      path.push_back(std::move(key));
      skip_blank(false);
    } while (peek() == '.');
    return path;
  }

  /// Returns the map at `path`, made where it is missing; nullptr when a value stands there.
  ConfigNode* descend(const Path& path) {
    ConfigNode* at = &root_;
    Path so_far;
    for (const std::string& name : path) {
      so_far.push_back(name);
      const auto [place, is_new] = places_.emplace(so_far, at->fields.size());
      if (is_new) {
        at->fields.push_back({name, node(Kind::map)});
        at->fields.back().value.path = joined(so_far, ".");
      }
      at = &at->fields[place->second].value;
      if (at->kind != Kind::map) {
        return nullptr;
      }
    }
    return at;
  }

  void open(const Path& path) {
    table_ = path;
    const bool again = !opened_.insert(path).second;
    if (descend(path) == nullptr || again) {
      mistake("a table that was not given before: " + joined(path, "."));
    }
  }

  void assign(const Path& key) {
    Path path = table_;
    path.insert(path.end(), key.begin(), key.end());
    skip_blank(false);
    auto made = value(0, joined(path, "."));
    if (!made) {
      return mistake("a one-line string, a number, true, false or an array of them");
    }
    const std::string name = path.back();
    path.pop_back();
    ConfigNode* map = descend(path);
    path.push_back(name);
    if (map == nullptr || !places_.emplace(std::move(path), map->fields.size()).second) {
      return mistake("this field only once: " + made->path);
    }
    map->fields.push_back({name, std::move(*made)});
  }

  std::optional<ConfigNode> value(int depth, std::string path) {
    ConfigNode made = node(Kind::scalar);
    made.path = std::move(path);
    if (peek() == '"' || peek() == '\'') {
      auto text = string();
      made.quoted = true;
      made.text = text.value_or("");
      return text ? std::optional(std::move(made)) : std::nullopt;
    }
    if (peek() == '[') {
      return array(depth, std::move(made));
    }
    while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '+' ||
           peek() == '-' || peek() == '.' || peek() == '_') {
      made.text += text_[at_++];
    }
    std::erase(made.text, '_');  // 1_000
    if (made.text.starts_with('+')) {
      made.text.erase(0, 1);
    }
    const bool known = parse_number(made.text).has_value() || parse_bool(made.text).has_value();
    return known ? std::optional(std::move(made)) : std::nullopt;
  }

  std::optional<ConfigNode> array(int depth, ConfigNode made) {
    made.kind = Kind::sequence;
    ++at_;
    skip_blank(true);
    while (peek() != ']') {
      auto item = depth < kDeepest
                      ? value(depth + 1, made.path + "[" + std::to_string(made.items.size()) + "]")
                      : std::nullopt;
      if (!item) {
        return std::nullopt;
      }
      made.items.push_back(std::move(*item));
      skip_blank(true);
      if (peek() == ',') {
        ++at_;
        skip_blank(true);
      } else if (peek() != ']') {
        return std::nullopt;
      }
    }
    ++at_;
    return made;
  }

  /// Requires a quote. Escapes of basic strings: \" \\ \n \t; a quote three times is refused.
  std::optional<std::string> string() {
    const char quote = text_[at_++];
    if (text_.substr(at_, 2) == std::string(2, quote)) {
      return std::nullopt;
    }
    std::string result;
    while (at_ < text_.size() && text_[at_] != quote) {
      char c = text_[at_++];
      if (c == '\n') {
        --at_;
        return std::nullopt;
      }
      if (c == '\\' && quote == '"' && at_ < text_.size()) {
        c = text_[at_++];
        if (c != '"' && c != '\\' && c != 'n' && c != 't') {
          return std::nullopt;
        }
        c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
      }
      result += c;
    }
    if (at_ == text_.size()) {
      return std::nullopt;
    }
    ++at_;
    return result;
  }

  std::string_view text_;
  std::shared_ptr<const std::string> source_;
  std::size_t at_ = 0;
  int line_ = 1;
  ConfigNode root_;
  Path table_;
  std::set<Path> opened_;
  std::map<Path, std::size_t> places_;  ///< index of every field among those of its map
  Error error_;
};

}  // namespace

Result<ConfigNode> parse_toml(std::string_view text, const std::string& file) {
  return TomlParser(text, file).run();
}

}  // namespace orrery::interop
