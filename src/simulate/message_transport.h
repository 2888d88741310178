// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/event_queue.h"
#include "machine/machine.h"
#include "machine/network/analytical.h"
#include "machine/network/link_faults.h"
#include "machine/topology/link_map.h"
#include "simulate/bind.h"
#include "simulate/message_plans.h"
#include "simulate/progress.h"
#include "simulate/timeline.h"
#include "simulate/transport.h"
#include "simulate/wiring.h"

namespace orrery::simulate {

/// Every message of every collective, and every message from rank to rank, on the links of its
/// route (transport.h). What a collective is made of says collective/phase_messages.h; how messages
/// share links says `Links`, a model of machine/network:
///
///   id   = start(bytes, route, queue)  or start(ends, route, queue), with the devices and bytes
///   done = handle(event, queue)        settle(queue)
///   kTraits                            what more it can (machine/network/analytical.h)
///   check(), stall()                   if it has them: mistakes; what keeps messages from arriving
///
/// It is made of the number of links, or of the LinkMap and its settings in the machine.
///
/// A phase begins when the one before has ended for all members.
///
/// Cost: an event or two for each link of each message's route, whatever it carries. Memory: what
/// is on its way, plus a schedule per shape of communicator and its routes.
template <class Links>
class MessageTransport final : public Transport {
 public:
  static constexpr network::LinksTraits kLinks = Links::kTraits;
  static constexpr Traits kTraits{.folds = kLinks.alike,  // by message_fold.h
                                  .links_change = kLinks.links_change,
                                  .repeats = kLinks.repeats,
                                  .looks_ahead = kLinks.looks_ahead,
                                  .phases = PhaseChoice::with_messages};

  MessageTransport(const Wiring& wiring, Binding& binding, const machine::Machine& machine,
                   engine::EventQueue& queue, bool shortcuts = true);

  Result<void> check(const graph::Workload& workload, std::string_view network) override {
    if constexpr (requires { links_.check(); }) {
      if (auto ok = links_.check(); !ok) {
        return ok;
      }
    }
    if (auto ok = plans_.check(workload, network); !ok) {
      return ok;
    }
    return count_work(workload, network);
  }

  void begin_collective(Activity id, CommunicatorIndex communicator, int collective) override;
  void begin_copy(Activity id, RankIndex rank, int collective) override;
  void begin_message(Activity id, const FlowRoute& route, Bytes bytes) override;
  std::optional<Activity> handle(const engine::EventQueue::Event& event) override;
  void settle() override;
  bool take_progress(const Progress& progress) override {
    progress_ = kLinks.by_byte ? progress : nullptr;
    return kLinks.by_byte;
  }
  std::vector<std::string> stalls() const override;
  void expect_faults() override;
  bool change_link(topology::LinkId link, double share) override;
  void reroute() override {
    if (faults_) {
      faults_->reroute(queue_);
    }
  }
  void record_messages() override { record_ = true; }
  std::vector<MessageSpan> take_messages() override { return std::move(messages_); }
  void describe(const std::vector<Activity>& live, std::vector<std::int64_t>& state) const override;
  std::optional<Activity> activity_of(const engine::EventQueue::Event& event) const override;
  void shift(Time by) override {
    if constexpr (kLinks.repeats) {
      links_.shift(by);
    }
  }
  std::optional<Time> undisturbed(CommunicatorIndex communicator, int collective) override;

 private:
  static constexpr std::uint32_t kFirstEvent = 130;
  static constexpr std::uint32_t kBegin = kFirstEvent;  ///< the phase's first messages
  static constexpr std::uint32_t kCopied = kFirstEvent + 1;
  static constexpr std::uint32_t kWhole = UINT32_MAX;

  /// A collective in flight.
  struct Under {
    const std::vector<PhasePlan>* phases = nullptr;
    std::size_t phase = 0;
    std::size_t left = 0;              ///< messages that have not arrived
    std::vector<std::uint32_t> waits;  ///< by group and message: arrivals that it waits for
  };
  /// An Owner is what arrives with a message of the network: one of a phase, or (message kWhole) an
  /// activity.
  struct Owner {
    Activity activity = 0;
    std::uint32_t group = 0;
    std::uint32_t message = kWhole;
    bool moves = false;
  };

  /// Refuses more than ends within hours (kLinks.by_byte).
  Result<void> count_work(const graph::Workload& workload, std::string_view network);
  Under& under(Activity id);
  const PhasePlan& phase_of(const Under& under) const { return (*under.phases)[under.phase]; }
  void begin_phase(Activity id);
  void send_first(Activity id);
  void send(const Owner& owner);
  /// Returns whether with this event the last byte of a message leaves. Packets do not tell; of
  /// them a message has left when it has arrived.
  bool leaves(const engine::EventQueue::Event& event) const;
  void send_next(const Owner& owner);
  bool arrive(const Owner& owner);
  /// True when it was the collective's last.
  bool end_phase(Activity id);
  /// Begins a message between two ranks.
  network::TransferId start(Bytes bytes, std::span<const topology::Hop> route, RankPair ends);
  void own(network::TransferId transfer, const Owner& owner);
  std::span<const topology::Hop> hops_of(const FlowRoute& route);
  void count_users();
  /// Says whether no other communicator and no message ever passes a link of the collective.
  bool meets_nothing(CommunicatorIndex communicator, int collective);
  /// Returns the time of the collective on a network without anything else, beside the run.
  std::optional<Time> time_alone(CommunicatorIndex communicator, int collective);
  struct Alone;

  const Wiring& wiring_;
  Binding& binding_;
  const machine::Machine& machine_;
  engine::EventQueue& queue_;
  topology::LinkMap map_;
  MessagePlans plans_;
  Links links_;
  std::vector<std::vector<topology::Hop>> routes_;  ///< by route
  std::vector<Owner> owners_;                       ///< by TransferId
  std::vector<Under> under_;                        ///< by Activity
  LinkUsers users_;                                 ///< counted when first asked for
  std::unique_ptr<Alone> alone_;
  std::map<std::pair<CommunicatorIndex, int>, std::optional<Time>> times_alone_;
  std::optional<network::LinkFaults> faults_;  ///< if expected
  Progress progress_;
  double work_ = 0;     ///< of the run, as Links counts it; 0: not known
  double told_at_ = 0;  ///< work done when progress was last told
  bool record_ = false;
  std::vector<MessageSpan> messages_;      ///< begun; those in flight end at Time::max()
  std::vector<std::size_t> message_span_;  ///< by TransferId, if recorded
};

}  // namespace orrery::simulate
