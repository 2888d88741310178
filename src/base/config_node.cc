// SPDX-License-Identifier: Apache-2.0
#include "base/config_node.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/file.h"

namespace orrery {
namespace {

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kShownCharacters = 60;

/// Stops the YAML parser at the first mistake that has no sensible rest.
struct Refusal {
  Mistake mistake;
};

bool is_null_word(const std::string& text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

/// Builds the tree from yaml-cpp's events, so that nothing of YAML beyond plain values gets in.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::string file) : file_(std::move(file)) {}

  ConfigNode take_root() { return std::move(root_); }
  Error take_error() { return std::move(error_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check(mark, "", anchor);
    add(make(mark, ConfigNode::Kind::null));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "plain values; YAML aliases (*name) are not supported here");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool quoted = tag == "!";  // yaml-cpp's tag of quoted and block scalars
    check(mark, quoted ? "" : tag, anchor);
    if (open_.size() > 0 && open_.back().kind == ConfigNode::Kind::map && !has_key_.back()) {
      keys_.back() = value;
      key_lines_.back() = mark.line + 1;
      has_key_.back() = true;
      return;
    }
    ConfigNode node = make(
        mark, !quoted && is_null_word(value) ? ConfigNode::Kind::null : ConfigNode::Kind::scalar);
    node.text = value;
    node.quoted = quoted;
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, ConfigNode::Kind::sequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, ConfigNode::Kind::map);
  }
  void OnMapEnd() override { close(); }

 private:
  [[noreturn]] void refuse(const YAML::Mark& mark, std::string expected) const {
    throw Refusal{{file_ + ":" + std::to_string(mark.line + 1), {}, {}, std::move(expected)}};
  }
  void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != 0) {
      refuse(mark, "plain values; YAML anchors (&name) are not supported here");
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(mark, "plain values; YAML tags (!name) are not supported here");
    }
  }
  ConfigNode make(const YAML::Mark& mark, ConfigNode::Kind kind) const {
    ConfigNode node;
    node.kind = kind;
    node.file = file_;
    node.line = mark.line + 1;
    if (!open_.empty()) {
      const ConfigNode& parent = open_.back();
      node.path = parent.kind == ConfigNode::Kind::map
                      ? parent.path + (parent.path.empty() ? "" : ".") + keys_.back()
                      : parent.path + "[" + std::to_string(parent.items.size()) + "]";
    }
    return node;
  }
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            ConfigNode::Kind kind) {
    check(mark, tag, anchor);
    if (open_.size() >= kDeepest) {
      refuse(mark, "nesting of at most " + std::to_string(kDeepest) + " levels");
    }
    if (!open_.empty() && open_.back().kind == ConfigNode::Kind::map && !has_key_.back()) {
      refuse(mark, "a plain name as key, not a list or map");
    }
    open_.push_back(make(mark, kind));
    keys_.emplace_back();
    key_lines_.push_back(0);
    has_key_.push_back(false);
  }
  void close() {
    ConfigNode node = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    key_lines_.pop_back();
    has_key_.pop_back();
    add(std::move(node));
  }
  void add(ConfigNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    ConfigNode& parent = open_.back();
    if (parent.kind == ConfigNode::Kind::sequence) {
      parent.items.push_back(std::move(node));
      return;
    }
    if (!has_key_.back()) {
      throw Refusal{{node.where(), {}, {}, "a name before ':'"}};
    }
    if (parent.find(keys_.back()) != nullptr) {
      error_.add({file_ + ":" + std::to_string(key_lines_.back()),
                  node.path,
                  {},
                  "this field only once; it was given before"});
    } else {
      parent.fields.push_back({keys_.back(), std::move(node)});
    }
    has_key_.back() = false;
  }

  std::string file_;
  ConfigNode root_;
  Error error_;
  std::vector<ConfigNode> open_;
  std::vector<std::string> keys_;
  std::vector<int> key_lines_;
  std::vector<bool> has_key_;
};

/// Line of the first byte that is not text: control characters and broken UTF-8. 0 = all is well.
int first_line_not_text(std::string_view text) {
  int line = 1;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = byte < 0x80 ? 1 : byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    bool ok = byte < 0x80 ? (byte >= 0x20 || byte == '\n' || byte == '\r' || byte == '\t')
                          : byte >= 0xC2 && byte <= 0xF4 && i + length <= text.size();
    for (std::size_t k = 1; ok && k < length; ++k) {
      ok = (static_cast<unsigned char>(text[i + k]) & 0xC0U) == 0x80U;
    }
    if (!ok || byte == 0x7F) {
      return line;
    }
    line += byte == '\n' ? 1 : 0;
    i += length;
  }
  return 0;
}

int line_at(std::string_view text, std::size_t offset) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text.size()));
  return 1 + static_cast<int>(std::count(text.begin(), end, '\n'));
}

/// nlohmann's parser without a tree: only whether the text is JSON, and where it stops being so.
class JsonCheck : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ <= kDeepest; }
  bool key(string_t&) override { return true; }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override { return ++depth_ <= kDeepest; }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    position_ = position;
    return false;
  }
  std::size_t position() const { return position_; }
  bool too_deep() const { return depth_ > kDeepest; }

 private:
  std::size_t depth_ = 0;
  std::size_t position_ = 0;
};

std::optional<Mistake> json_mistake(std::string_view text, const std::string& file) {
  JsonCheck check;
  if (nlohmann::json::sax_parse(text.begin(), text.end(), &check)) {
    return std::nullopt;
  }
  if (check.too_deep()) {
    return Mistake{file, {}, {}, "nesting of at most " + std::to_string(kDeepest) + " levels"};
  }
  const std::size_t at = check.position() == 0 ? 0 : check.position() - 1;
  const bool at_end = at >= text.size();
  return Mistake{file + ":" + std::to_string(line_at(text, at)),
                 {},
                 at_end ? "the end of the file" : std::string(1, text[at]),
                 "JSON; here it stops being so"};
}

Result<ConfigNode> parse_yaml(const std::string& text, const std::string& file) {
  TreeBuilder builder(file);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) {
      return fail(Error(Mistake{file, {}, {}, "a document; the file is empty"}));
    }
    TreeBuilder rest(file);
    if (parser.HandleNextDocument(rest)) {
      return fail(Error(Mistake{file, {}, {}, "one document; there are several"}));
    }
  } catch (const Refusal& refusal) {
    return fail(Error(refusal.mistake));
  } catch (const YAML::Exception& problem) {
    return fail(Error(Mistake{file + ":" + std::to_string(problem.mark.line + 1),
                              {},
                              {},
                              "valid YAML (" + problem.msg + ")"}));
  }
  if (Error error = builder.take_error(); !error.empty()) {
    return fail(std::move(error));
  }
  return builder.take_root();
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
  return text.size() <= kShownCharacters ? text : text.substr(0, kShownCharacters) + "...";
}

Result<ConfigNode> parse_config(std::string_view text, std::string file, ConfigSyntax syntax) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  if (const int line = first_line_not_text(text); line > 0) {
    return fail(Error(
        Mistake{file + ":" + std::to_string(line), {}, {}, "UTF-8 text; this is not a text file"}));
  }
  std::string content(text);
  if (syntax == ConfigSyntax::json) {
    if (auto mistake = json_mistake(text, file)) {
      return fail(Error(std::move(*mistake)));
    }
    // Valid JSON has tabs between tokens only, where YAML wants spaces.
    std::replace(content.begin(), content.end(), '\t', ' ');
  }
  return parse_yaml(content, file);
}

Result<ConfigNode> load_config(const std::string& file) {
  constexpr std::size_t kLargest = std::size_t{64} << 20;
  auto text = read_file(file, kLargest);
  if (!text) {
    return fail(std::move(text.error()));
  }
  const bool json = file.size() > 5 && file.substr(file.size() - 5) == ".json";
  return parse_config(*text, file, json ? ConfigSyntax::json : ConfigSyntax::yaml);
}

}  // namespace orrery
