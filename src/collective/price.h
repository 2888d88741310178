// SPDX-License-Identifier: Apache-2.0
/// One phase priced: the arithmetic of cost.h in seconds, without vectors, for a hot loop.
#pragma once

#include <array>
#include <limits>
#include <span>

#include "collective/cost.h"

namespace orrery::collective {

struct PhaseRequest {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  double size = 0;     ///< bytes
  double members = 1;  ///< of all extents
  std::span<const Extent> extents;
  const machine::Machine& machine;
};

/// Seconds for which the links of one dimension are busy; as PortUse, but the node's link with all
/// that the group sends over it.
struct LinkSeconds {
  double own = 0;
  double port = 0;
  double through = 0;
  double node = 0;
};

struct PricedPhase {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  int protocol = -1;
  double latency = 0;
  double waits = 0;  ///< part of latency: buffer_copy and at_least of its launch
  double sends = 0;  ///< likewise: StepCount::further_messages
  double longest = std::numeric_limits<double>::infinity();  ///< of the busiest link
  std::array<LinkSeconds, topology::kMaxDimensions> busy{};  ///< by extent
  std::array<int, topology::kMaxDimensions> protocols{};

  double total() const { return latency + longest; }
};

/// With the fastest protocol, of serving kernels that of launch_of; `longest` is infinite when the
/// algorithm does not do the request.
PricedPhase price_algorithm(const PhaseRequest& request, CollectiveAlgorithm algorithm);

/// The same, of `automatic` when the algorithm is that or does not do the request.
PricedPhase price_phase(const PhaseRequest& request, CollectiveAlgorithm algorithm);

/// The busiest link of a phase: its own, a node's, or a port that several dimensions share. Of a
/// shift (send_recv) every member sends over one dimension only.
double busiest_link(graph::CollectiveKind kind, std::span<const LinkSeconds> busy,
                    std::span<const Extent> extents, const machine::Machine& machine);

/// The protocol with which bytes of a phase pass the port of the dimension that theirs goes
/// through: the one of the same name, else the one of most bandwidth; default for none.
topology::Protocol protocol_through(graph::CollectiveKind kind, CollectiveAlgorithm algorithm,
                                    const topology::NetworkDimension& inner,
                                    const std::string& name);

/// The dimension that `outer` goes through; -1: none.
int dimension_through(const topology::NetworkDimension& outer, const machine::Machine& machine);

}  // namespace orrery::collective
