// SPDX-License-Identifier: Apache-2.0
#include <yaml.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/config_tree.h"

namespace orrery {
namespace {

bool is_null_word(const std::string& text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

/// YamlEvents reads the events of a text, which must outlive it, by libyaml.
class YamlEvents {
 public:
  explicit YamlEvents(std::string_view text) : text_(text) {
    ready_ = yaml_parser_initialize(&parser_) != 0;
    if (ready_) {
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): libyaml's type of bytes
      const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
      yaml_parser_set_input_string(&parser_, bytes, text.size());
      yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    }
  }
  YamlEvents(const YamlEvents&) = delete;
  YamlEvents& operator=(const YamlEvents&) = delete;
  ~YamlEvents() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }

  /// Returns the next event, which the one after it replaces; null when the text is no YAML.
  const yaml_event_t* next() {
    yaml_event_delete(&event_);
    return ready_ && yaml_parser_parse(&parser_, &event_) != 0 ? &event_ : nullptr;
  }
  /// Says why next() gave null.
  std::string problem() const {
    const std::string context = parser_.context == nullptr ? "" : parser_.context;
    const std::string problem = parser_.problem == nullptr ? "not enough memory" : parser_.problem;
    return context.empty() ? problem : context + ", " + problem;
  }
  /// Returns the line of problem(); bytes that are no text have an offset only.
  int problem_line() const {
    if (parser_.error != YAML_READER_ERROR) {
      return static_cast<int>(parser_.problem_mark.line) + 1;
    }
    const std::string_view before = text_.substr(0, parser_.problem_offset);
    return static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
  }

 private:
  std::string_view text_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
  bool ready_ = false;
};

/// Hands events to the tree; nothing of YAML beyond plain values gets in.
class YamlReader {
 public:
  YamlReader(ConfigTree& tree, std::string file) : tree_(tree), file_(std::move(file)) {}

  /// Feeds one document; nothing when it went well.
  std::optional<Mistake> read(YamlEvents& events) {
    int documents = 0;
    while (const yaml_event_t* event = events.next()) {
      if (event->type == YAML_STREAM_END_EVENT) {
        return documents > 0 ? std::nullopt : whole("expected a document; the file is empty");
      }
      if (event->type == YAML_DOCUMENT_START_EVENT && ++documents > 1) {
        return whole("expected one document; there are several");
      }
      if (auto mistake = take(*event)) {
        return mistake;
      }
    }
    return at(events.problem_line(), "expected valid YAML (" + events.problem() + ")");
  }

 private:
  std::optional<Mistake> whole(std::string expected) const {
    return Mistake{file_, {}, {}, std::move(expected)};
  }
  std::optional<Mistake> at(int line, std::string expected) const {
    return Mistake{file_ + ":" + std::to_string(line), {}, {}, std::move(expected)};
  }

  std::optional<Mistake> take(const yaml_event_t& event) {
    line_ = static_cast<int>(event.start_mark.line) + 1;
    switch (event.type) {
      case YAML_ALIAS_EVENT:
        return at(line_, "plain values; YAML aliases (*name) are not supported here");
      case YAML_SCALAR_EVENT:
        return scalar(event);
      case YAML_SEQUENCE_START_EVENT:
        return open(event.data.sequence_start.anchor, event.data.sequence_start.tag,
                    ConfigNode::Kind::sequence);
      case YAML_MAPPING_START_EVENT:
        return open(event.data.mapping_start.anchor, event.data.mapping_start.tag,
                    ConfigNode::Kind::map);
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        tree_.close();
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }

  std::optional<Mistake> scalar(const yaml_event_t& event) {
    const auto& scalar = event.data.scalar;
    if (auto mistake = beyond_plain(scalar.anchor, scalar.tag)) {
      return mistake;
    }
    const bool quoted = scalar.style != YAML_PLAIN_SCALAR_STYLE || scalar.tag != nullptr;
    std::string text(scalar.value, scalar.value + scalar.length);
    const bool null = !quoted && is_null_word(text);
    if (tree_.wants_key()) {
      if (null) {
        return at(line_, "a name before ':'");
      }
      tree_.key(std::move(text), line_);
      return std::nullopt;
    }
    const auto kind = null ? ConfigNode::Kind::null : ConfigNode::Kind::scalar;
    return tree_.value(kind, null ? "" : std::move(text), quoted, line_)
               ? std::nullopt
               : std::optional(tree_.too_large(line_));
  }

  std::optional<Mistake> open(const yaml_char_t* anchor, const yaml_char_t* tag,
                              ConfigNode::Kind kind) {
    if (auto mistake = beyond_plain(anchor, tag)) {
      return mistake;
    }
    if (tree_.wants_key()) {
      return at(line_, "a plain name as key, not a list or map");
    }
    return tree_.open(kind, line_) ? std::nullopt : std::optional(tree_.too_large(line_));
  }

  /// Refuses what names a value or its type; "!" alone says that a scalar is text.
  std::optional<Mistake> beyond_plain(const yaml_char_t* anchor, const yaml_char_t* tag) const {
    if (anchor != nullptr) {
      return at(line_, "plain values; YAML anchors (&name) are not supported here");
    }
    if (tag != nullptr && (tag[0] != '!' || tag[1] != '\0')) {
      return at(line_, "plain values; YAML tags (!name) are not supported here");
    }
    return std::nullopt;
  }

  ConfigTree& tree_;
  std::string file_;
  int line_ = 1;  ///< of the event
};

}  // namespace

Result<ConfigNode> parse_yaml(std::string_view text, const std::string& file) {
  ConfigTree tree(file, text.size());
  YamlEvents events(text);
  if (auto mistake = YamlReader(tree, file).read(events)) {
    return fail(Error(std::move(*mistake)));
  }
  return tree.take();
}

}  // namespace orrery
