// SPDX-License-Identifier: Apache-2.0
#include "graph/workload.h"

namespace orrery::graph {

GroupIndex Workload::group_named(std::string_view name) const {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].name == name) {
      return GroupIndex(i);
    }
  }
  return {};
}

std::optional<std::vector<Digit>> atoms(const Workload& workload) {
  std::vector<Digit> parts;
  for (const Group& group : workload.groups) {
    if (!group.members.by_digits()) {
      return std::nullopt;
    }
    parts.insert(parts.end(), group.members.digits.begin(), group.members.digits.end());
  }
  if (!workload.role_map.list.empty()) {
    return std::nullopt;
  }
  return refine(parts, workload.role_map.digits, workload.ranks);
}

}  // namespace orrery::graph
