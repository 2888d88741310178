// SPDX-License-Identifier: Apache-2.0
/// Wiring says who talks to whom among the simulated ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/workload.h"
#include "simulate/bind.h"
#include "simulate/fold.h"
#include "simulate/rank_state.h"

namespace orrery::simulate {

using CommunicatorIndex = std::int32_t;

/// Simulated members of one communicator, ascending.
struct Communicator {
  graph::GroupIndex group;
  std::vector<RankIndex> members;
};

/// The route of one rank's messages of one flow.
struct FlowRoute {
  std::uint32_t number = 0;
  RankIndex source = 0;
  RankIndex target = 0;
  std::int64_t from = 0;  ///< ranks, as they lie on the machine
  std::int64_t to = 0;
  std::uint32_t mailbox = 0;  ///< of the target: what its receives of this flow wait at
};

class Wiring {
 public:
  static constexpr std::int32_t kNone = -1;

  /// `bound`: everything that sends or receives.
  Wiring(const graph::Workload& workload, const Binding& bound, const Fold& fold);

  const std::vector<std::int64_t>& ranks() const { return ranks_; }
  const std::vector<graph::Digit>& folded() const { return folded_; }
  const LinkMirrors& mirrors() const { return mirrors_; }
  std::size_t communicator_count() const { return communicators_.size(); }
  /// Returns the rank's communicator of a group; kNone when it is alone.
  CommunicatorIndex communicator_of(RankIndex rank, graph::GroupIndex group) const {
    return communicator_of_[rank * groups_ + *group];
  }
  const Communicator& communicator(CommunicatorIndex number) const {
    return communicators_[static_cast<std::size_t>(number)];
  }
  const std::vector<FlowRoute>& routes() const { return routes_; }
  const FlowRoute& route_of(RankIndex rank, int flow) const { return routes_[end_of(rank, flow)]; }
  std::uint32_t mailbox_of(RankIndex rank, int flow) const { return end_of(rank, flow); }
  std::size_t mailbox_count() const { return mailboxes_; }

 private:
  void build_communicators(const graph::Workload& workload);
  void build_routes(const graph::Workload& workload, const Binding& bound, const Fold& fold);
  std::uint32_t end_of(RankIndex rank, int flow) const {
    return ends_[first_end_[rank] + static_cast<std::size_t>(flow)];
  }

  std::vector<std::int64_t> ranks_;
  std::vector<graph::Digit> folded_;  ///< digits of rank numbers in which simulated ranks are 0
  LinkMirrors mirrors_;
  std::size_t groups_ = 0;
  std::vector<Communicator> communicators_;
  std::vector<CommunicatorIndex> communicator_of_;  ///< by rank and group
  std::vector<FlowRoute> routes_;
  /// Holds, by rank and flow of its program, the route of a send or the mailbox of a receive.
  std::vector<std::uint32_t> ends_;
  std::vector<std::size_t> first_end_;
  std::size_t mailboxes_ = 0;
};

}  // namespace orrery::simulate
