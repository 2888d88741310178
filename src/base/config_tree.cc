// SPDX-License-Identifier: Apache-2.0
#include "base/config_tree.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "base/big.h"

namespace orrery {

namespace {

constexpr std::size_t kLongestKey = 4096;  // every value below carries it in its path
constexpr std::size_t kShownOfKey = 24;

/// Returns what a text takes beside itself: short ones lie in the string.
std::size_t heap_of(const std::string& text) {
  static const std::size_t inside = std::string().capacity();
  return text.capacity() > inside ? text.capacity() + 1 : 0;
}

}  // namespace

ConfigTree::ConfigTree(std::string file, std::size_t text_size)
    : file_(std::make_shared<const std::string>(std::move(file))),
      most_bytes_(limits_lifted()
                      ? kMostConfigMemory
                      : std::clamp(kConfigFactor * std::min(text_size, kMostConfigMemory),
                                   kLeastConfigMemory, kMostConfigMemory)) {}

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
  // A parser notices a value that is not there only at what comes next.
  const bool absent = kind == ConfigNode::Kind::null && !levels_.empty() && levels_.back().has_key;
  ConfigNode node = make(kind, absent ? levels_.back().key_line : line);
  node.text = std::move(text);
  node.quoted = quoted;
  if (!charge(slots_for_next() + bytes_beside(node))) {
    return false;
  }
  add(std::move(node));
  return true;
}

bool ConfigTree::open(ConfigNode::Kind kind, int line, std::size_t size) {
  too_deep_ = levels_.size() >= kDeepestConfig;
  if (too_deep_) {
    return false;
  }
  ConfigNode node = make(kind, line);
  const bool map = kind == ConfigNode::Kind::map;
  if (!charge(slots_for_next() + bytes_beside(node)) ||
      !charge(size * (map ? sizeof(ConfigField) : sizeof(ConfigNode)))) {
    return false;
  }
  levels_.push_back({.node = std::move(node), .key = {}, .key_lines = {}});
  Level& level = levels_.back();
  if (map) {
    level.node.fields.reserve(size);
    level.key_lines.reserve(size);
  } else {
    level.node.items.reserve(size);
  }
  return true;
}

void ConfigTree::close() {
  Level level = std::move(levels_.back());
  levels_.pop_back();
  refuse_repeated(level);
  add(std::move(level.node));
}

/// Returns the bytes that its parent's vector grows by for the next value: by as much as it has.
std::size_t ConfigTree::slots_for_next() const {
  if (levels_.empty()) {
    return sizeof(ConfigNode);
  }
  const ConfigNode& parent = levels_.back().node;
  if (parent.kind == ConfigNode::Kind::map) {
    const std::size_t room = parent.fields.capacity();
    return parent.fields.size() < room ? 0 : std::max<std::size_t>(room, 1) * sizeof(ConfigField);
  }
  const std::size_t room = parent.items.capacity();
  return parent.items.size() < room ? 0 : std::max<std::size_t>(room, 1) * sizeof(ConfigNode);
}

/// Returns what the next value takes beside its place in a vector.
std::size_t ConfigTree::bytes_beside(const ConfigNode& node) const {
  return heap_of(node.text) + heap_of(node.path) +
         (levels_.empty() ? 0 : heap_of(levels_.back().key));
}

/// Counts the bytes; false where they are beyond the most.
bool ConfigTree::charge(std::size_t bytes) {
  const bool fits = bytes <= most_bytes_ - bytes_;
  bytes_ += fits ? bytes : 0;
  return fits;
}

Result<ConfigNode> ConfigTree::take() {
  if (!error_.empty()) {
    return fail(std::move(error_));
  }
  return std::move(root_);
}

Mistake ConfigTree::too_large(int line) const {
  const std::string expected =
      too_deep_ ? "nesting of at most " + std::to_string(kDeepestConfig) + " levels"
                : "a file whose values take at most " + std::to_string(most_bytes_ >> 20) +
                      " MiB: " + std::to_string(kConfigFactor) +
                      " times its size, and 64 MiB to 2 GiB (--big: 2 GiB)";
  return {*file_ + ":" + std::to_string(line), {}, {}, expected};
}

/// Returns a path of the size that it has, so that a long one takes no more than it must.
std::string ConfigTree::path_of_next() const {
  const Level& parent = levels_.back();
  const std::string& path = parent.node.path;
  const bool in_map = parent.node.kind == ConfigNode::Kind::map;
  const std::string index = in_map ? "" : "[" + std::to_string(parent.node.items.size()) + "]";
  const std::string& last = in_map ? parent.key : index;
  std::string next;
  next.reserve(path.size() + 1 + last.size());
  next += path;
  next += in_map && !path.empty() ? "." : "";
  return next += last;
}

ConfigNode ConfigTree::make(ConfigNode::Kind kind, int line) const {
  ConfigNode node;
  node.kind = kind;
  node.source = file_;
  node.line = line;
  if (!levels_.empty()) {
    node.path = path_of_next();
  }
  return node;
}

void ConfigTree::add(ConfigNode node) {
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
  parent.key_lines.push_back(parent.key_line);
  parent.node.fields.push_back({std::move(parent.key), std::move(node)});
}

/// Reports every field whose name an earlier one of the level has. It sorts numbers of fields:
/// looking for each among all before it would be quadratic, and a set of names takes as much memory
/// as the fields.
void ConfigTree::refuse_repeated(Level& level) {
  const std::vector<ConfigField>& fields = level.node.fields;
  std::vector<std::uint32_t> order(fields.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const int names = fields[a].name.compare(fields[b].name);
    return names != 0 ? names < 0 : a < b;
  });
  std::vector<std::uint32_t> repeated;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (fields[order[i]].name == fields[order[i - 1]].name) {
      repeated.push_back(order[i]);
    }
  }
  std::sort(repeated.begin(), repeated.end());
  for (const std::uint32_t field : repeated) {
    error_.add({*file_ + ":" + std::to_string(level.key_lines[field]),
                fields[field].value.path,
                {},
                "this field only once; it was given before"});
  }
}

}  // namespace orrery
