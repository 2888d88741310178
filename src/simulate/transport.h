// SPDX-License-Identifier: Apache-2.0
/// The seam between the event loop and the network.
///
/// A transport moves what the loop hands it and says when it has arrived. networks.cc lists the
/// transports.
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
#include "simulate/progress.h"
#include "simulate/timeline.h"
#include "simulate/wiring.h"

namespace orrery::simulate {

/// An Activity is what a transport is asked to move, from begin to the event that finishes it.
using Activity = std::uint32_t;

/// Events that a transport pushes are of this kind or above.
inline constexpr std::uint32_t kFirstTransportEvent = network::AnalyticalNetwork::kFirstEvent;

/// A Transport is what a network is to the loop.
class Transport {
 public:
  struct Traits {
    bool folds = false;         ///< one of several ranks alike may stand for all (fold.h)
    bool links_change = false;  ///< for faults
    bool repeats = false;       ///< steady.h may jump over periods
    bool looks_ahead = false;   ///< settle() comes last in an instant
    PhaseChoice phases = PhaseChoice::all;  ///< that it can move (bind.h)
  };

  explicit Transport(const Traits& traits) : traits_(traits) {}
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;
  const Traits& traits() const { return traits_; }

  /// Says, before anything begins, what it cannot do.
  virtual Result<void> check(const graph::Workload& workload, std::string_view network) = 0;
  /// Begins a collective, all simulated members of which have come.
  virtual void begin_collective(Activity id, CommunicatorIndex communicator, int collective) = 0;
  /// Begins a copy of one rank, to or from another memory tier.
  virtual void begin_copy(Activity id, RankIndex rank, int collective) = 0;
  virtual void begin_message(Activity id, const FlowRoute& route, Bytes bytes) = 0;
  /// Returns what has finished, if anything.
  virtual std::optional<Activity> handle(const engine::EventQueue::Event& event) = 0;
  /// Ends an instant; may push events.
  virtual void settle() = 0;
  /// Returns the time of a collective if nothing else ever uses its links. Requires that no faults
  /// are expected and no messages recorded.
  virtual std::optional<Time> undisturbed(CommunicatorIndex communicator, int collective) = 0;

  /// Adds what decides how the activities in flight, listed in `live`, go on (for steady.h, if it
  /// repeats, as the next two).
  virtual void describe(const std::vector<Activity>& /*live*/,
                        std::vector<std::int64_t>& /*state*/) const {}
  /// Returns of which activity an event is; nothing: it does nothing.
  virtual std::optional<Activity> activity_of(const engine::EventQueue::Event& /*event*/) const {
    return std::nullopt;
  }
  /// Moves time on.
  virtual void shift(Time /*by*/) {}

  /// Says, before anything begins, that links may change.
  virtual void expect_faults() {}
  /// Gives a link another share of its bandwidth. Returns whether reroute() is to be called when
  /// the loss is known.
  virtual bool change_link(topology::LinkId /*link*/, double /*share*/) { return false; }
  virtual void reroute() {}
  /// Returns what keeps messages from ever arriving.
  virtual std::vector<std::string> stalls() const { return {}; }
  /// Keeps when each message begins and ends.
  virtual void record_messages() {}
  virtual std::vector<MessageSpan> take_messages() { return {}; }
  /// Returns whether it tells itself how much of its work a run has done, instead of the loop.
  virtual bool take_progress(const Progress& /*progress*/) { return false; }

 private:
  Traits traits_;
};

/// Collectives phase by phase on the ports that they occupy (collective/cost.h), messages on those
/// of their routes; ports shared as AnalyticalNetwork says. The fast model: a collective of many
/// ranks is a few events, and ranks fold. On a machine with a topology phases and messages occupy
/// its links instead (laid_phases.h), and no rank folds; copies keep the ports.
class PortTransport final : public Transport {
 public:
  /// Links do not change: a phase holds all of its own together.
  static constexpr Traits kTraits{.folds = true, .repeats = true};

  PortTransport(const Wiring& wiring, Binding& binding, const machine::Machine& machine,
                engine::EventQueue& queue);

  /// Mistakes: on a topology algorithms that have no messages.
  Result<void> check(const graph::Workload& workload, std::string_view network) override {
    return laid_ ? laid_->check(workload, network) : Result<void>();
  }
  void begin_collective(Activity id, CommunicatorIndex communicator, int collective) override;
  void begin_copy(Activity id, RankIndex rank, int collective) override;
  void begin_message(Activity id, const FlowRoute& route, Bytes bytes) override;
  std::optional<Activity> handle(const engine::EventQueue::Event& event) override;
  void settle() override { network_.settle(queue_); }
  std::optional<Time> undisturbed(CommunicatorIndex communicator, int collective) override;
  void describe(const std::vector<Activity>& live, std::vector<std::int64_t>& state) const override;
  std::optional<Activity> activity_of(const engine::EventQueue::Event& event) const override {
    return network_.is_stale(event) ? std::nullopt : std::optional(owners_[event.subject]);
  }
  void shift(Time by) override { network_.shift(by); }

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
  /// Returns the port of a rank that a copy uses, if any; stays where it is.
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
