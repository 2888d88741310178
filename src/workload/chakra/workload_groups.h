// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "graph/workload.h"
#include "workload/chakra/trace.h"

namespace orrery::chakra {

/// The communicators of a workload as groups with names "1", "2", ...: family after family of its
/// table, of one family by lowest member; only of families with collectives.
class WorkloadGroups {
 public:
  explicit WorkloadGroups(const graph::Workload& workload);

  /// Returns the index of the communicator of `family` that holds `rank`; 0 when there is none.
  std::uint32_t index(std::int64_t rank, graph::GroupIndex family) const {
    const auto& groups = group_of_[*family];
    return groups.empty() ? 0 : groups[static_cast<std::size_t>(rank)];
  }
  /// Returns how many members the rank's communicator has.
  std::int64_t size(std::int64_t rank, graph::GroupIndex family) const;
  /// Returns the member `step` places further in the rank's communicator, cyclic.
  std::int64_t neighbour(std::int64_t rank, graph::GroupIndex family, std::int64_t step) const;
  /// Returns what distinguishes ranks of one role from one another: in families in which the role
  /// shifts buffers around a ring the distances to both neighbours, in listed ones the number of
  /// members.
  std::vector<std::int64_t> differences(std::int64_t rank, int role) const;

  std::vector<Group> take() { return std::move(groups_); }

 private:
  struct Use {
    bool collective = false;
    bool shift = false;
  };
  std::vector<Use> uses(const graph::Program& program) const;
  void number(std::size_t family);

  const graph::Workload& workload_;
  std::vector<Group> groups_;
  std::vector<std::vector<std::uint32_t>> group_of_;  ///< [family][rank]; empty: not used
  std::vector<std::vector<Use>> uses_;                ///< [program][family]
};

}  // namespace orrery::chakra
