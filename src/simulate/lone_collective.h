// SPDX-License-Identifier: Apache-2.0
/// A workload of one collective and nothing else.
#pragma once

#include <cstdint>

#include "graph/workload.h"

namespace orrery::simulate {

/// The one group of lone_collective().
inline constexpr graph::GroupIndex kLoneGroup(std::size_t{0});

struct LoneCollective {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  Bytes bytes{0};             ///< as of graph::Node
  graph::TokenRoute route{};  ///< as of graph::Node
  std::int64_t devices = 1;   ///< members of a group
  std::int64_t stride = 1;    ///< ranks between them
  std::int64_t ranks = 1;     ///< a multiple of devices * stride
  bool everywhere = false;    ///< in every group at once; else in that of rank 0
};

graph::Workload lone_collective(const LoneCollective& what);

}  // namespace orrery::simulate
