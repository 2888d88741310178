// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/workload_groups.h"

#include <algorithm>
#include <string>

namespace orrery::chakra {
namespace {

/// Which axes have collectives, and which ring shifts.
struct UsedAxes {
  std::array<bool, kAxisCount> collective{};
  std::array<bool, kAxisCount> shift{};

  void add(const Template& part) {
    for (const orrery::Node& node : part.nodes) {
      if (node.kind == orrery::Node::Kind::collective) {
        const bool shifts = node.collective == CollectiveKind::send_recv;
        (shifts ? shift : collective)[static_cast<std::size_t>(node.axis)] = true;
      }
    }
  }
};

}  // namespace

WorkloadGroups::WorkloadGroups(const Workload& workload)
    : layout_(workload.layout), groups_(1), shifted_(workload.programs.size()) {
  std::array<bool, kAxisCount> used{};
  for (std::size_t role = 0; role < workload.programs.size(); ++role) {
    UsedAxes axes;
    for (const Template& part : workload.programs[role].templates) {
      axes.add(part);
    }
    for (std::size_t axis = 0; axis < kAxisCount; ++axis) {
      used[axis] = used[axis] || axes.collective[axis];
      if (axes.shift[axis]) {
        shifted_[role].push_back(static_cast<Axis>(axis));
      }
    }
  }
  for (std::size_t axis = 0; axis < kAxisCount; ++axis) {
    if (used[axis]) {
      number(static_cast<Axis>(axis));
    }
  }
}

void WorkloadGroups::number(Axis axis) {
  const std::int64_t ranks = layout_.ranks();
  std::vector<std::uint32_t>& of_rank = group_of_[static_cast<std::size_t>(axis)];
  of_rank.assign(static_cast<std::size_t>(ranks), 0);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    if (of_rank[static_cast<std::size_t>(rank)] != 0) {
      continue;
    }
    std::vector<std::int64_t> members = layout_.group(rank, axis);
    const auto index = static_cast<std::uint32_t>(groups_.size());
    for (const std::int64_t member : members) {
      of_rank[static_cast<std::size_t>(member)] = index;
    }
    if (!members.empty()) {
      groups_.push_back({std::to_string(index), std::move(members)});
    }
  }
}

std::int64_t WorkloadGroups::neighbour(std::int64_t rank, Axis axis, std::int64_t step) const {
  const std::int64_t size = layout_.size(axis);
  const std::int64_t own = layout_.coordinate(rank, axis);
  return layout_.with(rank, axis, (own + step + size) % size);
}

}  // namespace orrery::chakra
