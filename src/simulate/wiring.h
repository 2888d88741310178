// SPDX-License-Identifier: Apache-2.0
/// Who talks to whom among the simulated ranks, and over which links.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "collective/occupancy.h"
#include "graph/workload.h"
#include "machine/network/analytical.h"
#include "machine/topology/link_map.h"
#include "simulate/bind.h"

namespace orrery {

/// Position of a rank among the simulated ones.
using RankIndex = std::uint32_t;

/// Simulated members of one communicator, ascending.
struct Group {
  std::vector<RankIndex> members;
  std::vector<int> links;  ///< by collective: first entry in Wiring's lists, -1 = not made yet
};

/// The way of one rank's pipeline messages of one channel.
struct Way {
  RankIndex source = 0;
  RankIndex target = 0;
  Channel channel = Channel::forward;
  Route route;
  std::vector<LinkUse> links;
};

class Wiring {
 public:
  static constexpr int kNone = -1;

  Wiring(const RankLayout& layout, const BoundWorkload& bound, LinkMap topology,
         std::vector<std::int64_t> ranks);

  const LinkMap& topology() const { return topology_; }
  std::size_t group_count() const { return groups_.size(); }
  /// The communicator of `axis` that holds the rank; kNone when it is alone.
  int group_of(RankIndex rank, Axis axis) const {
    return group_of_[rank][static_cast<std::size_t>(axis)];
  }
  const std::vector<RankIndex>& members(int group) const {
    return groups_[static_cast<std::size_t>(group)].members;
  }
  int way_of(RankIndex rank, Channel channel) const {
    return way_of_[rank][static_cast<std::size_t>(channel)];
  }
  const Way& way(int number) const { return ways_[static_cast<std::size_t>(number)]; }

  /// Links that one phase of a collective occupies; made at first use.
  const std::vector<LinkUse>& links(int group, int collective, std::size_t phase);

 private:
  void build_groups(const RankLayout& layout);
  void build_ways(const RankLayout& layout);
  std::vector<LinkUse> phase_links(const Group& group, const CollectivePhase& phase) const;
  int make_links(const Group& group, const BoundCollective& collective);

  const BoundWorkload& bound_;
  LinkMap topology_;
  std::vector<std::int64_t> ranks_;
  std::vector<Group> groups_;
  std::vector<Way> ways_;
  std::vector<std::array<int, kAxisCount>> group_of_;
  std::vector<std::array<int, kChannelCount>> way_of_;
  std::vector<std::vector<LinkUse>> link_lists_;
};

/// Time for which the busiest link of a phase is held, unshared.
Time longest_serialisation(const CollectivePhase& phase);

}  // namespace orrery
