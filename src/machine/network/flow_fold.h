// SPDX-License-Identifier: Apache-2.0
/// Flows that symmetry makes alike, as one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "machine/network/flows.h"
#include "machine/topology/assign.h"
#include "machine/topology/link_graph.h"

namespace orrery::network {

/// Pieces of flows that have their routes, by start.
struct LaidFlows {
  const std::vector<FlowRequest>& all;
  const std::vector<std::uint32_t>& order;  ///< by start
  topology::Assigned& assigned;             ///< of the flows in that order
};

/// A flow for each class of pieces, on a link for each class of links.
struct FoldedFlows {
  std::vector<FlowRequest> flows;         ///< of each class's first piece, by start
  topology::Assigned assigned;            ///< of these, one piece each
  std::vector<std::uint32_t> class_of;    ///< by piece: its flow here
  std::vector<std::uint32_t> stands_for;  ///< by link that pieces pass: the first of its class
};

/// Pieces begin as classes of equal (bytes, start, weight, cap, latency), links of equal bandwidth;
/// a class is divided whenever its members meet different numbers of members of some class, over
/// hops of some bandwidth, until none is (colour refinement, Weisfeiler and Leman 1968). In what is
/// left all links of a class carry equally many pieces of each class. Give every piece the rate of
/// its class on the folded network: no link is overfull, and each piece has a link, or a cap, that
/// holds it up as there. Max-min fair rates are the only ones with both, so these are they, from
/// start to start and end to end.
///
/// On the folded network a piece that n of its class pass a link with is a hop of 1/n of the
/// bandwidth. Classes are told apart by 64-bit sums of mixed numbers.
///
/// Nothing where it would not halve the links, or links are pipes (GraphLink::pipe).
std::optional<FoldedFlows> fold(const topology::LinkGraph& graph, const LaidFlows& flows);

/// Returns the run of all flows that the run of the folded ones stands for.
FlowRun unfold(const FoldedFlows& folded, const LaidFlows& flows, const FlowRun& run);

}  // namespace orrery::network
