// SPDX-License-Identifier: Apache-2.0
/// Says where the communicators and messages of one layout lie on a machine.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "estimate/shared_links.h"
#include "graph/workload.h"
#include "machine/copy_time.h"
#include "machine/machine.h"
#include "workload/plan/axes.h"

namespace orrery::estimate {

/// A family of communicators.
struct Communicator {
  graph::Members members;
  std::vector<collective::Extent> extents;
  bool crossing = false;  ///< shares links with others
  GroupMembers first;
  SharedLinks::Crowd crowd;
  /// Known is one answer of loads().
  struct Known {
    collective::CollectivePhase phase;  ///< in parts of its time
    std::optional<double> meanwhile;
    std::vector<PortLoad> ports;
    bool crosses = false;
  };
  static constexpr std::size_t kMostKnown = 64;
  std::vector<Known> known;
};

class Placement {
 public:
  /// The machine must outlive it.
  Placement(plan::RankLayout layout, const machine::Machine& machine);
  Placement(const Placement&) = delete;  // its links refer to themselves
  Placement& operator=(const Placement&) = delete;

  const plan::RankLayout& layout() const { return layout_; }
  const machine::Machine& machine() const { return machine_; }
  /// Returns whether different devices use the same links, in some dimension.
  bool crossing() const { return links_.crossing(); }
  /// Tables of a step, without programs.
  const graph::Workload& tables() const { return tables_; }

  Communicator& communicator(graph::GroupIndex group);
  /// Returns the ports of a phase of one group alone; or of all groups of a stage at once,
  /// `meanwhile`: for how much of the time those of other stages move as well.
  const Communicator::Known& loads(Communicator& communicator,
                                   const collective::CollectivePhase& phase,
                                   std::optional<double> meanwhile);
  std::uint32_t port(const machine::CopyPort& port, graph::CopyDirection direction) const;

  /// Returns the number of the way of a stage's messages, of all its ranks at once; between
  /// mirrored stages, which exchange at the end of the step, of all stages. Equal ways have one
  /// number.
  int way(plan::Channel channel, std::int64_t stage);
  const MessageWay& way(int number) const { return ways_[static_cast<std::size_t>(number)]; }

 private:
  MessageWay find_way(plan::Channel channel, std::int64_t stage);
  /// Returns whether all messages between two stages cross the same distance.
  bool is_aligned() const;
  const std::vector<std::int64_t>& first_stage();

  plan::RankLayout layout_;
  const machine::Machine& machine_;
  graph::Workload tables_;
  SharedLinks links_;
  std::int64_t stages_;
  std::vector<std::int64_t> first_stage_;  ///< its ranks; empty: not asked for
  std::array<std::unique_ptr<Communicator>, plan::kAxisCount> communicators_;
  std::vector<MessageWay> ways_;
  std::vector<std::array<int, plan::kChannelCount>> way_numbers_;  ///< by stage; -1: not known
};

/// A collective of the groups of one sort.
struct GroupCollective {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  graph::GroupIndex group;
  Bytes bytes{0};
  graph::TokenRoute route{};  ///< Node::route

  friend bool operator==(const GroupCollective&, const GroupCollective&) = default;
};

/// Returns the price of a collective of one group, alone; null: it has nothing to move, or nobody
/// to move it to. Valid until the next question of the prices.
const CollectiveTime* price_of(const GroupCollective& one,
                               const collective::AlgorithmChoice& choice, Placement& placement,
                               Prices& prices);

/// Placements of the layouts of a sweep's plans, each found once.
class Placements {
 public:
  static constexpr std::size_t kMost = 256;

  /// Returns the placement of a layout, valid until the next call. The machine must outlive it.
  Placement& of(plan::RankLayout layout, const machine::Machine& machine);

 private:
  std::vector<std::unique_ptr<Placement>> placements_;
};

}  // namespace orrery::estimate
