// SPDX-License-Identifier: Apache-2.0
#include "workload/interop/deepspeed_keys.h"

#include <algorithm>

#include "base/names.h"

namespace orrery::interop {
namespace {

/// Returns the flag of `orrery import` that fills an "auto" of this key; empty: nothing needs it.
std::string_view filling_flag(std::string_view key) {
  for (const AutomaticKey& row : kDeepSpeedAutomatic) {
    if (row.key == key) {
      return row.flag;
    }
  }
  return {};
}

}  // namespace

void drop_automatic(ConfigNode& node, std::vector<Remark>& remarks) {
  const auto is_auto = [](const ConfigField& field) {
    return field.value.quoted && field.value.text == "auto";
  };
  for (const ConfigField& field : node.fields) {
    if (is_auto(field)) {
      const std::string_view flag = filling_flag(field.value.path);
      remarks.push_back({field.value.path,
                         flag.empty() ? std::string("\"auto\": without weight for time and memory")
                                      : "\"auto\": taken from " + std::string(flag)});
    }
  }
  std::erase_if(node.fields, is_auto);
  for (ConfigField& field : node.fields) {
    drop_automatic(field.value, remarks);
  }
}

bool is_foreign(std::string_view name, const ConfigNode& /*node*/) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all{kDeepSpeedIgnored.begin(), kDeepSpeedIgnored.end()};
    all.insert(all.end(), kDeepSpeedRead.begin(), kDeepSpeedRead.end());
    return all;
  }();
  return closest(name, names) == nullptr;
}

bool is_on(const ConfigNode& node) {
  if (node.kind != ConfigNode::Kind::map) {
    return node.text != "false" && node.text != "0" && node.kind != ConfigNode::Kind::null;
  }
  const ConfigNode* enabled = node.find("enabled");
  if (enabled != nullptr) {
    return enabled->text != "false";
  }
  const bool nested = std::ranges::any_of(node.fields, [](const ConfigField& field) {
    return field.value.kind == ConfigNode::Kind::map;
  });
  return !nested ? !node.fields.empty()
                 : std::ranges::any_of(node.fields, [](const ConfigField& field) {
                     return field.value.kind == ConfigNode::Kind::map && is_on(field.value);
                   });
}

}  // namespace orrery::interop
