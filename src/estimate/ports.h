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

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "estimate/beside.h"
#include "estimate/prices.h"

namespace orrery::estimate {

class Ports {
 public:
  /// As a lane: messages from other stages.
  static constexpr int kIncoming = -1;
  using Load = std::vector<double>;  ///< by port

  struct Flight {
    int lane = 0;
    std::size_t node = kNoNode;  ///< of the running template; kNoNode: of one before
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
  /// A message that leaves another stage comes in here.
  Time receive(Time begin, const std::vector<PortPhase>& phases);
  const std::vector<Moved>& moved() const { return moved_; }

  const std::vector<Flight>& flights() const { return flights_; }
  /// Whether a transfer other than messages goes on after `when`.
  bool busy_after(Time when) const;
  /// Forgets what has ended by then.
  void forget(Time before);
  /// Forgets what has ended, and which nodes the rest belong to.
  void settle(Time when);
  void move(Time later);

 private:
  static std::uint64_t bits_of(const std::vector<PortLoad>& ports);
  /// Whether others may be on one of these ports after `begin`.
  bool meets_others(int lane, Time begin, std::uint64_t bits) const;
  Time share(int lane, Time begin, const PortPhase& phase);
  void find_load(Time now, int lane, const std::vector<PortLoad>& ports);
  void delay(std::size_t flight, Time by);

  std::vector<Flight> flights_;  ///< in the order of their starts, by lane
  std::vector<Time> delays_;     ///< of flights, by what starts
  std::vector<Moved> moved_;
  Load load_;  ///< at one moment
};

}  // namespace orrery::estimate
