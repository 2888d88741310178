// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "machine/topology/link_map.h"

namespace orrery::flit {

/// Places of links in an order in which ways rise where they can.
struct LinkOrder {
  std::vector<std::int64_t> place;  ///< by link; -1: no route has it
  int classes = 1;  ///< of virtual channels: 1 + the falls of the route that falls most often
};

/// Calls its argument with every route that messages may take, the same ones each time.
using EachRoute = std::function<void(const std::function<void(std::span<const topology::Hop>)>&)>;

/// Orders links. A message that takes a further class of virtual channels at each fall waits only
/// for what has a higher (class, place): no circle. Places go by depth-first search over "a route
/// passes b after a", every link before all that come after it, as far as there is no circle of
/// these; so routes that cannot go in a circle, as up and down a tree, need one class.
LinkOrder order_links(std::size_t links, const EachRoute& each_route);

}  // namespace orrery::flit
