// SPDX-License-Identifier: Apache-2.0
/// Routes of many flows at once, for routings that look at all of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "machine/topology/routing.h"

namespace orrery::topology {

struct FlowEnds {
  std::int32_t source = 0;  ///< hosts
  std::int32_t target = 0;
  Bytes bytes{0};
};

/// A part of a flow on one way.
struct Piece {
  std::uint32_t flow = 0;
  std::uint32_t hops = 0;
  double share = 1;  ///< of the flow's bytes
  std::size_t first_hop = 0;
};

struct Assigned {
  std::vector<Piece> pieces;  ///< by flow
  std::vector<Hop> hops;
  std::span<const Hop> route(const Piece& piece) const {
    return {hops.data() + piece.first_hop, piece.hops};
  }
};

/// Routes of flows that begin together, by the router's routing:
///
///   greedy       each flow in turn on the way on which max over links of load / bandwidth is least
///                (ties: the first)
///   adaptive     each flow in turn, at every fork the link of least load / bandwidth
///   source_rule  of the n flows out of a leaf over S uplinks floor(n/S) S whole in turn, each of
///                the other r = n mod S in S / gcd(r, S) pieces
///   pair_split   the same of the flows of every pair of leaves: exact at both ends
///   colour       edge colouring of the flows as edges between leaves, D the largest degree; uplink
///                = colour mod S; if S does not divide D the flows of the last r = D mod S colours
///                are cut into S / gcd(r, S) pieces, which take the uplinks in turn. For flows of
///                equal size no link gets more than by ideal spraying. With three levels the same
///                again between pods in every plane, all flows cut into S / gcd(D, S) before. Flows
///                of one size are coloured together
///   others       each flow by itself (Router::route); its key counts flows of equal ends
///
/// `lost` (by link; of colour only): at every level the S routes are those on which no switch of
/// the flows has lost a link, up or down. With one uplink of n lost that is (n-1)/n of the healthy
/// rate, which its leaf cannot exceed; with losses in several planes it gives up more than it must.
///
/// A mistake when hosts are not connected, or no such route is left.
///
/// Source: mechanism of "Ethereal", arXiv 2407.00550; C4P, arXiv 2406.04594.
Result<Assigned> assign(Router& router, std::span<const FlowEnds> flows,
                        const std::vector<bool>& lost = {});

/// Returns, by flow, its pieces as one way, of which a link that gets a share f is a hop of
/// bandwidth / f; the latencies of the first piece are on the first hop.
std::vector<std::vector<Hop>> as_one(const Assigned& assigned, std::size_t flows);

}  // namespace orrery::topology
