// SPDX-License-Identifier: Apache-2.0
/// The seam between the event loop and the network.
///
/// A transport moves what the loop hands it and says when it has arrived (a compile-time interface:
/// the loop is instantiated per transport, so no virtual call is made per event):
///
///   begin_collective(id, communicator, collective)   all its simulated members have come
///   begin_copy(id, rank, collective)                 of one rank, to or from another memory tier
///   begin_message(id, route, bytes)                  from one rank to another
///   handle(event)                                    -> id of what has finished, if any
///   settle()                                         an instant is over; may push events
///   undisturbed(communicator, collective)            its time, if nothing else ever uses its links
///   check(workload, network)                         before anything begins: what it cannot do
///   expect_faults()                                  before anything begins; if kLinksChange
///   change_link(link, share)                         a fault; true if reroute() is to be called
///                                                    when the loss is known
///   kFolds                                           whether one of several ranks alike may stand
///                                                    for all (fold.h, message_fold.h)
///   kRepeats                                         whether steady.h may jump over periods
///   kPhases                                          the phases that it can move (bind.h)
///
/// Events that a transport pushes have kind kFirstTransportEvent or above. networks.cc
/// lists the transports.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "collective/occupancy.h"
#include "engine/event_queue.h"
#include "machine/machine.h"
#include "machine/network/analytical.h"
#include "machine/topology/link_map.h"
#include "simulate/bind.h"
#include "simulate/laid_phases.h"
#include "simulate/link_users.h"
#include "simulate/wiring.h"

namespace orrery::simulate {

/// An Activity is what a transport is asked to move, from begin to the event that finishes it.
using Activity = std::uint32_t;

inline constexpr std::uint32_t kFirstTransportEvent = network::AnalyticalNetwork::kFirstEvent;

/// Collectives phase by phase on the ports that they occupy (collective/cost.h), messages on those
/// of their routes; ports shared as AnalyticalNetwork says. The fast model: a collective of many
/// ranks is a few events, and ranks fold. On a machine with a topology phases and messages occupy
/// its links instead (laid_phases.h), and no rank folds; copies keep the ports.
class PortTransport {
 public:
  static constexpr bool kFolds = true;
  static constexpr bool kLinksChange = false;  // a phase holds all its links together
  static constexpr PhaseChoice kPhases = PhaseChoice::all;

  PortTransport(const Wiring& wiring, Binding& binding, const machine::Machine& machine,
                engine::EventQueue& queue);

  /// Mistakes: on a topology algorithms that have no messages.
  Result<void> check(const graph::Workload& workload, std::string_view network) {
    return laid_ ? laid_->check(workload, network) : Result<void>();
  }
  void begin_collective(Activity id, CommunicatorIndex communicator, int collective);
  void begin_copy(Activity id, RankIndex rank, int collective);
  void begin_message(Activity id, const FlowRoute& route, Bytes bytes);
  std::optional<Activity> handle(const engine::EventQueue::Event& event);
  void settle() { network_.settle(queue_); }
  void expect_faults() {}
  bool change_link(topology::LinkId /*link*/, double /*share*/) { return false; }
  void reroute() {}
  std::optional<Time> undisturbed(CommunicatorIndex communicator, int collective);

  /// For steady.h: what decides how the activities in flight, listed in `live`, go on; of which of
  /// them an event is (nothing: it does nothing); time moved on.
  static constexpr bool kRepeats = true;
  void describe(const std::vector<Activity>& live, std::vector<std::int64_t>& state) const;
  std::optional<Activity> activity_of(const engine::EventQueue::Event& event) const {
    return network_.is_stale(event) ? std::nullopt : std::optional(owners_[event.subject]);
  }
  void shift(Time by) { network_.shift(by); }

 private:
  /// A collective in one communicator: its phases, and the links of each.
  struct Plan {
    const std::vector<collective::CollectivePhase>* phases = nullptr;
    std::vector<Time> serialisation;
    std::vector<std::vector<topology::LinkUse>> links;
  };
  /// Under says what an activity does next.
  struct Under {
    const Plan* plan = nullptr;  ///< of a collective
    std::size_t phase = 0;
    network::TransferId transfer = 0;
  };

  const Plan& plan(CommunicatorIndex communicator, int collective);
  Plan make_plan(CommunicatorIndex communicator, int collective);
  const topology::Route& laid_route(const FlowRoute& route);
  void start_phase(Activity id);
  /// The port of a rank that a copy uses, if any; stays where it is.
  std::span<const topology::LinkUse> copy_links(RankIndex rank, const BoundCollective& copy);
  void own(network::TransferId transfer, Activity id);
  void count_users();

  const Wiring& wiring_;
  Binding& binding_;
  const machine::Machine& machine_;
  engine::EventQueue& queue_;
  topology::LinkMap links_;
  collective::Occupancy occupancy_;
  std::optional<LaidPhases> laid_;  ///< of a machine with a topology; its links follow links_
  network::AnalyticalNetwork network_;
  std::vector<std::vector<std::unique_ptr<Plan>>> plans_;  ///< [communicator][collective]
  std::vector<std::unique_ptr<topology::Route>> routes_;   ///< by route
  std::map<std::pair<topology::LinkId, int>, topology::LinkUse> copies_;  ///< by port and tier
  std::vector<Activity> owners_;                                          ///< by TransferId
  std::vector<Under> under_;                                              ///< by Activity
  LinkUsers users_;  ///< counted when first asked for
};

}  // namespace orrery::simulate
