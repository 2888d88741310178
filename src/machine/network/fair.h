// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/units.h"
#include "engine/event_queue.h"
#include "machine/network/analytical.h"
#include "machine/topology/link_map.h"

namespace orrery::network {

/// Network model "fair": messages as fluid flows, links shared by max-min fairness.
///
///   Rates are those of progressive filling (Bertsekas and Gallager, Data Networks, 2nd
///   ed., 6.5.2): all rates grow alike; flows through a link that is full keep theirs, the others
///   grow on. arrival = time at which the last byte has left + sum of the latencies of the way
///
/// Flows may pass one link at bandwidths of their own (software that does not get more out of it):
/// a link is full when the shares rate / bandwidth of its flows make 1.
///
/// Rates hold until a flow of the same links, directly or through others, begins or ends: only that
/// part of the network is computed again, once per instant in settle(). Ignores: packets, the time
/// that congestion control needs to find the rates.
///
/// Interface as AnalyticalNetwork.
class FairNetwork {
 public:
  static constexpr std::uint32_t kFirstEvent = 120;
  static constexpr std::uint32_t kDrained = kFirstEvent;
  static constexpr std::uint32_t kArrive = kFirstEvent + 1;

  explicit FairNetwork(std::size_t links) : links_(links) {}

  /// At queue.now(). `route` must stay valid until the message arrives; empty: arrives at once.
  TransferId start(Bytes bytes, std::span<const topology::Hop> route, engine::EventQueue& queue);
  /// True when the last byte of message event.subject has arrived; its id is then free again.
  bool handle(const engine::EventQueue::Event& event, engine::EventQueue& queue);
  void settle(engine::EventQueue& queue);

  /// For how long the link would have been held by what has passed it alone.
  Time busy(topology::LinkId link) const { return links_[link].busy; }

 private:
  struct Flow {
    std::span<const topology::Hop> route;
    double left = 0;  ///< bytes at `since`
    double rate = 0;  ///< bytes per second
    Time since{0};
    std::uint32_t generation = 0;
    bool in_part = false;  ///< of the network that settle() computes
    bool fixed = false;
  };
  struct Link {
    std::vector<TransferId> flows;
    Time busy{0};
    double bandwidth = 0;    ///< that one of its flows passes it with
    double spare = 0;        ///< of it, not yet given away
    double wanted = 0;       ///< of it, per rate of the flows without a rate
    std::uint32_t open = 0;  ///< flows without a rate
    bool in_part = false;
  };

  void collect_part();
  void touch(topology::LinkId link);
  /// Bandwidth left per flow without a rate; infinite when there is none.
  static double share(const Link& link) {
    return link.open > 0 && !link.flows.empty() ? link.spare / link.wanted
                                                : std::numeric_limits<double>::infinity();
  }
  double weight(const topology::Hop& hop) const {
    const double bandwidth = links_[hop.link].bandwidth;
    return bandwidth == hop.bandwidth.value() ? 1 : bandwidth / hop.bandwidth.value();
  }
  void fill();
  bool fill_fullest();
  void fix(TransferId id, double rate);

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<TransferId> free_;
  std::vector<topology::LinkId> part_links_;
  std::vector<TransferId> part_flows_;
};

}  // namespace orrery::network
