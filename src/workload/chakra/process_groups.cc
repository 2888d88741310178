// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/process_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/config_node.h"
#include "base/file.h"
#include "base/reader.h"

namespace orrery::chakra {
namespace {

bool is_digits(std::string_view name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string rank_range(std::int64_t ranks) {
  return fmt::format("a rank from 0 to {}", ranks - 1);
}

/// Numbers of a list; what is not a rank is a mistake.
std::vector<std::int64_t> read_ranks(const ConfigNode& list, std::int64_t ranks, Error& mistakes) {
  std::vector<std::int64_t> numbers;
  if (list.kind != ConfigNode::Kind::sequence) {
    mistakes.add(Mistake{list.where(), list.path, list.shown(), "a list of ranks"});
    return numbers;
  }
  numbers.reserve(list.items.size());
  for (const ConfigNode& item : list.items) {
    const auto number = parse_integer(item.text);
    if (item.kind != ConfigNode::Kind::scalar || item.quoted || !number || *number < 0 ||
        *number >= ranks) {
      mistakes.add(Mistake{item.where(), list.path, item.shown(), rank_range(ranks)});
      continue;
    }
    numbers.push_back(*number);
  }
  return numbers;
}

/// A rank that stands twice.
std::optional<std::int64_t> twice(std::vector<std::int64_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  const auto same = std::adjacent_find(ranks.begin(), ranks.end());
  return same == ranks.end() ? std::nullopt : std::optional(*same);
}

GroupDefinition read_definition(const ConfigNode& node, Error& mistakes) {
  GroupDefinition definition;
  const ConfigNode* name = node.find("pg_name");
  const ConfigNode* ranks = node.find("ranks");
  if (name == nullptr || name->kind != ConfigNode::Kind::scalar) {
    mistakes.add(Mistake{{}, node.path, node.shown(), "a map with pg_name"});
    return definition;
  }
  definition.name = canonical_group_name(name->text);
  if (ranks != nullptr && ranks->kind != ConfigNode::Kind::null) {
    definition.ranks = read_ranks(*ranks, std::int64_t{1} << 31, mistakes);
  }
  return definition;
}

}  // namespace

std::string_view canonical_group_name(std::string_view name) {
  while (is_digits(name) && name.front() == '0') {
    name.remove_prefix(1);
  }
  return name;
}

Result<std::vector<GroupDefinition>> parse_process_groups(std::string_view input_values) {
  std::vector<GroupDefinition> definitions;
  if (input_values.size() < 4 || input_values.find("pg_name") == std::string_view::npos) {
    return definitions;
  }
  const std::string_view text = input_values.substr(2, input_values.size() - 4);
  const auto list = parse_config(text, "", ConfigSyntax::json);
  if (!list) {
    return fail(Error(Mistake{{},
                              {},
                              {},
                              "a JSON list of process groups between two characters "
                              "at each end: " +
                                  list.error().to_string()}));
  }
  Error mistakes;
  if (list->kind != ConfigNode::Kind::sequence) {
    mistakes.add(Mistake{{}, {}, list->shown(), "a JSON list of process groups"});
  }
  for (const ConfigNode& node : list->items) {
    definitions.push_back(read_definition(node, mistakes));
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return definitions;
}

GroupTable::GroupTable(std::int64_t ranks) : ranks_(ranks), groups_(1), members_(1) {}

std::uint32_t GroupTable::store(std::string_view name, std::vector<std::int64_t> ranks) {
  const auto [first, last] = by_name_.equal_range(name);
  for (auto at = first; at != last; ++at) {
    if (groups_[at->second].ranks == ranks) {
      return at->second;
    }
  }
  const auto index = static_cast<std::uint32_t>(groups_.size());
  std::vector<std::int64_t>& members = members_.emplace_back();
  if (static_cast<std::int64_t>(ranks.size()) < ranks_) {
    members = ranks;
    std::sort(members.begin(), members.end());
  }
  groups_.push_back({std::string(name), std::move(ranks)});
  by_name_.emplace(name, index);
  return index;
}

Result<void> GroupTable::read_file(const std::string& path) {
  const auto text = orrery::read_file(path);
  if (!text) {
    return fail(text.error());
  }
  const auto node = parse_config(*text, path, ConfigSyntax::json);
  if (!node) {
    return fail(node.error());
  }
  Error mistakes;
  if (node->kind != ConfigNode::Kind::map) {
    mistakes.add(Mistake{node->where(), {}, node->shown(), "a map of group names to ranks"});
  }
  for (const ConfigField& field : node->fields) {
    const std::string_view name = canonical_group_name(field.name);
    if (!is_digits(name)) {
      mistakes.add(Mistake{
          field.value.where(), {}, field.name, "the name of a group: a whole number above 0"});
      continue;
    }
    std::vector<std::int64_t> ranks = read_ranks(field.value, ranks_, mistakes);
    if (const auto same = twice(ranks)) {
      mistakes.add(
          Mistake{field.value.where(), field.name, std::to_string(*same), "every rank once"});
    } else if (field.value.kind == ConfigNode::Kind::sequence && field.value.items.empty()) {
      mistakes.add(Mistake{field.value.where(), field.name, "[]", "at least one rank"});
    } else if (!of_file_.emplace(name, store(name, std::move(ranks))).second) {
      mistakes.add(Mistake{field.value.where(), {}, field.name, "a name of its own"});
    }
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  return {};
}

void GroupTable::define(const std::vector<GroupDefinition>& definitions, Mistakes& mistakes) {
  for (const GroupDefinition& definition : definitions) {
    const std::string field =
        fmt::format("process group '{}'", definition.name.empty() ? "0" : definition.name);
    const auto size = static_cast<std::int64_t>(definition.ranks.size());
    const auto beyond = std::find_if(definition.ranks.begin(), definition.ranks.end(),
                                     [&](std::int64_t rank) { return rank < 0 || rank >= ranks_; });
    if (beyond != definition.ranks.end()) {
      mistakes.add(field, std::to_string(*beyond),
                   rank_range(ranks_) +
                       (ranks_ == 1 ? ", or --devices N with the trace of one rank of several "
                                      "named PREFIX.all.json"
                                    : ""));
      continue;
    }
    if (const auto same = twice(definition.ranks)) {
      mistakes.add(field, std::to_string(*same), "every rank once");
      continue;
    }
    if (definition.name.empty()) {
      if (size != 0 && size != ranks_) {
        mistakes.add(field, fmt::format("{} ranks", size),
                     fmt::format("all {}: this name means the world", ranks_));
      }
      continue;
    }
    std::vector<std::int64_t> ranks = definition.ranks;
    if (ranks.empty()) {
      ranks.resize(static_cast<std::size_t>(ranks_));
      std::iota(ranks.begin(), ranks.end(), 0);
    }
    const std::uint32_t index = store(definition.name, std::move(ranks));
    const auto in_file = of_file_.find(definition.name);
    const bool known = in_file != of_file_.end() && in_file->second != index;
    if (known || of_trace_.emplace(definition.name, index).first->second != index) {
      mistakes.add(field, "other ranks", "the ranks that this name was given before");
    }
  }
}

void GroupTable::end_file() {
  of_trace_.clear();
}

std::optional<std::uint32_t> GroupTable::find(std::string_view name) const {
  for (const auto* names : {&of_trace_, &of_file_}) {
    if (const auto at = names->find(name); at != names->end()) {
      return at->second;
    }
  }
  return std::nullopt;
}

bool GroupTable::has_member(std::uint32_t group, std::int64_t rank) const {
  const std::vector<std::int64_t>& members = members_[group];
  return members.empty() || std::binary_search(members.begin(), members.end(), rank);
}

std::vector<std::string> GroupTable::names() const {
  std::vector<std::string> all;
  for (const auto* names : {&of_trace_, &of_file_}) {
    for (const auto& [name, index] : *names) {
      all.push_back(name);
    }
  }
  return all;
}

}  // namespace orrery::chakra
