// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/workload_groups.h"

#include <string>
#include <utility>

namespace orrery::chakra {

WorkloadGroups::WorkloadGroups(const graph::Workload& workload)
    : workload_(workload), groups_(1), group_of_(workload.groups.size()) {
  std::vector<bool> used(workload.groups.size());
  for (const graph::Program& program : workload.programs) {
    uses_.push_back(uses(program));
    for (std::size_t family = 0; family < used.size(); ++family) {
      used[family] = used[family] || uses_.back()[family].collective;
    }
  }
  for (std::size_t family = 0; family < used.size(); ++family) {
    if (used[family]) {
      number(family);
    }
  }
}

std::vector<WorkloadGroups::Use> WorkloadGroups::uses(const graph::Program& program) const {
  std::vector<Use> found(workload_.groups.size());
  for (const graph::Template& part : program.templates) {
    for (const graph::Node& node : part.nodes) {
      if (node.kind == graph::Node::Kind::collective) {
        Use& use = found[*node.group];
        use.collective = true;
        use.shift = use.shift || node.collective == graph::CollectiveKind::send_recv;
      }
    }
  }
  return found;
}

void WorkloadGroups::number(std::size_t family) {
  const graph::Members& all = workload_.groups[family].members;
  std::vector<std::uint32_t>& of_rank = group_of_[family];
  of_rank.assign(static_cast<std::size_t>(workload_.ranks), 0);
  for (std::int64_t rank = 0; rank < workload_.ranks; ++rank) {
    if (of_rank[static_cast<std::size_t>(rank)] != 0) {
      continue;
    }
    std::vector<std::int64_t> members = all.group(rank);
    const auto index = static_cast<std::uint32_t>(groups_.size());
    for (const std::int64_t member : members) {
      of_rank[static_cast<std::size_t>(member)] = index;
    }
    if (!members.empty()) {
      groups_.push_back({std::to_string(index), std::move(members)});
    }
  }
}

std::int64_t WorkloadGroups::size(std::int64_t rank, graph::GroupIndex family) const {
  const graph::Members& members = workload_.group(family).members;
  return members.by_digits() ? members.size() : std::ssize(members.group(rank));
}

std::int64_t WorkloadGroups::neighbour(std::int64_t rank, graph::GroupIndex family,
                                       std::int64_t step) const {
  const graph::Members& members = workload_.group(family).members;
  const std::int64_t count = size(rank, family);
  return members.member(rank, (members.coordinate(rank) + step + count) % count);
}

std::vector<std::int64_t> WorkloadGroups::differences(std::int64_t rank, int role) const {
  std::vector<std::int64_t> found;
  const std::vector<Use>& used = uses_[workload_.role(role).program];
  for (std::size_t family = 0; family < used.size(); ++family) {
    const graph::GroupIndex index(family);
    if (used[family].shift) {
      found.push_back(neighbour(rank, index, 1) - rank);
      found.push_back(neighbour(rank, index, -1) - rank);
    }
    if (used[family].collective && !workload_.group(index).members.by_digits()) {
      found.push_back(size(rank, index));
    }
  }
  return found;
}

}  // namespace orrery::chakra
