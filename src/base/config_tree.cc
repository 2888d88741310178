// SPDX-License-Identifier: Apache-2.0
#include "base/config_tree.h"

#include <cassert>
#include <utility>

namespace orrery {

namespace {

constexpr std::size_t kLongestKey = 4096;  // every value below carries it in its path
constexpr std::size_t kShownOfKey = 24;

}  // namespace

bool ConfigTree::wants_key() const {
  return !levels_.empty() && levels_.back().node.kind == ConfigNode::Kind::map &&
         !levels_.back().has_key;
}

void ConfigTree::key(std::string name, int line) {
  assert(wants_key() && "a key comes only where a map waits for one");
  Level& level = levels_.back();
  if (name.size() > kLongestKey) {
    error_.add({*file_ + ":" + std::to_string(line),
                {},
                name.substr(0, kShownOfKey) + "...",
                "a name of at most " + std::to_string(kLongestKey) + " bytes"});
    name.resize(kShownOfKey);
  }
  level.key = std::move(name);
  level.key_line = line;
  level.has_key = true;
}

bool ConfigTree::value(ConfigNode::Kind kind, std::string text, bool quoted, int line) {
  if (values_ >= kMostValues) {
    return false;
  }
  // A parser notices a value that is not there only at what comes next.
  const bool absent = kind == ConfigNode::Kind::null && !levels_.empty() && levels_.back().has_key;
  ConfigNode node = make(kind, absent ? levels_.back().key_line : line);
  node.text = std::move(text);
  node.quoted = quoted;
  add(std::move(node));
  return true;
}

bool ConfigTree::open(ConfigNode::Kind kind, int line) {
  if (levels_.size() >= kDeepestConfig || values_ >= kMostValues) {
    return false;
  }
  levels_.push_back({.node = make(kind, line), .key = {}, .keys = {}});
  return true;
}

void ConfigTree::close() {
  ConfigNode node = std::move(levels_.back().node);
  levels_.pop_back();
  add(std::move(node));
}

Result<ConfigNode> ConfigTree::take() {
  if (!error_.empty()) {
    return fail(std::move(error_));
  }
  return std::move(root_);
}

Mistake ConfigTree::too_large(int line) const {
  return {*file_ + ":" + std::to_string(line),
          {},
          {},
          values_ < kMostValues ? "nesting of at most " + std::to_string(kDeepestConfig) + " levels"
                                : "a file of at most " + std::to_string(kMostValues) + " values"};
}

ConfigNode ConfigTree::make(ConfigNode::Kind kind, int line) const {
  ConfigNode node;
  node.kind = kind;
  node.source = file_;
  node.line = line;
  if (levels_.empty()) {
    return node;
  }
  const Level& parent = levels_.back();
  if (parent.node.kind == ConfigNode::Kind::map) {
    node.path = parent.node.path + (parent.node.path.empty() ? "" : ".") + parent.key;
  } else {
    node.path = parent.node.path + "[" + std::to_string(parent.node.items.size()) + "]";
  }
  return node;
}

void ConfigTree::add(ConfigNode node) {
  ++values_;
  if (levels_.empty()) {
    root_ = std::move(node);
    return;
  }
  Level& parent = levels_.back();
  if (parent.node.kind == ConfigNode::Kind::sequence) {
    parent.node.items.push_back(std::move(node));
    return;
  }
  assert(parent.has_key && "a map's value follows its key");
  parent.has_key = false;
  if (!parent.keys.insert(parent.key).second) {
    error_.add({*file_ + ":" + std::to_string(parent.key_line),
                node.path,
                {},
                "this field only once; it was given before"});
    return;
  }
  parent.node.fields.push_back({parent.key, std::move(node)});
}

}  // namespace orrery
