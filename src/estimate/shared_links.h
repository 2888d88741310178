// SPDX-License-Identifier: Apache-2.0
/// What messages and groups that move at the same moment take from one another.
///
///   On a switch and between fully connected devices every rank has ports of its own. On rings,
///   tori and meshes the ways of neighbours cross the same links: n transfers on one link take n
///   times as long.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "collective/cost.h"
#include "machine/machine.h"
#include "machine/topology/topology.h"

namespace orrery::estimation {

/// Rings, tori and meshes.
bool is_line(const NetworkDimension& dimension);

/// Ranks of one communicator.
using GroupMembers = std::vector<std::int64_t>;

/// A message from one rank to another.
struct Pair {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// The slowest of some messages of equal size that leave at one moment.
struct MessageWay {
  Time latency{0};
  double seconds_per_byte = 0;  ///< alone
  double sharing = 1;           ///< messages on its busiest link
  int dimension = -1;           ///< the outermost that it crosses

  Time alone(Bytes bytes) const;
  Time shared(Bytes bytes) const;
};

class SharedLinks {
 public:
  explicit SharedLinks(const Machine& machine);

  /// Whether neighbours cross each other's links in some dimension, or in this one.
  bool crossing() const { return crossing_; }
  bool crossing(const Extent& extent) const;

  /// Most groups on one link when all of them use their part in the extent's dimension.
  double groups_on_a_link(const std::vector<GroupMembers>& groups, const Extent& extent);
  MessageWay slowest(const std::vector<Pair>& messages);

 private:
  /// Adds one to every link of the list, once; returns the most on one of them.
  int count(std::vector<LinkId>& links);
  void clear();

  Topology topology_;
  bool crossing_ = false;
  std::vector<int> on_link_;
  std::vector<LinkId> used_;
};

}  // namespace orrery::estimation
