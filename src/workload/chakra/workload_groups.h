// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "graph/workload.h"
#include "workload/chakra/trace.h"

namespace orrery::chakra {

/// The communicators of a workload as groups with names "1", "2", ...: axis after axis, of one axis
/// by lowest member; only of axes with collectives.
class WorkloadGroups {
 public:
  explicit WorkloadGroups(const Workload& workload);

  /// Index of the group of `axis` that holds `rank`; 0 when there is none.
  std::uint32_t index(std::int64_t rank, Axis axis) const {
    const auto& groups = group_of_[static_cast<std::size_t>(axis)];
    return groups.empty() ? 0 : groups[static_cast<std::size_t>(rank)];
  }
  /// The member `step` places further in the rank's group of `axis`, cyclic.
  std::int64_t neighbour(std::int64_t rank, Axis axis, std::int64_t step) const;
  /// Axes on which the role shifts buffers around a ring.
  const std::vector<Axis>& shifted_axes(std::int64_t role) const {
    return shifted_[static_cast<std::size_t>(role)];
  }
  std::vector<Group> take() { return std::move(groups_); }

 private:
  void number(Axis axis);

  const RankLayout& layout_;
  std::vector<Group> groups_;
  std::array<std::vector<std::uint32_t>, kAxisCount> group_of_;  ///< by rank; empty: not used
  std::vector<std::vector<Axis>> shifted_;                       ///< by role
};

}  // namespace orrery::chakra
