// SPDX-License-Identifier: Apache-2.0
/// One phase priced: the arithmetic of cost.h in seconds, without vectors, for a hot loop.
#pragma once

#include <array>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "collective/cost.h"

namespace orrery::collective {

struct AlgorithmRow;  // algorithm.h

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

  LinkSeconds times(double factor) const {
    return {own * factor, port * factor, through * factor, node * factor};
  }
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
  void keep_faster(const PricedPhase& other) {
    if (other.total() < total()) {
      *this = other;
    }
  }
};

/// Prices the phase by the algorithm's counts, with the protocol of this name or, where it is
/// empty, the fastest; `longest` is infinite when the algorithm does not do the request.
PricedPhase price_counts(const PhaseRequest& request, const AlgorithmRow& row,
                         std::string_view protocol);

/// Adds what launching costs: copies of the whole buffer in the device's first memory, and the
/// host.
void add_launching(const PhaseRequest& request, const topology::Protocol& protocol,
                   PricedPhase& priced);

/// Returns the same of any algorithm, launched as its row says.
PricedPhase price_algorithm(const PhaseRequest& request, CollectiveAlgorithm algorithm);

/// Returns the same, of `automatic` when the algorithm is that or does not do the request.
PricedPhase price_phase(const PhaseRequest& request, CollectiveAlgorithm algorithm);

/// Returns the busiest link of a phase: its own, a node's, or a port that several dimensions share.
/// In a shift (send_recv) every member sends over one dimension only.
double busiest_link(graph::CollectiveKind kind, std::span<const LinkSeconds> busy,
                    std::span<const Extent> extents, const machine::Machine& machine);

/// Returns the protocol with which bytes of a phase pass the port of the dimension that theirs goes
/// through: the one of the same name, else the one of most bandwidth; default for none.
topology::Protocol protocol_through(graph::CollectiveKind kind, const AlgorithmRow& row,
                                    const topology::NetworkDimension& inner,
                                    const std::string& name);

/// Returns the dimension that `outer` goes through; -1: none.
int dimension_through(const topology::NetworkDimension& outer, const machine::Machine& machine);

}  // namespace orrery::collective
