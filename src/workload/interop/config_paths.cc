// SPDX-License-Identifier: Apache-2.0
#include "workload/interop/config_paths.h"

#include <algorithm>

#include "base/reader.h"

namespace orrery::interop {
namespace {

void add_leaves(const ConfigNode& node, const std::string& path, std::vector<Leaf>& leaves) {
  for (const ConfigField& field : node.fields) {
    add_leaves(field.value, path.empty() ? field.name : path + "." + field.name, leaves);
  }
  for (const ConfigNode& item : node.items) {
    add_leaves(item, path, leaves);
  }
  if (node.fields.empty() && node.items.empty() && !path.empty()) {
    leaves.push_back({path, &node});
  }
}

ConfigNode* child_of(ConfigNode& node, std::string_view name) {
  const auto at = std::ranges::find(node.fields, name, &ConfigField::name);
  return at == node.fields.end() ? nullptr : &at->value;
}

/// Returns the leaf at the path, with the maps on its way.
ConfigNode& made(ConfigNode& node, std::string_view path, int line) {
  ConfigNode* at = &node;
  while (!path.empty()) {
    const std::string name(path.substr(0, path.find('.')));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    ConfigNode* child = child_of(*at, name);
    if (child == nullptr) {
      at->kind = ConfigNode::Kind::map;
      ConfigField field{name, {}};
      field.value.source = std::make_shared<const std::string>("override");
      field.value.line = line;
      field.value.path = at->path.empty() ? name : at->path + "." + name;
      at->fields.push_back(std::move(field));
      child = &at->fields.back().value;
    }
    at = child;
  }
  return *at;
}

void remove(ConfigNode& node, std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot == path.npos) {
    std::erase_if(node.fields, [&](const ConfigField& field) { return field.name == path; });
  } else if (ConfigNode* child = child_of(node, path.substr(0, dot))) {
    remove(*child, path.substr(dot + 1));
  }
}

/// Returns the value of ${...} in a leaf at `path`; nullptr: none. `.x` stands beside the leaf,
/// `..x` beside the map that holds it.
const ConfigNode* referred(const ConfigNode& root, std::string_view path, std::string_view name) {
  if (!name.starts_with('.')) {
    return at_path(root, name);
  }
  while (name.starts_with('.')) {
    name.remove_prefix(1);
    path = path.substr(0, path.find_last_of('.') == path.npos ? 0 : path.find_last_of('.'));
  }
  const ConfigNode* owner = at_path(root, path);
  return owner == nullptr ? nullptr : at_path(*owner, name);
}

void fill(ConfigNode& node, const std::string& path, const ConfigNode& root, Error& error) {
  for (ConfigField& field : node.fields) {
    fill(field.value, path.empty() ? field.name : path + "." + field.name, root, error);
  }
  for (ConfigNode& item : node.items) {
    fill(item, path, root, error);
  }
  constexpr int kMostSteps = 8;  // of references to references
  for (int step = 0; step < kMostSteps && node.text.starts_with("${") && node.text.ends_with('}');
       ++step) {
    const std::string name = node.text.substr(2, node.text.size() - 3);
    const std::size_t colon = name.find_first_of(":,", name.starts_with("oc.env:") ? 7 : 0);
    if (const ConfigNode* other = referred(root, path, name)) {
      node.text = other->text;
      node.kind = other->kind;
      node.quoted = other->quoted;
    } else if (colon != std::string::npos) {
      node.text = name.substr(colon + 1);
      node.quoted = false;
    } else {
      error.add({node.where(), path, node.text,
                 "the name of a key of the file, or ${NAME:default}; set it: " + path +
                     "=VALUE after --"});
      return;
    }
  }
}

}  // namespace

std::vector<Leaf> leaves_of(const ConfigNode& node) {
  std::vector<Leaf> leaves;
  add_leaves(node, "", leaves);
  return leaves;
}

bool is_empty(const ConfigNode& node) {
  return node.kind == ConfigNode::Kind::null || node.text.empty() ||
         (!node.quoted && (node.text == "false" || node.text == "False" || node.text == "null" ||
                           node.text == "None" || parse_number(node.text) == 0.0));
}

const ConfigNode* at_path(const ConfigNode& node, std::string_view path) {
  const ConfigNode* at = &node;
  while (at != nullptr && !path.empty()) {
    const std::string_view name = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    at = at->find(name);
  }
  return at;
}

Result<ConfigNode> with_overrides(ConfigNode node, const std::vector<std::string>& words) {
  Error error;
  int line = 0;
  for (std::string_view word : words) {
    ++line;
    if (word.starts_with('~')) {
      remove(node, word.substr(1));
      continue;
    }
    while (word.starts_with('+')) {
      word.remove_prefix(1);
    }
    const std::size_t equals = word.find('=');
    if (equals == word.npos || equals == 0) {
      error.add({"--", {}, std::string(word), "an override such as trainer.num_nodes=4, or ~a.b"});
      continue;
    }
    ConfigNode& leaf = made(node, word.substr(0, equals), line);
    leaf.text = std::string(word.substr(equals + 1));
    leaf.kind = leaf.text == "null" ? ConfigNode::Kind::null : ConfigNode::Kind::scalar;
    leaf.quoted = false;
    leaf.fields.clear();
    leaf.items.clear();
  }
  const ConfigNode root = node;
  fill(node, "", root, error);
  if (!error.empty()) {
    return fail(std::move(error));
  }
  return node;
}

}  // namespace orrery::interop
