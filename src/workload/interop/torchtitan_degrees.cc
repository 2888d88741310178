// SPDX-License-Identifier: Apache-2.0
#include "workload/interop/torchtitan_degrees.h"

#include <algorithm>
#include <iterator>

namespace orrery::interop {
namespace {

ConfigField* field_of(ConfigNode& node, std::string_view name) {
  const auto at = std::ranges::find(node.fields, name, &ConfigField::name);
  return at == node.fields.end() ? nullptr : &*at;
}

}  // namespace

void move_degrees(ConfigNode& node) {
  const auto is_degree = [](const ConfigField& field) {
    const std::string_view name = field.name;
    return name.find("_parallel_") != name.npos || name.ends_with("_tensor_parallel") ||
           name.starts_with("fsdp_") || name == "enable_compiled_autograd";
  };
  for (const std::string_view table : {"training", "experimental"}) {
    ConfigField* found = field_of(node, table);
    if (found == nullptr || std::ranges::none_of(found->value.fields, is_degree)) {
      continue;
    }
    ConfigNode from = std::move(found->value);
    ConfigField* into = field_of(node, "parallelism");
    if (into == nullptr) {
      node.fields.push_back({"parallelism", {}});
      into = &node.fields.back();
      into->value.kind = ConfigNode::Kind::map;
      into->value.source = from.source;
      into->value.line = from.line;
      into->value.path = "parallelism";
    }
    const auto stays = [&](const ConfigField& each) {
      return !is_degree(each) || into->value.find(each.name) != nullptr;
    };
    const auto moved = std::stable_partition(from.fields.begin(), from.fields.end(), stays);
    std::move(moved, from.fields.end(), std::back_inserter(into->value.fields));
    from.fields.erase(moved, from.fields.end());
    field_of(node, table)->value = std::move(from);
  }
}

}  // namespace orrery::interop
