// SPDX-License-Identifier: Apache-2.0
#include "base/reader.h"

namespace orrery {
namespace {

constexpr std::size_t kMostUnknown = 100;  // more mistakes than a message shows

/// Returns which of `known` a name may mean; where none is near and there are few, all of them.
std::string meant(const std::string& name, const std::vector<std::string>& known) {
  constexpr std::size_t kFew = 12;
  const std::string guess = did_you_mean(name, known);
  return guess.empty() && known.size() <= kFew && !known.empty() ? "; known: " + enumerated(known)
                                                                 : guess;
}

}  // namespace

Reader::Reader(const ConfigNode& node) : node_(node) {
  if (node.kind != ConfigNode::Kind::map) {
    error_.add({node.where(), node.path, node.shown(), "a map of fields"});
  }
}

std::string Reader::path_of(std::string_view name) const {
  return node_.path + (node_.path.empty() ? "" : ".") + std::string(name);
}

const ConfigNode* Reader::take(std::string_view name, bool must_exist) {
  known_.emplace(name);
  const ConfigNode* node = node_.find(name);
  const bool missing = node == nullptr || node->kind == ConfigNode::Kind::null;
  if (missing && must_exist && node_.kind == ConfigNode::Kind::map) {
    unread_.insert(path_of(name));
    error_.add({node_.where(), path_of(name), {}, "required, but missing"});
    return nullptr;
  }
  return node;
}

const ConfigNode* Reader::child(std::string_view name, bool must_exist) {
  const ConfigNode* node = take(name, must_exist);
  return node == nullptr || node->kind == ConfigNode::Kind::null ? nullptr : node;
}

std::vector<const ConfigNode*> Reader::take_items(std::string_view name, bool must_exist) {
  std::vector<const ConfigNode*> items;
  const ConfigNode* node = child(name, must_exist);
  if (node == nullptr) {
    return items;
  }
  if (node->kind != ConfigNode::Kind::sequence) {
    mistake(*node, "a list");
    return items;
  }
  for (const ConfigNode& item : node->items) {
    items.push_back(&item);
  }
  return items;
}

void Reader::reject(std::string_view name, std::string expected) {
  if (unread_.contains(path_of(name))) {
    return;
  }
  if (const ConfigNode* node = node_.find(name)) {
    error_.add({node->where(), node->path, node->shown(), std::move(expected)});
    return;
  }
  error_.add({node_.where(), path_of(name), {}, "not given; expected " + expected});
}

void Reader::mistake(const ConfigNode& node, std::string expected) {
  unread_.insert(node.path);
  error_.add({node.where(), node.path, node.shown(), std::move(expected)});
}

void Reader::warn_of_unknown(std::vector<std::string>& warnings) {
  const std::vector<std::string> known(known_.begin(), known_.end());
  for (const auto& [name, node] : node_.fields) {
    if (known_.insert(name).second) {
      warnings.push_back(node.where() + ": " + node.path + ": unknown field, ignored" +
                         did_you_mean(name, known));
    }
  }
}

std::vector<std::string> Reader::pass_unknown(bool (*harmless)(std::string_view name,
                                                               const ConfigNode& node)) {
  std::vector<std::string> passed;
  for (const auto& [name, node] : node_.fields) {
    if (!known_.contains(name) && harmless(name, node)) {
      known_.insert(name);
      passed.push_back(node.where() + ": " + node.path + ": unknown field, ignored");
    }
  }
  return passed;
}

void Reader::check_unknown_fields() {
  const std::vector<std::string> known(known_.begin(), known_.end());
  std::size_t unknown = 0;  // a mistake for each of a flood takes more than the file, unseen
  for (const auto& [name, node] : node_.fields) {
    if (!known_.contains(name) && ++unknown <= kMostUnknown) {
      error_.add({node.where(), node.path, {}, "unknown field" + meant(name, known)});
    }
  }
  if (unknown > kMostUnknown) {
    error_.add({node_.where(),
                node_.path,
                {},
                std::to_string(unknown - kMostUnknown) + " more unknown fields"});
  }
}

}  // namespace orrery
