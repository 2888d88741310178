// SPDX-License-Identifier: Apache-2.0
/// The messages of collectives among the ranks that take part, ready to send.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "collective/message_list.h"
#include "collective/phase_messages.h"
#include "simulate/bind.h"
#include "simulate/wiring.h"

namespace orrery::simulate {

/// A run of more messages than this takes hours.
inline constexpr double kMostMessagesOfARun = 2e9;

/// A RankPair says who sends to whom.
struct RankPair {
  std::int64_t source = 0;
  std::int64_t target = 0;
};

/// Routes one after the other.
class RouteTable {
 public:
  std::span<const topology::Hop> operator[](std::size_t route) const {
    return std::span(hops_).subspan(first_[route], first_[route + 1] - first_[route]);
  }
  void add(std::span<const topology::Hop> hops, std::int64_t source, std::int64_t destination) {
    hops_.insert(hops_.end(), hops.begin(), hops.end());
    first_.push_back(hops_.size());
    ends_.emplace_back(static_cast<std::int32_t>(source), static_cast<std::int32_t>(destination));
  }
  /// Returns the hops of all routes.
  const std::vector<topology::Hop>& hops() const { return hops_; }
  RankPair ends(std::size_t route) const { return {ends_[route].first, ends_[route].second}; }

 private:
  std::vector<std::pair<std::int32_t, std::int32_t>> ends_;
  std::vector<topology::Hop> hops_;
  std::vector<std::size_t> first_{0};
};

/// One phase of a collective in one communicator. Where it spans some of the communicator's extents
/// only, `groups` of members run its schedule beside each other.
struct PhasePlan {
  const collective::MessageList* list = nullptr;
  const RouteTable* routes = nullptr;  ///< by group and pair of the list
  std::uint32_t groups = 1;
  Bytes size{0};
  Time setup{0};  ///< before the first message

  std::size_t messages() const { return groups * list->size(); }
  std::span<const topology::Hop> route(std::uint32_t group, std::uint32_t message) const {
    return (*routes)[group * list->pairs().size() + list->pair(message)];
  }
  RankPair ends(std::uint32_t group, std::uint32_t message) const {
    return routes->ends(group * list->pairs().size() + list->pair(message));
  }
  /// Returns the bytes of a message, which are whole.
  Bytes bytes(std::uint32_t message) const;
};

/// Schedules are kept once for all communicators of one shape, routes once for all sizes that run
/// under the same protocols. Where ranks fold (Wiring::mirrors) only what simulated ranks send is
/// there, in the groups that hold one; of collectives apart (LinkMirrors) what all members send.
class MessagePlans {
 public:
  /// Rounds says whether plans have all rounds of lists in which these are alike
  /// (MessageList::of_rings), or two, which suffice to look at what is sent: rings of p members so
  /// cost p, and not p^2.
  enum class Rounds : std::uint8_t { all, two };

  /// All must outlive the plans.
  MessagePlans(const Wiring& wiring, Binding& binding, const machine::Machine& machine,
               Rounds rounds = Rounds::all)
      : wiring_(wiring),
        binding_(binding),
        machine_(machine),
        rounds_(rounds),
        plans_(wiring.communicator_count()) {}

  /// Mistakes: algorithms that have no messages (phase_messages.h), by group; more than
  /// kMostMessagesOfARun. `network`: as the user calls it.
  Result<void> check(const graph::Workload& workload, std::string_view network);
  /// Checks the algorithms alone.
  Result<void> check_algorithms(const graph::Workload& workload, std::string_view network);

  /// Cost of what all simulated ranks send, if cost(bytes, links of the route) is a message's; 0
  /// for work that is not a list. Requires check().
  using Cost = std::function<double(Bytes, std::size_t)>;
  using Links = std::function<std::size_t(const FlowRoute&)>;
  double cost_of(const graph::Workload& workload, const Cost& cost, const Links& links);

  /// References stay valid. Requires check().
  const std::vector<PhasePlan>& of(CommunicatorIndex communicator, int collective);

 private:
  /// A Shape is what two phases with the same schedule and the same ways agree in. Without
  /// `communicator` they agree in the schedule alone.
  struct Shape {
    CommunicatorIndex communicator = Wiring::kNone;
    graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
    collective::CollectiveAlgorithm algorithm = collective::CollectiveAlgorithm::ring;
    std::vector<std::int64_t> ports;  ///< dimension, count, stride, protocol of each
    bool mirrored = true;             ///< of routes
    friend auto operator<=>(const Shape&, const Shape&) = default;
  };
  using Groups = std::vector<std::vector<std::int64_t>>;

  std::int64_t first_member(CommunicatorIndex communicator) const {
    return wiring_.ranks()[wiring_.communicator(communicator).members.front()];
  }
  double messages_of(CommunicatorIndex communicator, int collective);
  double messages_of(RankIndex rank, const BoundTemplate& shape);
  double cost_of(CommunicatorIndex communicator, int collective, const Cost& cost);
  /// Returns the sum over all instances of a list of work, if of(rank, template) is one instance's.
  using OfTemplate = std::function<double(RankIndex, const BoundTemplate&)>;
  double sum_of(const graph::Workload& workload, const OfTemplate& of) const;
  static Shape shape_of(const collective::CollectivePhase& phase);
  /// Returns the part of a collective's messages that the plans have, where rings fold.
  double share_sent(CommunicatorIndex communicator, int collective) const;
  const collective::MessageList& two_rounds(const collective::CollectivePhase& phase);
  const collective::MessageList& list(const collective::CollectivePhase& phase);
  /// Returns what simulated ranks send of a phase, where ranks fold.
  const collective::MessageList& list(CommunicatorIndex communicator,
                                      const collective::CollectivePhase& phase,
                                      const Groups& groups);
  /// Returns the routes of a phase. `mirrored`: on the links that stand for those of the routes.
  const RouteTable& routes(CommunicatorIndex communicator, const collective::CollectivePhase& phase,
                           const collective::MessageList& list, const Groups& groups,
                           bool mirrored);
  PhasePlan plan_of(CommunicatorIndex communicator, const collective::CollectivePhase& phase,
                    Groups groups, bool apart);

  const Wiring& wiring_;
  Binding& binding_;
  const machine::Machine& machine_;
  Rounds rounds_;
  std::vector<std::vector<std::unique_ptr<std::vector<PhasePlan>>>> plans_;
  std::map<Shape, collective::MessageList> two_rounds_;
  std::map<Shape, collective::MessageList> lists_;  ///< of those that leave rounds out
  std::map<Shape, collective::MessageList> folded_lists_;
  std::map<Shape, RouteTable> routes_;
};

/// Returns the members of a communicator (ranks, ascending) by the groups in which they run
/// `phase`, each in the order of its schedule. `phases`: of the whole collective; their extents
/// span the members.
std::vector<std::vector<std::int64_t>> groups_of(
    const collective::CollectivePhase& phase,
    const std::vector<collective::CollectivePhase>& phases,
    const std::vector<std::int64_t>& members);

}  // namespace orrery::simulate
