// SPDX-License-Identifier: Apache-2.0
/// Congestion factors state what max-min fairness leaves out: factors on links and caps on flows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "machine/network/fair.h"
#include "machine/topology/link_graph.h"

namespace orrery::network {

/// All off by default. Each is a stated model with a constant of the user's, not a measurement.
struct FlowOptions {
  /// a: a link into a host that n flows pass at once gives them 1 / (1 + a (1 - 1/n)) of its
  /// bandwidth (losses and their repair, credits that come late). At least 0.
  double incast_penalty = 0;
  /// h: of a link whose flows go on, for a share b of them, over a later link with more flows than
  /// this one, 1 / (1 + h b) is left: it is paused for them, and the others wait behind (PFC).
  double head_of_line = 0;
  /// z: n flows that are sprayed over W routes, 64 path ids each (the packets' default), put
  /// 1 +- sqrt((W-1) / (64 n)) of the mean on a link; a flow ends with its slowest route, so the
  /// link gives 1 / (1 + z sqrt((W-1) / (64 n))). W from the shares that its flows send over it.
  double spray_imbalance = 0;
  /// w: a flow goes no faster than w, 2w, 4w, ... bytes in its first, second, third round trip
  /// (twice the latencies of its route), until its links allow no more (slow start). 0: at once.
  Bytes ramp{0};
  /// Bytes on the wire for a byte of a flow (4150/4086 for csg-htsim's EQDS). At least 1.
  double overhead = 1;
  /// Pieces that symmetry makes alike are simulated as one.
  bool fold = true;

  bool has_congestion() const {
    return incast_penalty > 0 || head_of_line > 0 || spray_imbalance > 0;
  }
  friend bool operator==(const FlowOptions&, const FlowOptions&) = default;
};

/// Counts who is on the links, and scales them.
class Congestion {
 public:
  Congestion(const topology::LinkGraph& graph, const FlowOptions& options);

  /// A flow begins to move over a route that stays valid until it has left.
  void enter(TransferId id, std::span<const topology::Hop> route);
  void leave(TransferId id);
  /// Scales the links; called before network.settle(). With head_of_line it looks at every flow in
  /// flight.
  void settle(FairNetwork& network);

 private:
  struct Link {
    std::uint32_t flows = 0;
    std::uint32_t blocked = 0;  ///< of them, that a later link holds up
    double shares = 0;          ///< of their bytes that pass here: flows / shares routes
    bool touched = false;
  };
  void touch(topology::LinkId link);
  void count(std::span<const topology::Hop> route, bool enters);
  void count_blocked();
  double factor(topology::LinkId link) const;

  const topology::LinkGraph& graph_;
  FlowOptions options_;
  std::vector<Link> links_;
  std::vector<std::span<const topology::Hop>> routes_;  ///< by TransferId; empty: none
  std::vector<topology::LinkId> touched_;
};

}  // namespace orrery::network
