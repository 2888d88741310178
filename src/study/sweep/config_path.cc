// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/config_path.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/format.h"
#include "base/names.h"

namespace orrery::sweep {
namespace {

/// Returns what the items of a list are called: their `name`, else their number.
std::vector<std::string> item_names(const ConfigNode& list) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const ConfigNode* name = list.items[i].find("name");
    names.push_back(name == nullptr ? std::to_string(i) : name->text);
  }
  return names;
}

std::optional<std::size_t> find_item(const ConfigNode& list, const std::string& word) {
  const std::vector<std::string> names = item_names(list);
  const auto found = std::find(names.begin(), names.end(), word);
  if (found != names.end()) {
    return static_cast<std::size_t>(found - names.begin());
  }
  std::size_t number = 0;
  const char* const end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, number);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == end;
  return is_number && number < list.items.size() ? std::optional(number) : std::nullopt;
}

/// Returns the field of a map; a new one, empty, where there is none.
ConfigNode& field_of(ConfigNode& map, const std::string& word, bool& is_new) {
  const auto found = std::find_if(map.fields.begin(), map.fields.end(),
                                  [&](const ConfigField& field) { return field.name == word; });
  is_new = found == map.fields.end();
  if (!is_new) {
    return found->value;
  }
  map.kind = ConfigNode::Kind::map;
  map.fields.push_back({word, {}});
  return map.fields.back().value;
}

}  // namespace

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    words.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

Result<void> set_field(ConfigNode& root, std::string_view path, const ConfigNode& value) {
  ConfigNode* at = &root;
  std::string passed;
  for (const std::string& word : split_path(path)) {
    const auto refuse = [&](std::string expected) {
      return fail(Error(Mistake{value.where(), std::string(path), word, std::move(expected)}));
    };
    bool is_new = false;
    if (word.empty()) {
      return refuse("names with one dot between them");
    }
    if (at->kind == ConfigNode::Kind::sequence) {
      const std::vector<std::string> names = item_names(*at);
      const std::optional<std::size_t> item = find_item(*at, word);
      if (item) {
        at = &at->items[*item];
      } else {
        return refuse("an item of " + passed + ": its number from 0, or one of " +
                      enumerated(names) + did_you_mean(word, names));
      }
    } else if (at->kind == ConfigNode::Kind::map || at->kind == ConfigNode::Kind::null) {
      at = &field_of(*at, word, is_new);
    } else {
      return refuse("nothing: " + passed + " is one value");
    }
    passed += (passed.empty() ? "" : ".") + word;
    if (is_new) {
      at->source = value.source;
      at->line = value.line;
      at->path = passed;
    }
  }
  *at = value;
  at->path = std::string(path);
  return {};
}

std::string resolved_path(const ConfigNode& root, std::string_view path) {
  const ConfigNode* at = &root;
  std::string resolved;
  for (std::string word : split_path(path)) {
    if (at != nullptr && at->kind == ConfigNode::Kind::sequence) {
      const std::optional<std::size_t> item = find_item(*at, word);
      word = item ? std::to_string(*item) : word;
      at = item ? &at->items[*item] : nullptr;
    } else {
      at = at == nullptr ? nullptr : at->find(word);
    }
    resolved += (resolved.empty() ? "" : ".") + word;
  }
  return resolved;
}

const ConfigNode* find_field(const ConfigNode& root, std::string_view path) {
  const ConfigNode* at = &root;
  for (const std::string& word : split_path(path)) {
    if (at->kind == ConfigNode::Kind::sequence) {
      const std::optional<std::size_t> item = find_item(*at, word);
      at = item ? &at->items[*item] : nullptr;
    } else {
      at = at->find(word);
    }
    if (at == nullptr) {
      return nullptr;
    }
  }
  return at;
}

std::string canonical_text(const ConfigNode& node) {
  std::string text;
  switch (node.kind) {
    case ConfigNode::Kind::null:
      return "null";
    case ConfigNode::Kind::scalar:
      return node.quoted ? exact_text(node.text) : node.text;
    case ConfigNode::Kind::sequence:
      for (const ConfigNode& item : node.items) {
        text += (text.empty() ? "" : ",\n") + canonical_text(item);
      }
      return "[" + text + "]";
    case ConfigNode::Kind::map:
      break;
  }
  for (const ConfigField& field : node.fields) {
    text += (text.empty() ? "" : ",\n") + exact_text(field.name) + ": ";
    text += canonical_text(field.value);
  }
  return "{" + text + "}";
}

ConfigNode scalar_node(std::string text, const ConfigNode& like) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::scalar;
  node.text = std::move(text);
  node.source = like.source;
  node.line = like.line;
  node.path = like.path;
  return node;
}

}  // namespace orrery::sweep
