// SPDX-License-Identifier: Apache-2.0
/// Transfers of one stage that share its ports, evaluated in issue order.
///
///   A port is wanted for the sum of the loads of the transfers on it (PortLoad), as in the event
///   loop's network (machine/network/analytical.h). A phase of a transfer moves at
///       1 / max(1, max over its ports of what they are wanted for)
///   of its rate alone; its latency follows and occupies nothing.
///
/// A transfer that starts beside others takes its share from then on, and they end as much later
/// as that costs them, with whatever follows them on their lane. Nodes that have already been
/// evaluated and waited for them are not moved again: that is the approximation.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "estimate/beside.h"
#include "estimate/prices.h"
#include "estimate/timed_workload.h"

namespace orrery::estimate {

class Ports {
 public:
  /// As a lane: messages from other stages.
  static constexpr int kIncoming = -1;
  using Load = std::vector<double>;  ///< by port

  struct Flight {
    int lane = 0;
    /// Of the running template; kNoNode: of one before. Of a message that comes in its number.
    std::size_t node = kNoNode;
    Time begin{0};
    Time end{0};   ///< of its port time
    Time done{0};  ///< with its latency
    bool message = false;
    bool last = false;       ///< phase of its transfer
    std::uint64_t bits = 0;  ///< of its ports
    const PortPhase* phase = nullptr;

    const std::vector<PortLoad>& ports() const {
      return lane == kIncoming ? phase->arrival : phase->ports;
    }
  };
  /// A lane's node that ends later than it was said to.
  struct Moved {
    int lane = 0;
    std::size_t node = kNoNode;
    Time end{0};
  };

  /// Returns when the transfer is done. What it moves is in moved(). `phases` must stay as long as
  /// the transfer does.
  struct Sender {
    int lane = 0;
    std::size_t node = kNoNode;
    bool message = false;
  };
  Time start(const Sender& sender, Time begin, const std::vector<PortPhase>& phases);
  /// A message that leaves another stage comes in here, the receiver's `number`.
  Time receive(Time begin, const std::vector<PortPhase>& phases, std::size_t number = kNoNode);
  const std::vector<Moved>& moved() const { return moved_; }
  /// Of these, messages.
  const std::vector<Moved>& moved_messages() const { return moved_messages_; }

  /// By lane, in the order of their starts.
  std::vector<Flight> flights() const;
  std::size_t size() const { return size_; }
  /// Whether a transfer other than messages goes on after `when`.
  bool busy_after(Time when) const;
  /// Forgets what has ended by then.
  void forget(Time before);
  /// Forgets what has ended, and which nodes the rest belong to, unless they are numbered from
  /// `kept` on: those of a run that begins ahead.
  void settle(Time when, std::size_t kept = kNoNode);
  /// All of it that much later, and of nodes so much later.
  void move(Time later, std::size_t nodes = 0);
  /// The last transfer of a lane ends that much later.
  void prolong(int lane, Time by);

 private:
  /// Flights from `first` on. Those of a stage's own lane follow one another; messages that come in
  /// are in the order in which they were sent, and may overlap.
  struct Lane {
    std::vector<Flight> flights;
    std::size_t first = 0;
    std::size_t settled = 0;  ///< flights that belong to no node of the running template
    std::uint64_t bits = 0;   ///< of all flights since it was empty

    bool empty() const { return first == flights.size(); }
    void forget(Time before);
    void compact();
  };
  static constexpr std::size_t kLanes = static_cast<std::size_t>(kMostLanes) + 1;
  static constexpr std::size_t kInbound = kLanes - 1;
  static constexpr std::size_t kStale = 32;  ///< forgotten flights that a lane carries along

  /// A flight that a new phase has met.
  struct Met {
    std::size_t lane = 0;
    std::size_t flight = 0;
    Time delay{0};
    double lost_speed = 1;  ///< how many times as long it takes with the new phase as without
  };

  static constexpr std::size_t lane_of(int lane) {
    return lane == kIncoming ? kInbound : static_cast<std::size_t>(lane);
  }
  static std::uint64_t bits_of(const std::vector<PortLoad>& ports);
  /// Whether others may be on one of these ports after `begin`.
  bool meets_others(std::size_t lane, Time begin, std::uint64_t bits) const;
  Time share(std::size_t lane, Time begin, const PortPhase& phase, std::uint64_t bits);
  void meet(std::size_t lane, Time begin);
  Time meet_until(std::size_t lane, Time now);
  bool is_active(const Met& met, Time now) const {
    const Flight& flight = flight_of(met);
    return flight.begin <= now && flight.end + met.delay > now;
  }
  const Flight& flight_of(const Met& met) const { return lanes_[met.lane].flights[met.flight]; }
  void find_load(Time now, const std::vector<PortLoad>& ports);
  Time lose_speed(Time now, const std::vector<PortLoad>& ports);
  void delay(const Met& met);
  void move(const Flight& flight);

  /// visit(lane) for every lane that has flights but this one, whose own follow one another;
  /// messages that come in meet each other. kLanes: for every one.
  template <class Visit>
  void each_other(std::size_t lane, Visit&& visit) const {
    for (std::uint32_t left = live_ & ~(lane == kInbound ? 0 : bit_of(lane)); left != 0;
         left &= left - 1) {
      visit(static_cast<std::size_t>(std::countr_zero(left)));
    }
  }
  static constexpr std::uint32_t bit_of(std::size_t lane) { return std::uint32_t{1} << lane; }
  static_assert(kLanes < 32);

  std::array<Lane, kLanes> lanes_;
  std::uint32_t live_ = 0;  ///< bits of lanes that have flights
  std::size_t size_ = 0;
  std::vector<Met> met_;                    ///< by the phase that starts
  std::array<std::size_t, kLanes> next_{};  ///< of every lane: the first that it has not met
  std::vector<Moved> moved_;
  std::vector<Moved> moved_messages_;
  Load load_;  ///< at one moment
};

}  // namespace orrery::estimate
