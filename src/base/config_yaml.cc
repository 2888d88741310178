// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/config_tree.h"

namespace orrery {
namespace {

/// Leaves yaml-cpp's parser, which has no other way out of an event.
struct Refusal {
  Mistake mistake;
};

int line_of(const YAML::Mark& mark) {
  return std::max(1, mark.line + 1);
}

bool is_null_word(const std::string& text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

/// Hands yaml-cpp's events to the tree; nothing of YAML beyond plain values gets in.
class YamlEvents : public YAML::EventHandler {
 public:
  YamlEvents(ConfigTree& tree, std::string file) : tree_(tree), file_(std::move(file)) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check(mark, "", anchor);
    if (tree_.wants_key()) {
      refuse(mark, "a name before ':'");
    }
    value(mark, ConfigNode::Kind::null, "", false);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "plain values; YAML aliases (*name) are not supported here");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    const bool quoted = tag == "!";  // yaml-cpp's tag of quoted and block scalars
    check(mark, tag, anchor);
    if (tree_.wants_key()) {
      tree_.key(text, line_of(mark));
      return;
    }
    const bool null = !quoted && is_null_word(text);
    value(mark, null ? ConfigNode::Kind::null : ConfigNode::Kind::scalar, text, quoted);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, ConfigNode::Kind::sequence);
  }
  void OnSequenceEnd() override { tree_.close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, ConfigNode::Kind::map);
  }
  void OnMapEnd() override { tree_.close(); }

 private:
  [[noreturn]] void refuse(const YAML::Mark& mark, std::string expected) const {
    throw Refusal{{file_ + ":" + std::to_string(line_of(mark)), {}, {}, std::move(expected)}};
  }
  void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != 0) {
      refuse(mark, "plain values; YAML anchors (&name) are not supported here");
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(mark, "plain values; YAML tags (!name) are not supported here");
    }
  }
  void value(const YAML::Mark& mark, ConfigNode::Kind kind, const std::string& text, bool quoted) {
    if (!tree_.value(kind, text, quoted, line_of(mark))) {
      throw Refusal{tree_.too_large(line_of(mark))};
    }
  }
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            ConfigNode::Kind kind) {
    check(mark, tag, anchor);
    if (tree_.wants_key()) {
      refuse(mark, "a plain name as key, not a list or map");
    }
    if (!tree_.open(kind, line_of(mark))) {
      throw Refusal{tree_.too_large(line_of(mark))};
    }
  }

  ConfigTree& tree_;
  std::string file_;
};

/// Feeds one document to the tree; nothing when it went well. The second of two is a mistake.
std::optional<Mistake> feed(std::string_view text, const std::string& file, ConfigTree& tree) {
  std::istringstream stream{std::string(text)};
  YAML::Parser parser(stream);
  YamlEvents events(tree, file);
  if (!parser.HandleNextDocument(events)) {
    return Mistake{file, {}, {}, "expected a document; the file is empty"};
  }
  ConfigTree rest(file, text.size());
  YamlEvents more(rest, file);
  if (parser.HandleNextDocument(more)) {
    return Mistake{file, {}, {}, "expected one document; there are several"};
  }
  return std::nullopt;
}

}  // namespace

Result<ConfigNode> parse_yaml(std::string_view text, const std::string& file) {
  ConfigTree tree(file, text.size());
  try {
    if (auto mistake = feed(text, file, tree)) {
      return fail(Error(std::move(*mistake)));
    }
  } catch (const Refusal& refusal) {
    return fail(Error(refusal.mistake));
  } catch (const YAML::Exception& problem) {
    return fail(Error(Mistake{file + ":" + std::to_string(line_of(problem.mark)),
                              {},
                              {},
                              "expected valid YAML (" + problem.msg + ")"}));
  }
  return tree.take();
}

}  // namespace orrery
