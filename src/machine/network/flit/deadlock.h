// SPDX-License-Identifier: Apache-2.0
/// Deadlocks are found by who waits for whom: in a network that stands still or is overloaded, and
/// in principle.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "machine/network/flit/engine.h"

namespace orrery::flit {

/// Returns a circle of input VCs each of which can only go on after the next; empty: there is none
/// now.
std::vector<std::uint32_t> circle_of(const std::vector<Waiting>& waiting);

/// Returns "a deadlock: router 3 from router 2, VC 1 waits for ...", or where a network that moves
/// has its longest queue: "... the fullest output is ...".
std::string explain_waiting(const Engine& engine);

enum class Freedom : std::uint8_t { free, circular, not_checked };

struct DependencyCheck {
  Freedom freedom = Freedom::free;
  std::string circle;  ///< "router 0 to router 1 (VCs 0-1), ...", or why it was not checked
};

/// Returns whether waiting can go in a circle: every channel and class of virtual channels that a
/// packet may hold, with those that it may want next, for all pairs of nodes and all that routing
/// may draw (Dally & Seitz 1987), unless they are known to be in one order
/// (RoutingTraits::is_ordered). For an adaptive routing these are the channels of its escapes, with
/// those that a packet may want next there after any other hops (Duato 1993).
DependencyCheck check_dependencies(const Routing& routing);

}  // namespace orrery::flit
