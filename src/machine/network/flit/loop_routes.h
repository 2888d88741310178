// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "machine/network/flit/closed_loop.h"

namespace orrery::flit {

/// A LoopRoute has what the closed form needs to know of the routes from a node to another.
struct LoopRoute {
  bool has_closed_form = false;  ///< all that routing may draw takes as long
  std::int64_t routers = 0;
  Cycle links = 0;
  std::vector<std::uint32_t> ports;  ///< that it may use: channels, ejection, then injection
};

/// Found when first asked for. None has a closed form where a router's settings do not allow it
/// (fabric.h, alone()).
class LoopRoutes {
 public:
  LoopRoutes(const Routing& routing, const RouterSettings& router, const Packaging& packaging);

  const LoopRoute& between(std::uint32_t source, std::uint32_t target);

 private:
  struct At {
    RouteState state;
    std::uint32_t router = 0;
    Cycle links = 0;
  };
  LoopRoute walk(std::uint32_t source, std::uint32_t target) const;
  bool step(const std::vector<At>& front, std::vector<At>& next, LoopRoute& route) const;

  const Routing& routing_;
  const RouterGraph& graph_;
  bool possible_ = false;
  std::unordered_map<std::uint64_t, LoopRoute> known_;  ///< only looked up
};

}  // namespace orrery::flit
